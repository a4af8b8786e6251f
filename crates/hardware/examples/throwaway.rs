use base::*;
use hardware::ssd::*;
use std::time::Instant;
fn main() {
    let op: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(0.28);
    let geometry = Geometry {
        channels: 16,
        dies_per_channel: 4,
        planes_per_die: 2,
        blocks_per_plane: 1024 * 128 * 10 / 10 / 128,
        pages_per_block: 256,
        page: Bytes::kib(16),
        unit: Bytes::kib(16),
    };
    println!("physical {} GiB", geometry.physical_bytes().count() >> 30);
    let config = SolidStateConfig {
        geometry,
        timing: Timing {
            pages: vec![
                PageTimes { read: Span::us(48), program: Span::us(850) },
                PageTimes { read: Span::us(64), program: Span::us(2300) },
            ],
            erase: Span::ms(3),
            channel: Rate::bps(312_500_000 * 8),
            command: Span::ns(200),
            suspension: Suspension::None,
        },
        over_provisioning: op,
        link: HostLink { rate: Rate::gbps(28), command: Span::us(1) },
        firmware: Firmware {
            read: Cost { command: Span::us(5), per_4_kib: Span::ZERO },
            write: Cost { command: Span::us(5), per_4_kib: Span::ZERO },
        },
        buffer: WriteBuffer {
            capacity: Bytes::kib(8 * 1024),
            write_in: Cost { command: Span::us(1), per_4_kib: Span::ns(400) },
            flush: FlushPolicy::FullPages,
        },
        collection: CollectionConfig { victim: VictimPolicy::Greedy, hot_cold: false, start: 4, stop: 5 },
        endurance: None,
        read_retry: vec![],
        seed: Seed(1),
    };
    let mut drive = SolidState::new(config).unwrap();
    println!(
        "logical {:.1} GB, layer memory {} MB",
        drive.capacity().count() as f64 / 1e9,
        drive.layer().memory_bytes() / 1_000_000
    );
    let t = Instant::now();
    let state = Precondition {
        fill: 1.0,
        pattern: Pattern::Fragmented(Steady { window: 0.5, windows: 2, tolerance: 0.5, windows_max: 20 }),
    };
    let r = drive.precondition(state);
    match r {
        Ok(r) => println!(
            "{:?} {} units in {:?}: {:.0} k/s",
            r.windows,
            r.written_units,
            t.elapsed(),
            r.written_units as f64 / t.elapsed().as_secs_f64() / 1e3
        ),
        Err(e) => println!("{e}"),
    }
    let units = drive.capacity().count() / 16384;
    for reads in [0u64] {
        drive.restart_report();
        let mut s = Seed(3).stream("x");
        let depth = 64;
        let start_at = drive.report().elapsed;
        let _ = start_at;
        let mut ends = std::collections::BinaryHeap::new();
        for _ in 0..depth {
            ends.push(std::cmp::Reverse(Time::secs(0 + reads * 200)));
        }
        let n = 12_000_000u64;
        let t = Instant::now();
        let mut last = Time::ZERO;
        for _ in 0..n {
            let std::cmp::Reverse(now) = ends.pop().unwrap();
            let kind = if s.below(100) < reads { CommandKind::Read } else { CommandKind::Write };
            let done =
                drive.submit(now, Command { kind, address: s.below(units) * 16384, bytes: Bytes::kib(16) }).unwrap();
            last = done.end;
            ends.push(std::cmp::Reverse(done.end));
        }
        let e = t.elapsed().as_secs_f64();
        println!(
            "reads {reads}%: {:.0} k requests/s cpu; virtual {:?}; WA {:?}",
            n as f64 / e / 1e3,
            last,
            drive.report().write_amplification
        );
    }
    println!(
        "{}",
        std::fs::read_to_string("/proc/self/status")
            .unwrap()
            .lines()
            .filter(|l| l.starts_with("VmHWM"))
            .collect::<String>()
    );
}
