mod support;
use base::Span;
use sim::rigs::edm::EdmRig;
use std::hash::{DefaultHasher, Hash, Hasher};
use support::{cluster, play, uniform};

#[test]
fn print() {
    for (bytes, gap, redundant) in [(64, 800.0, false), (4096, 40_000.0, false), (300, 4_000.0, true)] {
        let mut config = cluster(16);
        config.redundant = redundant;
        config.memory.latency = Span::ns(50);
        let start = std::time::Instant::now();
        let (rows, mut summary) = play(&mut EdmRig::new(config), &mut uniform(16, 60_000, gap, 0.5, bytes, 3));
        summary.extra.remove("notification_bits_per_data_bit"); let mut hasher = DefaultHasher::new();
        format!("{rows:?}{summary:?}").hash(&mut hasher);
        println!("HASH {bytes} {:x} {:?} {:?}", hasher.finish(), start.elapsed(), summary.extra);
    }
}
