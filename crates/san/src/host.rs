//! The initiator.
