//! Tests of the public interface, by topic, in one program: each more would be linked on its own.

mod aborts;
mod arbitrary;
mod attacks;
mod authentication;
mod common;
mod conformance;
mod foreign_targets;
mod groups;
mod hostile_targets;
mod limits;
mod loans;
mod reconfiguring;
mod replay;
mod reservations;
mod tolerance;
