//! `rackweave run rack.toml`: the rack that `rackweave rack up` starts, simulated, with the load of
//! its file.

use super::compare::{self, percentile};
use super::{read_model, rows, stores, text};
use crate::failure::{Failure, bad_input, failed_at};
use crate::output::{self, Marker, json, write, write_json};
use crate::rack::read;
use base::{Seed, Span};
use campaign::arguments::{Form, OutputArguments, RunArguments, SeedArguments, SourceArguments};
use campaign::page::write_pages;
use campaign::terminal::Terminal;
use campaign::terminal::say;
use campaign::{Done, load};
use plan::rack::Rack;
use record::Keep;
use report::page::INDEX;
use report::{PageInput, Section};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use volumes::twin::{Model, Request, Simulated, TwinError, first_lives, planned_load, simulate};

/// Percentiles, and the longest.
const PERCENTILES: [(&str, f64); 5] = [("P50", 0.5), ("P90", 0.9), ("P99", 0.99), ("P99.9", 0.999), ("longest", 1.0)];

/// What the command finds out.
#[derive(Serialize)]
struct Report {
    seed: u64,
    /// Virtual time from the first measured request to the last end.
    seconds: f64,
    /// Measured requests for pages.
    requests: u64,
    /// Those without a good end.
    failed: u64,
    /// Those without an end, of all.
    open: u64,
    /// Good ends a second.
    per_second: f64,
    /// Reads that another server answered than they were sent to.
    redirected: u64,
    times: Vec<Times>,
    /// Counters of decisions, by role.
    counters: BTreeMap<String, BTreeMap<String, u64>>,
}

/// The times of one span.
#[derive(Serialize)]
struct Times {
    operation: &'static str,
    span: &'static str,
    count: usize,
    mean_ns: u64,
    percentiles_ns: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    sorted: Vec<u64>,
}

/// Whether a file says a rack: no experiment has lists of roles.
pub fn is_rack(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let table = text.parse::<toml::Table>().unwrap_or_default();
    ["storage", "door", "jbof", "store"].iter().any(|key| table.get(*key).is_some_and(toml::Value::is_array))
}

/// Simulates the rack of a file.
pub fn run(arguments: &RunArguments) -> Result<Done, Failure> {
    let file = &arguments.source.file;
    let rack = read(file)?;
    if rack.loads.is_empty() && rack.store_loads.is_empty() {
        let why = "nobody asks it for anything: `[[load]]` says what hosts do, with a `door` and a `volume`, or with \
                   a `store`";
        return Err(bad_input(format!("{}: {why}", file.display())));
    }
    let whole = std::path::absolute(file).map_err(failed_at(file))?;
    let sites = stores::sites(&rack, whole.parent().unwrap_or(Path::new("/")))?;
    let root = output::place(arguments.output.out.as_ref(), &load::stem(file));
    if rack.loads.is_empty() {
        output::create(&root, arguments.output.force, &Marker::new("run"))?;
        let is_refused = |failure: &Failure| matches!(failure, Failure::BadInput(_));
        let done = run_stores(arguments, sites, &root);
        return done.inspect_err(|failure| {
            if is_refused(failure) {
                output::discard(&root)
            }
        });
    }
    let volumes = run_volumes(arguments, &rack, &root)?;
    let stores = run_stores(arguments, sites, &root)?;
    Ok(Done { text: volumes.text + &stores.text, end: volumes.end.and(stores.end), root })
}

/// Simulates JBOFs with their stores, one after the other: each has its own hardware. One that does
/// not end well is the last.
fn run_stores(arguments: &RunArguments, sites: Vec<stores::Site>, root: &Path) -> Result<Done, Failure> {
    let mut all = Done { root: root.into(), text: String::new(), end: Ok(()) };
    for stores::Site { name, text } in sites {
        let file = root.join(format!("{name}.toml"));
        write(&file, &text)?;
        let done = campaign::run::run(&of_store(arguments, file, text, (root, &name)), &Terminal)?;
        all.text += &done.text;
        all.end = done.end;
        if all.end.is_err() {
            break;
        }
    }
    Ok(all)
}

/// The same command for the experiment of a store.
fn of_store(arguments: &RunArguments, file: PathBuf, text: String, (root, name): (&Path, &str)) -> RunArguments {
    let RunArguments { source, seeds, long, wire, history, spans, rows_per_part, format, export, .. } = arguments;
    RunArguments {
        source: SourceArguments { file, text: Some(text), scale: source.scale, settings: source.settings.clone() },
        seeds: SeedArguments { seed: seeds.seed, seeds: seeds.seeds.clone() },
        output: OutputArguments { out: Some(root.join(name)), force: false },
        long: *long,
        wire: *wire,
        history: *history,
        spans: *spans,
        own: arguments.own.clone(),
        rows_per_part: *rows_per_part,
        format: *format,
        export: export.as_ref().map(|folder| folder.join(name)),
    }
}

/// Simulates volumes with their servers and doors.
fn run_volumes(arguments: &RunArguments, rack: &Rack, root: &Path) -> Result<Done, Failure> {
    let file = &arguments.source.file;
    let seed = checked(arguments)?;
    for server in rack.storage.iter().filter(|server| server.flash.read == Span::ZERO) {
        let name = &server.name;
        say(format_args!(
            "warning: `{name}` reads flash in no time: `flash.read` is 0, which is what a file takes, live"
        ));
    }
    let model = rack.model.as_deref().map_or_else(|| Ok(Model::of_hardware()), read_model)?;
    output::create(root, arguments.output.force, &Marker::new("run"))?;
    let load = planned_load(rack, Seed(seed));
    let done = simulate(rack, &first_lives(rack), &load, &model, Seed(seed)).map_err(|error| match error {
        TwinError::Lacking(why) => bad_input(why),
        error => Failure::Failed(error.to_string()),
    })?;
    let measured = measured(&done);
    let report = report(seed, &done, &measured);
    let records = root.join(format!("seed-{seed}/records"));
    rows::write_rows(&records, rack, done.requests.all(), &measured)?;
    write_json(&root.join("run.json"), &report)?;
    write_json(&root.join("model.json"), &model)?;
    page(root, file, &report)?;
    let text = match arguments.format {
        Form::Json => json(&report),
        _ => format!("{}results    {}\npage       {}\n", shown(&report), root.display(), root.join(INDEX).display()),
    };
    Ok(Done { end: verdict(&report), root: root.into(), text })
}

/// The seed. Options of other experiments are errors.
fn checked(arguments: &RunArguments) -> Result<u64, Failure> {
    let refused = [
        ("--scale", arguments.source.scale.is_some()),
        ("--set", !arguments.source.settings.is_empty()),
        ("--wire", arguments.wire),
        ("--history", arguments.history),
        ("--spans", arguments.spans != Keep::Nothing),
        ("--export", arguments.export.is_some()),
        ("--format csv", matches!(arguments.format, Form::Csv)),
    ];
    if let Some((option, _)) = refused.iter().find(|(_, is_given)| *is_given) {
        return Err(bad_input(format!("{option}: not with the volumes of a rack")));
    }
    match arguments.seeds.chosen().unwrap_or_else(|| vec![1])[..] {
        [seed] => Ok(seed),
        _ => Err(bad_input("--seeds: one seed at a time with the volumes of a rack".to_owned())),
    }
}

/// Whether each request is measured: those that fill a volume are not.
fn measured(done: &Simulated) -> Vec<bool> {
    let mut seen = BTreeMap::new();
    let is_measured = |request: &Request| {
        let count: &mut usize = seen.entry(request.door).or_default();
        *count += 1;
        *count > done.filled.get(&request.door).copied().unwrap_or(0)
    };
    done.requests.all().iter().map(is_measured).collect()
}

fn report(seed: u64, done: &Simulated, measured: &[bool]) -> Report {
    let all = done.requests.all().iter().zip(measured);
    let measured: Vec<&Request> = all.filter_map(|(request, measured)| measured.then_some(request)).collect();
    let begin = measured.iter().map(|request| request.asked).min().unwrap_or_default();
    let end = measured.iter().filter_map(|request| request.ended).map(|(at, _)| at).max().unwrap_or(begin);
    let seconds = end.saturating_since(begin).as_secs_f64();
    let good = measured.iter().filter(|request| request.total().is_some()).count();
    let counters = done.numbers.iter().filter_map(|(role, all)| {
        let all: BTreeMap<String, u64> = all
            .iter()
            .filter(|(name, value)| compare::is_decision(name) && **value > 0)
            .map(|(n, v)| (n.clone(), *v))
            .collect();
        (!all.is_empty()).then(|| (role.clone(), all))
    });
    Report {
        seed,
        seconds,
        requests: measured.len() as u64,
        failed: (measured.len() - good) as u64,
        open: done.open,
        per_second: if seconds > 0.0 { good as f64 / seconds } else { 0.0 },
        redirected: measured.iter().filter(|request| !request.is_write && request.is_redirected()).count() as u64,
        times: compare::sorted_times(&measured).into_iter().map(Times::of).collect(),
        counters: counters.collect(),
    }
}

impl Times {
    fn of((operation, span, sorted): (&'static str, &'static str, Vec<u64>)) -> Times {
        let percentiles_ns = PERCENTILES.iter().map(|(name, share)| (*name, percentile(&sorted, *share))).collect();
        let mean_ns = sorted.iter().sum::<u64>() / sorted.len().max(1) as u64;
        Times { operation, span, count: sorted.len(), mean_ns, percentiles_ns, sorted }
    }
}

fn shown(report: &Report) -> String {
    let head: Vec<&str> = ["", "span", "count", "mean"].into_iter().chain(PERCENTILES.map(|(name, _)| name)).collect();
    let mut rows = text::table(&head);
    for times in &report.times {
        let all = PERCENTILES.map(|(name, _)| text::time(times.percentiles_ns[name]));
        let front =
            [times.operation.to_owned(), times.span.to_owned(), times.count.to_string(), text::time(times.mean_ns)];
        rows.add_row(front.into_iter().chain(all));
    }
    let Report { requests, seconds, per_second, redirected, .. } = report;
    let mut told = format!(
        "{requests} pages in {}, {per_second:.0} a second; {redirected} reads redirected\n\n{}\n",
        text::time((seconds * 1e9) as u64),
        text::shown(rows, 2)
    );
    if !report.counters.is_empty() {
        let mut rows = text::table(&["role", "decision", "count"]);
        for (role, all) in &report.counters {
            for (name, value) in all {
                rows.add_row([role.clone(), name.clone(), value.to_string()]);
            }
        }
        told += &format!("\n{}\n", text::shown(rows, 2));
    }
    told + "\n"
}

fn page(root: &Path, file: &Path, report: &Report) -> Result<(), Failure> {
    let figure = |times: &Times| {
        let drawn = compare::drawn(&times.sorted);
        let points = PERCENTILES.map(|(name, _)| format!("{name} {}", text::time(times.percentiles_ns[name])));
        let caption = format!("Cumulative: of {}, those that took no longer. {}.", times.count, points.join(", "));
        super::page::figure((times.operation, times.span), caption, &[("simulated", &drawn)])
    };
    let readme = format!(
        "A rack, simulated: {} pages, {:.0} a second. `run.json` has all numbers, `model.json` links and roles.\n",
        report.requests, report.per_second
    );
    let figures = report.times.iter().map(figure).collect();
    let section = Section { experiment: file.display().to_string(), readme, figures, ..Section::default() };
    let input = PageInput { title: "A simulated rack".into(), sections: vec![section], ..PageInput::default() };
    write_pages(root, &input, None)
}

fn verdict(report: &Report) -> Result<(), Failure> {
    let Report { failed, open, requests, .. } = report;
    if *open > 0 {
        return Err(Failure::Partial(format!("{open} requests had no end when the simulation ended")));
    }
    if *failed > 0 {
        return Err(Failure::Failed(format!("{failed} of {requests} requests failed")));
    }
    Ok(())
}
