fn main() {
    let a: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&a[1]).unwrap();
    let over: Vec<(String, String)> = a[2..]
        .iter()
        .map(|s| {
            let (k, v) = s.split_once('=').unwrap();
            (k.into(), v.into())
        })
        .collect();
    let e = spec::parse(&a[1], &text, &spec::NoFiles, &over).unwrap_or_else(|e| panic!("{e}"));
    let p = e.points(None).remove(0);
    let mut rows: Vec<record::Row> = vec![];
    sim::run(&p.plan, &sim::RunOptions::default(), &mut rows, &mut sim::drive::Unobserved).unwrap();
    rows.retain(|r| r.measured);
    for (lo, hi) in [(0u64, 6000u64), (6000, 100000), (100000, 300000), (300000, 10000000)] {
        let mut v: Vec<f64> = rows
            .iter()
            .filter(|r| r.bytes.count() >= lo && r.bytes.count() < hi)
            .map(|r| r.latency().ratio(r.unloaded))
            .collect();
        v.sort_by(f64::total_cmp);
        if v.is_empty() {
            continue;
        }
        let q = |x: f64| v[((v.len() - 1) as f64 * x) as usize];
        let m = v.iter().sum::<f64>() / v.len() as f64;
        println!(
            "{lo}..{hi}: n {} mean {m:.3} p50 {:.3} p90 {:.2} p99 {:.2} max {:.2}; share above 10: mean without {:.3}",
            v.len(),
            q(0.5),
            q(0.9),
            q(0.99),
            q(1.0),
            {
                let w: Vec<f64> = v.iter().copied().filter(|x| *x < 10.0).collect();
                w.iter().sum::<f64>() / w.len() as f64
            }
        );
    }
}
