use record::{Row, Sink, SinkError};
use rustix::time::{ClockId, clock_gettime};
use sim::drive::Unobserved;
use sim::{RunOptions, run};
use spec::{NoFiles, parse};
struct Hash(u64, u64);
impl Sink for Hash {
    fn row(&mut self, row: &Row) -> Result<(), SinkError> {
        let mut put = |v: u64| {
            self.0 = (self.0 ^ v).wrapping_mul(0x9E3779B97F4A7C15);
            self.0 ^= self.0 >> 29;
        };
        put(row.request.0);
        put(row.operation as u64);
        put(row.source.0 as u64);
        put(row.target.0 as u64);
        put(row.bytes.count());
        put(row.outcome as u64);
        put(row.intended.as_ps());
        put(row.start.as_ps());
        put(row.end.as_ps());
        put(row.unloaded.as_ps());
        put(row.measured as u64);
        for (_, s) in row.spans.iter() {
            put(s.as_ps());
        }
        self.1 += 1;
        Ok(())
    }
}
fn cpu() -> f64 {
    if std::env::var("NOCLOCK").is_ok() {
        return 0.0;
    }
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let nodes: u32 = a[1].parse().unwrap();
    let requests: u64 = a[2].parse().unwrap();
    let hash = a.get(3).is_some_and(|x| x == "hash");
    let size = a.get(4).cloned().unwrap_or("\"64B\"".into());
    let extra = a.get(5).cloned().unwrap_or_default();
    let load = a.get(6).cloned().unwrap_or("0.8".into());
    let text = format!(
        "title = \"bench\"\nfabric = {{ nodes = {nodes}, rate = \"100Gbps\" }}\ndesign.name = \"edm\"\n{extra}\nworkload = {{ load = {load}, size = {size} }}\nrun = {{ requests = {requests}, drain_limit = \"10s\" }}\n"
    );
    let experiment = parse("bench", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let plan = experiment.points(None).remove(0).plan;
    let t = cpu();
    let mut h = Hash(1, 0);
    let o = if hash {
        run(&plan, &RunOptions::default(), &mut h, &mut Unobserved)
    } else {
        run(&plan, &RunOptions::default(), &mut record::Discard, &mut Unobserved)
    }
    .unwrap();
    let s = cpu() - t;
    println!("lat {:?} sim {}", o.summary.latency_ns.get("all").map(|s| (s.mean, s.max)), o.summary.simulated_ns);
    println!(
        "{:.4} s  {:.0} ns/msg events {} hash {:x} rows {} {:?}",
        s,
        s * 1e9 / requests as f64,
        o.summary.events,
        h.0,
        h.1,
        o.summary.extra
    );
}
