#[path = "../tests/support/mod.rs"]
mod support;
use base::*;
use sim::rigs::edm::EdmRig;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let nodes: u32 = a[1].parse().unwrap();
    let load: f64 = a[2].parse().unwrap();
    let reads: f64 = a[3].parse().unwrap();
    let n: u64 = a[4].parse().unwrap();
    let mut config = support::cluster(nodes);
    config.wire_check = false;
    let (bytes, profile) = match a[5].parse::<u64>() {
        Ok(b) => (b, None),
        Err(_) => (0, Some(a[5].clone())),
    };
    if a.len() > 6 && a[6] == "fcfs" {
        config.edm.policy = edm::Policy::Fcfs;
    }
    if let Some(x) = a.get(7) {
        config.edm.look_ahead_cycles = x.parse().unwrap();
    }
    let mut rig = EdmRig::new(config.clone());
    let cost = |op, b| {
        let c = edm::cost::wire_cost(&config.edm, op, Bytes::new(b));
        ((c.requester_up + c.target_up) as f64).max((c.requester_down + c.target_down) as f64)
    };
    let size = match &profile {
        Some(p) => workload::profile(p).unwrap(),
        None => workload::SizeDistribution::Constant { bytes: Bytes::new(bytes) },
    };
    let mean = size.mean_bytes() as u64;
    let w = reads * cost(Operation::Read, mean) + (1.0 - reads) * cost(Operation::Write, mean);
    let gap = w * 8.0 / (load * 100.0) * 1000.0;
    let class = |operation, weight| workload::Class { operation, weight, size: size.clone() };
    let wc = workload::Config {
        nodes,
        pattern: workload::Pattern::AllToAll,
        mix: vec![class(Operation::Read, reads), class(Operation::Write, 1.0 - reads)],
        local_fraction: 0.0,
        arrivals: workload::Arrivals::Poisson { mean_gap_ps: gap },
        requests: Some(n),
        duration: None,
    };
    let mut source = workload::Generator::new(&wc, Seed(1));
    let start = std::time::Instant::now();
    let limits = sim::drive::Limits {
        warm_up: sim::drive::WarmUp::Time(Span::us(1)),
        drain: Span::ms(100),
        memory: hardware::DramConfig { latency: Span::ZERO, bandwidth: None },
        planned_load: None,
    };
    let o = sim::drive::drive(
        &mut rig,
        &mut source,
        &mut record::Discard,
        record::RunIdentity::default(),
        &limits,
        &mut sim::drive::Unobserved,
    )
    .unwrap();
    let t = start.elapsed().as_secs_f64();
    let s = &o.summary;
    println!(
        "{:.3}s {:.0} msg/s events/msg {:.2} {:.1} ns/event",
        t,
        n as f64 / t,
        s.events as f64 / n as f64,
        t * 1e9 / s.events as f64
    );
    for (k, v) in &s.latency_ns {
        println!(
            "{k} mean {:.1} p99 {:.1} slowdown {:.3} p99 {:.2}",
            v.mean, v.p99, s.slowdown[k].mean, s.slowdown[k].p99
        );
    }
    println!("{:?}", s.span_mean_ns["all"]);
    println!("{:?} {:?}", s.load, s.extra);
    println!("{:?}", s.warnings);
}
