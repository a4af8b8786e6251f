use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&a[1]).unwrap();
    let scale = match a[2].as_str() {
        "quick" => Some(spec::Scale::Quick),
        "paper" => Some(spec::Scale::Paper),
        _ => None,
    };
    let over: Vec<(String, String)> = a[3..]
        .iter()
        .map(|s| {
            let (k, v) = s.split_once('=').unwrap();
            (k.into(), v.into())
        })
        .collect();
    let e = spec::parse(&a[1], &text, &spec::NoFiles, &over).unwrap_or_else(|e| panic!("{e}"));
    let t0 = Instant::now();
    for p in e.points(scale) {
        let t = Instant::now();
        let o = sim::RunOptions { version: "x".into(), labels: p.labels.clone(), wire_check: false };
        let out = sim::run(&p.plan, &o, &mut record::Discard, &mut sim::drive::Unobserved).unwrap();
        let s = out.summary;
        let n = s.counts.offered as f64;
        let d = t.elapsed().as_secs_f64();
        let r = |k: &str| {
            s.latency_ns.get(k).map_or(String::new(), |v| {
                format!(
                    "{k} mean {:.1} p99 {:.0} slow {:.3} p99 {:.2};",
                    v.mean, v.p99, s.slowdown[k].mean, s.slowdown[k].p99
                )
            })
        };
        println!(
            "{:?} {:.2}s {:.0}k/s {:.1}ev {:.0}ns/ev | {} {} busy {:.3} fin {} null {} lost {} drop {} unf {} {} {}",
            p.labels.values().cloned().collect::<Vec<_>>(),
            d,
            n / d / 1e3,
            s.events as f64 / n,
            d * 1e9 / s.events as f64,
            r("read"),
            r("write"),
            s.load.busiest_link,
            s.counts.finished,
            s.counts.null,
            s.counts.lost,
            s.counts.dropped_packets,
            s.counts.in_flight_at_end,
            if std::env::var("EXTRA").is_ok() { format!("{:?}", s.extra) } else { String::new() },
            if s.warnings.is_empty() { "" } else { "W" }
        );
    }
    println!("total {:.1}s", t0.elapsed().as_secs_f64());
}
