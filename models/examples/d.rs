use models::{model::*, scenario::{*, Operation::*}, variant::*};
fn main() {
    let s = Scenario { slots: 2, initial: [1,5], cached: [Some(1), None], tearing: Tearing::Slots, ..Scenario::new("", &[&[Get(0)],&[Get(0), Get(0)],&[Delete(0)]]) };
    models::trace::debug(CacheModel { variant: Variant::OURS, scenario: s });
}
