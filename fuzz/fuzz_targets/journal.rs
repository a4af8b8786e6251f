//! A journal of anything: played or refused.
#![no_main]

#[path = "../../crates/nvme/tests/nvme/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let journal = [&nvme::journal::MAGIC[..], input].concat();
    let _ = nvme::journal::replay(common::config(), &journal[..]);
});
