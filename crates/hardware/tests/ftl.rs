//! The translation layer of flash, tested from outside.

mod ftl {
    mod amplification;
    mod books;
    mod snapshots;
    mod spare;
    mod striping;
    mod support;
    mod wear;
}
