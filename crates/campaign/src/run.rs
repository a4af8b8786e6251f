//! `rackweave run`: one point.

use crate::Done;
use crate::arguments::{Form, RunArguments};
use crate::console::Console;
use crate::estimate;
use crate::export;
use crate::failure::{Failure, bad_input};
use crate::labels;
use crate::load;
use crate::output::{self, Marker, json};
use crate::page::write_page;
use crate::play::{self, Playing, Task};
use plan::{DesignName, Plan};
use record::{Availability, Statistics, Summary};
use report::page::INDEX;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Plays the only point of the file and says what came of it.
///
/// # Errors
/// When the file is not valid, or its results cannot be written.
pub fn run(arguments: &RunArguments, console: &dyn Console) -> Result<Done, Failure> {
    let mut point = load::only_point(&arguments.source)?;
    arguments.own.mark(&mut point)?;
    if arguments.history && !has_history(&point.plan) {
        return Err(bad_input("--history: the design keeps no keys and values; scalio, leed and leed-ditto do"));
    }
    let root = root(arguments);
    let seeds = arguments.seeds.chosen();
    let labels = labels::of_points(std::slice::from_ref(&point)).remove(0);
    let task = Task::new(point.plan.title.clone(), root.clone(), point, labels, seeds.as_deref());
    play::refuse_endless([&task], arguments.long)?;
    arguments.export.as_ref().map_or(Ok(()), |_| export::check())?;
    estimate::announce([&task], true, console);
    output::create(&root, arguments.output.force, &Marker::new("run"))?;
    console.listen()?;
    let playing = Playing {
        rows_per_part: Some(arguments.rows_per_part),
        wire: arguments.wire,
        history: arguments.history,
        spans: arguments.spans,
        own: arguments.own.clone(),
    };
    let (meter, began) = (play::meter([&task], console), Instant::now());
    let played = play::play(&task, &root, &playing, &meter);
    meter.finish();
    let summary = played.inspect_err(|failure| discard_if_refused(&root, failure))?.map(|played| played.summary);
    let mut text = String::new();
    if let Some(summary) = &summary {
        meter.point_done(&task.name, summary, began.elapsed());
        let runs = [(task.name.clone(), root.clone())];
        write_page(&root, &task.name, std::slice::from_ref(summary), None, &runs, arguments.export.as_ref())?;
        text = match arguments.format {
            Form::Json => json(summary),
            Form::Csv => report::points::csv(&[(task.name.clone(), summary)]),
            Form::Table => {
                format!("{}results    {}\npage       {}\n", facts(summary), root.display(), root.join(INDEX).display())
            }
        };
    }
    let end = console.stop().outcome(&root).and_then(|()| match summary {
        Some(summary) if summary.partial => {
            Err(Failure::Partial(format!("the run ended early; its warnings in {} say why", root.display())))
        }
        _ => Ok(()),
    });
    Ok(Done { root, text, end })
}

/// The folder of the results.
pub(crate) fn root(arguments: &RunArguments) -> PathBuf {
    output::place(arguments.output.out.as_ref(), &load::stem(&arguments.source.file))
}

/// Bad input leaves nothing behind, when it is found late too.
fn discard_if_refused(root: &Path, failure: &Failure) {
    if matches!(failure, Failure::BadInput(_)) {
        output::discard(root);
    }
}

/// Whether the plan has keys and values.
fn has_history(plan: &Plan) -> bool {
    matches!(plan.design(), DesignName::Scalio | DesignName::Leed | DesignName::LeedDitto)
}

/// The summary in a few lines.
fn facts(summary: &Summary) -> String {
    let mut lines = vec![
        format!("plan       {}", summary.plan_hash),
        format!("design     {}, seeds {:?}", summary.design, summary.seeds),
    ];
    lines.extend(if summary.counts.offered > 0 { request_lines(summary) } else { metric_lines(summary) });
    lines.extend(summary.latency_ns.iter().map(|(operation, latency)| latency_line(operation, latency)));
    lines.extend(summary.warnings.iter().map(|warning| format!("warning    {warning}")));
    lines.join("\n") + "\n"
}

fn request_lines(summary: &Summary) -> Vec<String> {
    let Summary { counts, load, .. } = summary;
    let requests = format!(
        "requests   {} offered, {} finished, {} measured, {} timed out, {} rejected, {} lost, {} unavailable, {} unfinished",
        counts.offered,
        counts.finished,
        counts.measured,
        counts.timed_out,
        counts.rejected,
        counts.lost,
        counts.unavailable,
        counts.in_flight_at_end + counts.not_issued
    );
    let achieved = match load.achieved_gbps {
        none if none == 0.0 && counts.measured > 0 => "nothing finished while requests arrived".to_owned(),
        achieved => format!("{achieved:.3} Gb/s achieved"),
    };
    let load = format!("load       {:.3} Gb/s offered, {achieved}", load.offered_gbps);
    let available = available_line(summary.availability.as_ref());
    [requests, load].into_iter().chain(available).collect()
}

fn available_line(availability: Option<&Availability>) -> Option<String> {
    let Availability { first_fault_ns, requests, unserved, fraction, recovery_ns } = availability?;
    let recovery = match recovery_ns {
        Some(ns) => format!("the last of them {:.3} ms after the fault", ns / 1e6),
        None => "to the end".to_owned(),
    };
    let (percent, at) = (100.0 * fraction, first_fault_ns / 1e6);
    let lost = if *unserved == 0 { String::new() } else { format!(" ({unserved} of {requests} were not, {recovery})") };
    Some(format!("available  {percent:.4} % of requests since the first fault at {at:.3} ms were served{lost}"))
}

/// The output of a run without requests.
fn metric_lines(summary: &Summary) -> Vec<String> {
    summary.metrics.iter().map(|(name, value)| format!("metric     {name}: {value:.4}")).collect()
}

fn latency_line(operation: &str, latency: &Statistics) -> String {
    let interval = latency.mean_ci95.map_or(String::new(), |half| format!(" ± {half:.2}"));
    let Statistics { mean, p50, p99, p999, lower_bound_from, .. } = latency;
    let sign = |from: f64| if lower_bound_from.is_some_and(|least| from >= least) { ">= " } else { "" };
    let (of_p50, of_p99, of_p999) = (sign(0.5), sign(0.99), sign(0.999));
    format!(
        "latency    {operation}: mean {mean:.2}{interval} ns, p50 {of_p50}{p50:.2}, p99 {of_p99}{p99:.2}, \
         p99.9 {of_p999}{p999:.2}"
    )
}
