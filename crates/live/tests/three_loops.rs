//! The suites with three loops: hosts cannot tell them from one.
#![allow(clippy::duplicate_mod, reason = "each suite is a program of its own too, with its support")]

#[path = "durability.rs"]
mod durability;
#[path = "security.rs"]
mod security;
#[path = "sessions.rs"]
mod sessions;
#[path = "soak.rs"]
mod soak;
