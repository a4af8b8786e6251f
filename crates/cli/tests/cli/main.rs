//! Tests of the public interface, by topic, in one program: each more would be linked on its own.

mod comparing;
mod documents;
mod explaining;
mod fabric;
mod fitting;
mod identities;
mod kv;
mod new_policy;
mod preconditioning;
mod rack;
mod rack_kills;
mod readers;
mod reading;
mod reloading;
mod reproducing;
mod running;
mod sampling;
mod san_traces;
mod serving;
mod settling;
mod smallest;
mod stopping;
mod support;
mod sweeping;
mod timelines;
mod tracing;
