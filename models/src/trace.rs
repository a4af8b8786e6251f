//! x
use crate::model::CacheModel;
use stateright::{Checker, Model, HasDiscoveries};
/// dbg
pub fn debug(model: CacheModel) {
    let checker = model.checker().threads(1).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    for (_, path) in checker.discoveries() {
        for (state, step) in path.into_vec() {
            for s in &state.memory.slots { print!("{:?} v{} f{} o{} lapsed={} val={:?} | ", s.word.state, s.word.version.count, s.word.fingerprint, s.word.owner, s.is_lapsed, s.payload[0].value); }
            println!("header {:?}", state.memory.header.sequence);
            if let Some(crate::model::Step::Client{client, choice}) = step { println!("    client {client} choice {choice} {:?}", state.clients[client].phase); } else { println!("    {step:?}"); }
        }
    }
}
