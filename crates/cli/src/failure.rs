//! Failures of commands, and the standard output.

pub use campaign::failure::{Failure, bad_input, failed_at};
pub use campaign::terminal::print;
