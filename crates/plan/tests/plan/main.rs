//! Tests of the public interface, by topic, in one program: each more would be linked on its own.

mod blox_mistakes;
mod blox_plans;
mod common;
mod mistakes;
mod plans;
mod properties;
mod reference;
mod rivals;
mod san_mistakes;
mod san_plans;
mod scalio;
mod schema;
mod sdirect;
mod series;
mod sweeps;
mod together;
mod wear;
