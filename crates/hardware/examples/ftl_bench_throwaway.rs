use base::{Bytes, Seed};
use hardware::ssd::*;
use std::time::Instant;
fn rss() -> u64 { let s=std::fs::read_to_string("/proc/self/statm").unwrap(); s.split(' ').nth(1).unwrap().parse::<u64>().unwrap()*4096 }
fn main() {
    let logical_bytes: f64 = std::env::args().nth(1).unwrap().parse::<f64>().unwrap() * 1e9;
    let op: f64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let n: f64 = std::env::args().nth(3).unwrap().parse().unwrap();
    let (channels, dies) = (16u32, 8u32);
    let logical = (logical_bytes / 16384.0) as u64;
    let need = (logical as f64 * (1.0 + op) / 256.0).ceil() as u32;
    let bpp = need.div_ceil(channels*dies*2);
    let geometry = Geometry { channels, dies_per_channel: dies, planes_per_die: 2, blocks_per_plane: bpp, pages_per_block: 256, page: Bytes::kib(16), unit: Bytes::kib(16) };
    let policy = match std::env::args().nth(4).as_deref() { Some("cb") => VictimPolicy::CostBenefit, Some("rnd") => VictimPolicy::Random, Some("d") => VictimPolicy::Choices(8), _ => VictimPolicy::Greedy };
    let config = FtlConfig { geometry, logical_units: logical, victim: policy, hot_cold: false, endurance: None, seed: Seed(1) };
    let before = rss();
    let mut layer = TranslationLayer::new(config, (0..geometry.blocks()).map(BlockId)).unwrap();
    println!("logical {logical} blocks {} actual spare ratio {:.3}", geometry.blocks(), geometry.units() as f64 / logical as f64 - 1.0);
    let t = Instant::now();
    for unit in 0..logical { write(&mut layer, unit); }
    println!("fill {:.0} ns", t.elapsed().as_nanos() as f64 / logical as f64);
    let mut x = 88172645463325252u64;
    let mut next = || { x ^= x << 13; x ^= x >> 7; x ^= x << 17; ((x as u128 * logical as u128) >> 64) as u64 };
    let warm = (logical as f64 * n) as u64;
    for _ in 0..warm { let u = next(); write(&mut layer, u); }
    let c = layer.counters();
    let t = Instant::now();
    let count = 10_000_000.min(logical);
    for _ in 0..count { let u = next(); write(&mut layer, u); }
    let e = t.elapsed().as_nanos() as f64 / count as f64;
    let d = layer.counters();
    let wa = 1.0 + (d.relocated_units - c.relocated_units) as f64 / count as f64;
    println!("op {op} WA {wa:.3}: {e:.0} ns a host write; tables {:.1} MB, RSS {:.1} MB (before {:.1})", layer.memory_bytes() as f64 / 1e6, rss() as f64 / 1e6, before as f64 / 1e6);
    if std::env::args().nth(5).is_some() { let t=Instant::now(); layer.check().unwrap(); println!("check {:?}", t.elapsed()); }
}
fn write(layer: &mut TranslationLayer, unit: u64) {
    loop {
        match layer.write(unit) {
            Ok(w) => {
                if let Some(p) = w.program { if p.page == 0 {
                    let die = layer.config().geometry.die_of(p.block);
                    while layer.free_blocks_of(die) < 2 {
                let Some(v) = layer.victim(Some(die)) else { break };
                while let Some(r) = layer.relocate_next(v) { std::hint::black_box(r); }
                let _ = layer.erased(v);
                    }
                } }
                return }
            Err(FtlError::NoFreeBlock) => {
                let v = layer.victim(None).unwrap();
                while let Some(r) = layer.relocate_next(v) { std::hint::black_box(r); }
                let _ = layer.erased(v);
            }
            Err(e) => panic!("{e}"),
        }
    }
}
