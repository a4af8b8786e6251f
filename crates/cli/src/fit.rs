//! `rackweave fit`: a drive's model, fitted to what fio measured.

use crate::VERSION;
use crate::arguments::FitArguments;
use crate::failure::{Failure, bad_input, print};
use crate::output::write;
use base::{Rate, Seed, Span};
use campaign::terminal::say;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets::NOTHING};
use hardware::ssd::presets::{DriveConfig, PRESETS, Preset, preset};
use hardware::ssd::{
    ClosedLoad, Fit, FitPoint, FitRequest, FittedPoint, Free, Outcome, Parameter, Range, SolidStateConfig,
    WrittenState, fit as fit_drive, read_fio,
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// Seed of the addresses that the model draws: the same measurement gives the same fit.
const SEED: Seed = Seed(1);

/// The mean error on the points that were used above which a fit is called poor. Ours.
const POOR: f64 = 0.05;

/// Fits, prints the results, and writes the drive if requested.
pub fn fit(arguments: &FitArguments) -> Result<(), Failure> {
    let (preset, start) = start(&arguments.preset)?;
    let free = free(arguments.parameters.as_deref())?;
    let measured = measured(arguments)?;
    let is_used = used(&arguments.hold_out, &measured.points)?;
    let state = if arguments.state == "fresh" { WrittenState::Fresh } else { WrittenState::Steady };
    let point_error = arguments.point_error / 100.0;
    let request = FitRequest { start, points: measured.points, is_used, free, state, point_error, seed: SEED };
    let fitted = fit_drive(&request).map_err(bad_input)?;
    if let Some(path) = &arguments.out {
        write(path, document(preset, arguments, &measured.inputs, &fitted)?)?;
    }
    print(&report(preset, &fitted))?;
    if let Some((mean, _)) = fitted.errors(true).filter(|(mean, _)| *mean > POOR) {
        let mean = mean * 100.0;
        say(format_args!(
            "warning: even the points that were used are {mean:.1} % off: {name} with other numbers is no good model of this drive",
            name = preset.name
        ));
    }
    Ok(())
}

fn start(name: &str) -> Result<(&'static Preset, SolidStateConfig), Failure> {
    let is_flash = |preset: &&Preset| matches!((preset.config)(SEED), DriveConfig::SolidState(_));
    let names: Vec<&str> = PRESETS.iter().filter(is_flash).map(|preset| preset.name).collect();
    let found = preset(name);
    let found = found.ok_or_else(|| bad_input(format!("--preset {name}: allowed are {}", names.join(", "))))?;
    match (found.config)(SEED) {
        DriveConfig::SolidState(config) => Ok((found, config)),
        DriveConfig::Direct(_) => Err(bad_input(format!(
            "--preset {name}: it is written in place and has no flash to be fitted; allowed are {}",
            names.join(", ")
        ))),
    }
}

fn free(names: Option<&[String]>) -> Result<Free, Failure> {
    let Some(names) = names else { return Ok(Free::Determined) };
    let all = Parameter::ALL.map(Parameter::name).join(", ");
    let of_name = |name: &String| {
        Parameter::of_name(name.trim()).ok_or_else(|| bad_input(format!("--parameters {name}: allowed are {all}")))
    };
    names.iter().map(of_name).collect::<Result<_, _>>().map(Free::These)
}

/// The measurement, and its identity.
struct Measured {
    points: Vec<FitPoint>,
    inputs: Vec<Input>,
}

/// A file of fio.
#[derive(Serialize)]
struct Input {
    file: String,
    sha256: String,
    fio: String,
}

fn measured(arguments: &FitArguments) -> Result<Measured, Failure> {
    let mut measured = Measured { points: Vec::new(), inputs: Vec::new() };
    for path in &arguments.files {
        measured.add(path)?;
    }
    Ok(measured)
}

impl Measured {
    fn add(&mut self, path: &Path) -> Result<(), Failure> {
        let file = path.display().to_string();
        let bytes = fs::read(path).map_err(|error| bad_input(format!("{file}: {error}")))?;
        let run = read_fio(bytes.as_slice()).map_err(|error| bad_input(format!("{file}: {error}")))?;
        for warning in run.warnings {
            say(format_args!("warning: {file}: {warning}"));
        }
        for mut point in run.points {
            point.name = self.free_name(&point.name);
            self.points.push(point);
        }
        self.inputs.push(Input { file, sha256: hex(&Sha256::digest(&bytes)), fio: run.version });
        Ok(())
    }
    /// The name, with a number when another file has used it.
    fn free_name(&self, name: &str) -> String {
        let is_taken = |name: &str| self.points.iter().any(|point| point.name == name);
        let mut numbered = (2..).map(|number| format!("{name}#{number}"));
        if is_taken(name) { numbered.find(|name| !is_taken(name)).unwrap_or_default() } else { name.to_owned() }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Which points the fit may use.
fn used(hold_out: &str, points: &[FitPoint]) -> Result<Vec<bool>, Failure> {
    match hold_out {
        "none" => Ok(vec![true; points.len()]),
        "alternate" => Ok(alternate(points)),
        names => named(names, points),
    }
}

/// Every second point of each sweep of depths is held out, and never its ends.
fn alternate(points: &[FitPoint]) -> Vec<bool> {
    let mut is_used = vec![true; points.len()];
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|index| points[*index].load.depth);
    order.sort_by_key(|index| sweep(&points[*index].load));
    for sweep in order.chunk_by(|one, other| sweep(&points[*one].load) == sweep(&points[*other].load)) {
        let inner = sweep.len().saturating_sub(1);
        sweep.iter().take(inner).skip(1).step_by(2).for_each(|index| is_used[*index] = false);
    }
    is_used
}

/// The common properties of the points of one sweep: pattern and size.
fn sweep(load: &ClosedLoad) -> (&'static str, u64) {
    (pattern(load), load.bytes.count())
}

fn named(names: &str, points: &[FitPoint]) -> Result<Vec<bool>, Failure> {
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let known: Vec<&str> = points.iter().map(|point| point.name.as_str()).collect();
    match names.iter().find(|name| !known.contains(name)) {
        Some(name) => {
            Err(bad_input(format!("--hold-out {name}: allowed are none, alternate, and {}", known.join(", "))))
        }
        None => Ok(known.iter().map(|name| !names.contains(name)).collect()),
    }
}

fn pattern(load: &ClosedLoad) -> &'static str {
    match (load.reads(), load.writes()) {
        (true, false) => "randread",
        (false, _) => "randwrite",
        (true, true) => "randrw",
    }
}

/// The printed report.
fn report(preset: &Preset, fit: &Fit) -> String {
    let held = fit.parameters.iter().filter_map(|parameter| match &parameter.outcome {
        Outcome::Held(reason) => Some(format!("{} is held: {reason}\n", parameter.parameter)),
        Outcome::Fitted => None,
    });
    let held: String = held.collect();
    let (parameters, points) = (parameters(fit), points(&fit.points));
    format!("{} ({})\n\n{parameters}\n{held}\n{points}\n{}", preset.name, preset.source, verdict(fit))
}

fn parameters(fit: &Fit) -> String {
    let rows = fit.parameters.iter().map(|parameter| {
        let shown = |value: f64| {
            if parameter.parameter == Parameter::Dies { format!("{value}") } else { format!("{value:.2}") }
        };
        let value = match parameter.outcome {
            Outcome::Fitted => shown(parameter.value),
            Outcome::Held(_) => format!("{} (held)", shown(parameter.value)),
        };
        let range = parameter.range.map_or("any".into(), |range| ends(range, shown));
        let name = parameter.parameter.to_string();
        [name, shown(parameter.start), value, parameter.parameter.unit().into(), range]
    });
    table(["parameter", "start", "fitted", "", "the points allow (95 %)"], rows.collect(), &[1, 2])
}

/// A range; an end that the points do not set is left out.
fn ends(range: Range, shown: impl Fn(f64) -> String) -> String {
    match (range.is_open_below, range.is_open_above) {
        (true, true) => "any".into(),
        (true, false) => format!("up to {}", shown(range.high)),
        (false, true) => format!("{} and more", shown(range.low)),
        (false, false) if range.low == range.high => format!("{} alone", shown(range.low)),
        (false, false) => format!("{} to {}", shown(range.low), shown(range.high)),
    }
}

fn points(points: &[FittedPoint]) -> String {
    let rows = points.iter().map(|fitted| {
        let FitPoint { name, load, iops, .. } = &fitted.point;
        [
            name.clone(),
            pattern(load).into(),
            load.bytes.to_string(),
            load.depth.to_string(),
            if fitted.is_used { "used" } else { "held out" }.into(),
            format!("{iops:.0}"),
            format!("{:.0}", fitted.model_iops),
            format!("{:+.1} %", fitted.error() * 100.0),
        ]
    });
    let head = ["point", "pattern", "size", "depth", "fit", "measured/s", "model/s", "error"];
    table(head, rows.collect(), &[2, 3, 5, 6, 7])
}

fn table<const COLUMNS: usize>(head: [&str; COLUMNS], rows: Vec<[String; COLUMNS]>, right: &[usize]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head).add_rows(rows);
    for index in right {
        if let Some(column) = table.column_mut(*index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim())).collect()
}

/// The errors in two lines.
fn verdict(fit: &Fit) -> String {
    let line = |is_used: bool, whose: &str| {
        let points = fit.points.iter().filter(|point| point.is_used == is_used);
        let worst = points.clone().max_by(|one, other| one.error().abs().total_cmp(&other.error().abs()))?;
        let (mean, largest) = fit.errors(is_used)?;
        let (mean, largest, count) = (mean * 100.0, largest * 100.0, points.count());
        let name = &worst.point.name;
        let noun = if count == 1 { "point" } else { "points" };
        Some(format!("error on the {count} {noun} {whose}: mean {mean:.1} %, largest {largest:.1} % ({name})\n"))
    };
    let none = || "no point was held out: nothing says how well the fit predicts\n".to_owned();
    let used = line(true, "that the fit used").unwrap_or_default();
    line(false, "that the fit did not use").unwrap_or_else(none) + &used
}

/// The file that is written.
#[derive(Serialize)]
struct Document<'a> {
    flash: Flash<'a>,
    fit: Provenance<'a>,
}

/// The drive: a preset, and what is different.
#[derive(Serialize)]
struct Flash<'a> {
    preset: &'a str,
    dies_per_channel: u32,
    /// Array time of each kind of page.
    read: Vec<Span>,
    program: Vec<Span>,
    channel: Rate,
    read_firmware: Span,
    write_firmware: Span,
}

/// The source of the numbers.
#[derive(Serialize)]
struct Provenance<'a> {
    version: &'a str,
    state: &'a str,
    fitted: Vec<Parameter>,
    held_out: Vec<&'a str>,
    used_error_mean: f64,
    used_error_largest: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_error_mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_error_largest: Option<f64>,
    input: &'a [Input],
}

fn document(preset: &Preset, arguments: &FitArguments, inputs: &[Input], fit: &Fit) -> Result<String, Failure> {
    let config = &fit.config;
    let flash = Flash {
        preset: preset.name,
        dies_per_channel: config.geometry.dies_per_channel,
        read: config.timing.pages.iter().map(|page| page.read).collect(),
        program: config.timing.pages.iter().map(|page| page.program).collect(),
        channel: config.timing.channel,
        read_firmware: config.firmware.read.command,
        write_firmware: config.firmware.write.command,
    };
    let document = Document { flash, fit: provenance(arguments, inputs, fit) };
    let text = toml::to_string(&document).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(format!("# {}, fitted by rackweave {VERSION}; errors are shares of what was measured.\n{text}", preset.name))
}

fn provenance<'a>(arguments: &'a FitArguments, inputs: &'a [Input], fit: &'a Fit) -> Provenance<'a> {
    let fitted = fit.parameters.iter().filter(|parameter| parameter.outcome == Outcome::Fitted);
    let held_out = fit.points.iter().filter(|point| !point.is_used);
    let (used_error_mean, used_error_largest) = fit.errors(true).unwrap_or_default();
    Provenance {
        version: VERSION,
        state: &arguments.state,
        fitted: fitted.map(|parameter| parameter.parameter).collect(),
        held_out: held_out.map(|point| point.point.name.as_str()).collect(),
        used_error_mean: rounded(used_error_mean),
        used_error_largest: rounded(used_error_largest),
        held_out_error_mean: fit.errors(false).map(|(mean, _)| rounded(mean)),
        held_out_error_largest: fit.errors(false).map(|(_, largest)| rounded(largest)),
        input: inputs,
    }
}

/// To six digits behind the point: what follows is noise of binary fractions.
fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Bytes;
    use hardware::ssd::FittedParameter;

    fn point(depth: u32) -> FitPoint {
        let load = ClosedLoad { read_share: 1.0, bytes: Bytes::kib(4), depth };
        FitPoint { name: format!("qd{depth}"), load, iops: 10_000.0, latency: Span::us(100) * u64::from(depth) }
    }

    #[test]
    fn every_second_point_inside_each_sweep_is_held_out_whatever_their_order() {
        let shuffled: Vec<FitPoint> = [8, 1, 4, 2, 16].map(point).into();
        assert_eq!(alternate(&shuffled), [false, true, true, false, true]);
        let mut two_sizes: Vec<FitPoint> = [1, 2, 4, 1, 2].map(point).into();
        two_sizes[3..].iter_mut().for_each(|point| point.load.bytes = Bytes::kib(64));
        assert_eq!(alternate(&two_sizes), [true, false, true, true, true]);
        assert_eq!(alternate(&[point(1)]), [true]);
    }

    #[test]
    fn the_tables_look_like_this() {
        let (preset, config) = start("970-pro").unwrap();
        let fitted = |depth, is_used, model_iops| FittedPoint { point: point(depth), is_used, model_iops };
        let of = |parameter: Parameter, value, range: Option<[f64; 2]>, outcome| FittedParameter {
            parameter,
            start: parameter.value(&config),
            value,
            range: range.map(|[low, high]| Range { low, high, is_open_below: false, is_open_above: high > 1e3 }),
            outcome,
        };
        let fit = Fit {
            parameters: vec![
                of(Parameter::ArrayRead, 41.5, Some([40.9, 42.1]), Outcome::Fitted),
                of(Parameter::Program, 185.0, None, Outcome::Held("no reason".into())),
                of(Parameter::Channel, 800.0, Some([300.0, 8000.0]), Outcome::Held("a reason".into())),
                of(Parameter::Dies, 3.0, Some([3.0, 3.0]), Outcome::Fitted),
            ],
            points: vec![fitted(1, true, 10_100.0), fitted(2, false, 9_700.0), fitted(128, true, 10_000.0)],
            config,
        };
        let expected = "\
parameter    start         fitted             the points allow (95 %)
array-read   35.76          41.50  us         40.90 to 42.10
program     185.00  185.00 (held)  us         any
channel     800.00  800.00 (held)  MB/s       300.00 and more
dies             2              3  a channel  3 alone

program is held: no reason
channel is held: a reason

point  pattern   size  depth  fit       measured/s  model/s   error
qd1    randread  4KiB      1  used           10000    10100  +1.0 %
qd2    randread  4KiB      2  held out       10000     9700  -3.0 %
qd128  randread  4KiB    128  used           10000    10000  +0.0 %

error on the 1 point that the fit did not use: mean 3.0 %, largest 3.0 % (qd2)
error on the 2 points that the fit used: mean 0.5 %, largest 1.0 % (qd1)
";
        let printed = report(preset, &fit);
        let (head, tables) = printed.split_once("\n\n").unwrap();
        assert!(head.starts_with("970-pro (Samsung 970 Pro"), "{head}");
        assert_eq!(tables, expected);
    }
}
