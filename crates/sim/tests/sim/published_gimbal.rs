//! Does the claim hold: Gimbal's fairness (Min et al., SIGCOMM 2021, evaluation) over our model of
//! a drive. `docs/concepts/rivals-gimbal.md` has the numbers; `--nocapture` prints ours.

use base::{Bytes, Rate, Stream, Time};
use hardware::ssd::presets::pm9a3_960_quick;
use hardware::ssd::{Command, CommandKind, QuickDrive};
use san::gimbal::{Gimbal, GimbalConfig, GimbalIo, IoKind, Started};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const CAPACITY: Bytes = Bytes::kib(1 << 20);
/// Of the drive's link.
const LINK: Rate = Rate::bps(8 * 6_800_000_000);

/// As a plan sets it up for this drive: the published constants, the rate of its link, 8 slots for
/// each 3.2 GB/s.
fn config() -> GimbalConfig {
    GimbalConfig { rate_initial: LINK, rate_max: LINK, slots: 17, waiting_max: 4_096, ..GimbalConfig::PUBLISHED }
}

/// A tenant that keeps so many I/Os of one kind and size outstanding.
#[derive(Clone, Copy, Debug)]
struct Tenant {
    kind: IoKind,
    bytes: u32,
    depth: u32,
}

const SMALL: Tenant = Tenant { kind: IoKind::Read, bytes: 4 << 10, depth: 32 };
const LARGE: Tenant = Tenant { kind: IoKind::Read, bytes: 128 << 10, depth: 32 };

/// A drive with or without Gimbal before it. Without, I/Os go to the drive as they come.
struct Rack {
    tenants: Vec<Tenant>,
    drive: QuickDrive,
    gimbal: Option<Gimbal>,
    random: Stream,
    under_way: BinaryHeap<Reverse<(Time, u32)>>,
    started: Vec<(Time, Started)>,
    /// Bytes of each tenant since the warm-up.
    served: Vec<u64>,
}

impl Rack {
    fn new(tenants: &[Tenant], gimbal: Option<GimbalConfig>) -> Rack {
        Rack {
            tenants: tenants.to_vec(),
            drive: QuickDrive::new(pm9a3_960_quick(CAPACITY)).expect("a preset is a drive"),
            gimbal: gimbal.map(|config| Gimbal::new(config, tenants.len())),
            random: base::Seed(1).stream("addresses"),
            under_way: BinaryHeap::new(),
            started: Vec::new(),
            served: vec![0; tenants.len()],
        }
    }

    fn ask(&mut self, now: Time, tenant: u32) {
        let Tenant { kind, bytes, .. } = self.tenants[tenant as usize];
        let io = GimbalIo { ticket: 0, kind, bytes };
        match &mut self.gimbal {
            Some(gimbal) => gimbal.submit(tenant, io).expect("a tenant's depth is below the limit"),
            None => self.begin(now, Started { io, tenant, slot: 0 }),
        }
    }

    fn begin(&mut self, now: Time, started: Started) {
        let GimbalIo { kind, bytes, .. } = started.io;
        let kind = match kind {
            IoKind::Read => CommandKind::Read,
            IoKind::Write => CommandKind::Write,
        };
        let address = self.random.below(CAPACITY.count() / u64::from(bytes)) * u64::from(bytes);
        let command = Command { kind, address, bytes: Bytes::new(u64::from(bytes)) };
        let done = self.drive.submit(now, command).expect("a command inside the drive");
        self.under_way.push(Reverse((done.end, self.started.len() as u32)));
        self.started.push((now, started));
    }

    fn pull(&mut self, now: Time) -> Option<Time> {
        while let Some(started) = self.gimbal.as_mut().and_then(|gimbal| gimbal.next(now)) {
            self.begin(now, started);
        }
        self.gimbal.as_ref().and_then(Gimbal::next_wakeup)
    }

    /// Bytes a second of each tenant, and the write cost at the end.
    fn play(mut self, warm_up: Time, end: Time) -> (Vec<f64>, f64) {
        for tenant in 0..self.tenants.len() as u32 {
            (0..self.tenants[tenant as usize].depth).for_each(|_| self.ask(Time::ZERO, tenant));
        }
        let mut wakeup = self.pull(Time::ZERO);
        loop {
            let done = self.under_way.peek().map(|Reverse((at, _))| *at);
            let now = [done, wakeup].into_iter().flatten().min().expect("a closed loop goes on");
            if now >= end {
                break;
            }
            while let Some(Reverse((_, place))) = self.under_way.peek().copied().filter(|Reverse((at, _))| *at <= now) {
                self.under_way.pop();
                self.complete(now, place, warm_up);
            }
            wakeup = self.pull(now);
        }
        let seconds = (end - warm_up).as_secs_f64();
        let cost = self.gimbal.map_or(0.0, |gimbal| gimbal.write_cost().as_f64());
        (self.served.iter().map(|bytes| *bytes as f64 / seconds).collect(), cost)
    }

    fn complete(&mut self, now: Time, place: u32, warm_up: Time) {
        let (began, started) = self.started[place as usize];
        if let Some(gimbal) = &mut self.gimbal {
            gimbal.complete(now, started, now - began);
        }
        if now >= warm_up {
            self.served[started.tenant as usize] += u64::from(started.io.bytes);
        }
        self.ask(now, started.tenant);
    }
}

/// Bandwidth over what an equal share of the drive would give: of what the tenant gets when it has
/// it alone (the paper's f-Util).
fn fair_use(tenants: &[Tenant], gimbal: Option<GimbalConfig>) -> Vec<f64> {
    let (warm_up, end) = (Time::ms(20), Time::ms(120));
    let (shared, _) = Rack::new(tenants, gimbal).play(warm_up, end);
    let alone = |tenant: &Tenant| {
        // As many outstanding as all have together.
        let alone = Tenant { depth: tenants.iter().map(|tenant| tenant.depth).sum(), ..*tenant };
        Rack::new(&[alone], None).play(warm_up, end).0[0]
    };
    let part = |(tenant, got): (&Tenant, &f64)| got / (alone(tenant) / tenants.len() as f64);
    tenants.iter().zip(&shared).map(part).collect()
}

fn spread(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(0.0, f64::max))
}

/// The paper's evaluation: readers of small and of large blocks each get a fair use of the drive,
/// where without Gimbal the large ones take it.
#[test]
fn readers_of_small_and_large_blocks_use_the_drive_fairly() {
    let tenants = [[SMALL; 4], [LARGE; 4]].concat();
    let (plain, gimbal) = (fair_use(&tenants, None), fair_use(&tenants, Some(config())));
    println!("f-Util without: small {:.2}, large {:.2}", plain[0], plain[4]);
    println!("f-Util with:    small {:.2}, large {:.2}", gimbal[0], gimbal[4]);
    let ((plain_least, plain_most), (least, most)) = (spread(&plain), spread(&gimbal));
    assert!(plain_most > 5.0 * plain_least, "{plain:?}");
    assert!(most < 2.0 * least, "{gimbal:?}");
    assert!(least > 0.5, "{gimbal:?}");
}

/// While writes are quick (they go to the drive's buffer), their cost falls from 9 by a half each
/// 100 ms.
#[test]
fn the_write_cost_falls_while_the_buffer_takes_the_writes() {
    let writer = Tenant { kind: IoKind::Write, bytes: 4 << 10, depth: 1 };
    let cost = |end| Rack::new(&[writer, SMALL], Some(config())).play(Time::ms(1), Time::ms(end)).1;
    let costs = [50, 150, 450].map(cost);
    println!("write cost after 50, 150 and 450 ms: {costs:?}");
    assert_eq!(costs, [9.0, 8.5, 7.0]);
}
