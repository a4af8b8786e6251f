//! The suites with three loops: hosts cannot tell them from one.

#[path = "durability.rs"]
mod durability;
#[path = "security.rs"]
mod security;
#[path = "sessions.rs"]
mod sessions;
#[path = "soak.rs"]
mod soak;
