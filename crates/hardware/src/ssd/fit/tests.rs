//! Does the fit find what is known to be there, and does it keep silent about what cannot be known.

use super::*;
use crate::ssd::drive::{Command, CommandKind, Pattern, Precondition, SolidState, Steady};
use crate::ssd::presets::tlc_gen4;
use base::{Rate, Stream, Time};

/// A small drive: 4 channels of 2 dies.
fn start() -> SolidStateConfig {
    let mut config = tlc_gen4(Seed(3));
    config.geometry.channels = 4;
    config.geometry.dies_per_channel = 2;
    config.geometry.blocks_per_plane = 64;
    config.buffer.capacity = Bytes::kib(1 << 10);
    config
}

/// What the start does not know.
fn truth() -> SolidStateConfig {
    let mut config = start();
    for parameter in [Parameter::ArrayRead, Parameter::Program] {
        parameter.moved(&mut config, &start(), 1.35f64.ln());
    }
    config.firmware.read.command = Span::us(14);
    config.firmware.write.command = Span::us(9);
    config
}

fn load(read_share: f64, kib: u64, depth: u32) -> ClosedLoad {
    ClosedLoad { read_share, bytes: Bytes::kib(kib), depth }
}

/// Measures a drive, with other addresses than the fit draws.
fn measured(config: &SolidStateConfig, loads: &[ClosedLoad], mut noise: impl FnMut() -> f64) -> Vec<FitPoint> {
    let point = |load: &ClosedLoad| {
        let iops = predict(config, *load, WrittenState::Steady, Seed(77)).expect("the drive can do this") * noise();
        let latency = Span::from_ps_f64(f64::from(load.depth) / iops * 1e12);
        let name = format!("{}-{}-{}", load.read_share, load.bytes, load.depth);
        FitPoint { name, load: *load, iops, latency }
    };
    loads.iter().map(point).collect()
}

fn request(points: Vec<FitPoint>) -> FitRequest {
    FitRequest {
        start: start(),
        is_used: vec![true; points.len()],
        points,
        free: Free::Determined,
        state: WrittenState::Steady,
        point_error: 0.01,
        seed: Seed(1),
    }
}

/// Every second point is held out.
fn alternating(points: Vec<FitPoint>) -> FitRequest {
    let is_used = (0..points.len()).map(|index| index % 2 == 0).collect();
    FitRequest { is_used, ..request(points) }
}

fn reads(depths: &[u32]) -> Vec<ClosedLoad> {
    depths.iter().map(|depth| load(1.0, 4, *depth)).collect()
}

fn found(fit: &Fit, parameter: Parameter) -> &FittedParameter {
    fit.parameters.iter().find(|found| found.parameter == parameter).expect("every parameter is told")
}

#[track_caller]
fn assert_found(fit: &Fit, parameter: Parameter, tolerance: f64) {
    let (found, true_value) = (found(fit, parameter), parameter.value(&truth()));
    assert!(found.outcome == Outcome::Fitted, "{found:?}");
    assert!((found.value / true_value - 1.0).abs() < tolerance, "{found:?}, and the truth is {true_value}");
}

#[test]
fn a_sweep_that_the_model_made_is_recovered_and_the_points_between_are_predicted() {
    let points = measured(&truth(), &reads(&[1, 2, 4, 6, 8, 12, 16, 24, 64]), || 1.0);
    let fit = fit(&alternating(points)).expect("a sweep can be fitted");
    assert_found(&fit, Parameter::ArrayRead, 0.04);
    assert_found(&fit, Parameter::ReadFirmware, 0.2);
    assert_found(&fit, Parameter::Dies, 0.01);
    assert_eq!(found(&fit, Parameter::Program).outcome, Outcome::Held("no point that is used writes".into()));
    let (mean, largest) = fit.errors(false).expect("four points were held out");
    assert!(mean < 0.015 && largest < 0.03, "{mean} {largest}");
}

#[test]
fn noise_of_a_percent_moves_the_fit_by_a_few() {
    let mut stream = Seed(5).stream("noise");
    let mut noise = move || 1.0 + 0.01 * gauss(&mut stream);
    let points = measured(&truth(), &reads(&[1, 2, 4, 6, 8, 12, 16, 24, 64]), &mut noise);
    let these = vec![Parameter::ArrayRead, Parameter::ReadFirmware];
    let fit = fit(&FitRequest { free: Free::These(these), ..alternating(points) }).expect("a sweep can be fitted");
    assert_found(&fit, Parameter::ArrayRead, 0.08);
    let (mean, _) = fit.errors(false).expect("four points were held out");
    assert!(mean < 0.03, "{mean}");
}

#[test]
fn a_wrong_number_of_dies_is_put_right() {
    let mut four = truth();
    four.geometry.dies_per_channel = 4;
    let points = measured(&four, &reads(&[1, 8, 16, 32, 128]), || 1.0);
    let these = vec![Parameter::ArrayRead, Parameter::Dies];
    let mut request = FitRequest { free: Free::These(these), ..request(points) };
    request.start.firmware.read = four.firmware.read;
    let fit = fit(&request).expect("saturation tells dies");
    assert_eq!(found(&fit, Parameter::Dies).value, 4.0);
    assert_found(&fit, Parameter::ArrayRead, 0.04);
}

#[test]
fn sizes_of_commands_and_a_busy_channel_tell_its_rate() {
    let mut slow = start();
    slow.timing.channel = Rate::bps(200 * 8_000_000);
    let loads = [load(1.0, 4, 1), load(1.0, 16, 1), load(1.0, 16, 8), load(1.0, 16, 32)];
    let points = measured(&slow, &loads, || 1.0);
    let these = vec![Parameter::ArrayRead, Parameter::Channel];
    let fit = fit(&FitRequest { free: Free::These(these), ..request(points) }).expect("two sizes tell the rate");
    let channel = found(&fit, Parameter::Channel);
    assert!((channel.value / 200.0 - 1.0).abs() < 0.06, "{channel:?}");
}

#[test]
fn writes_in_steady_state_tell_the_program() {
    let points = measured(&truth(), &[load(0.0, 4, 8)], || 1.0);
    let fit = fit(&FitRequest { free: Free::These(vec![Parameter::Program]), ..request(points) });
    assert_found(&fit.expect("programs are the bottleneck"), Parameter::Program, 0.06);
}

#[test]
fn writes_into_a_fresh_drive_at_depth_1_tell_the_firmware() {
    let fresh = |config: &SolidStateConfig| {
        predict(config, load(0.0, 4, 1), WrittenState::Fresh, Seed(77)).expect("the drive can do this")
    };
    // Programs that take hardly any time leave the controller alone with the command.
    let quick = |mut config: SolidStateConfig| {
        config.timing.pages.iter_mut().for_each(|page| page.program = Span::us(20));
        config
    };
    let point = FitPoint {
        name: "write".into(),
        load: load(0.0, 4, 1),
        iops: fresh(&quick(truth())),
        latency: Span::from_ps_f64(1e12 / fresh(&quick(truth()))),
    };
    let these = Free::These(vec![Parameter::WriteFirmware]);
    let request = FitRequest { start: quick(start()), free: these, state: WrittenState::Fresh, ..request(vec![point]) };
    assert_found(&fit(&request).expect("one point tells one time"), Parameter::WriteFirmware, 0.02);
}

#[test]
fn depth_1_alone_tells_the_sum_only_and_the_array_gets_it() {
    let points = measured(&truth(), &reads(&[1]), || 1.0);
    let fit_all = fit(&request(points.clone())).expect("one parameter is told");
    assert!(found(&fit_all, Parameter::ArrayRead).outcome == Outcome::Fitted);
    for held in [Parameter::ReadFirmware, Parameter::Channel, Parameter::Dies] {
        let parameter = found(&fit_all, held);
        assert!(matches!(parameter.outcome, Outcome::Held(_)) && parameter.value == parameter.start, "{parameter:?}");
    }
    assert!(fit_all.errors(true).expect("one point was used").1 < 0.01);
    let both = Free::These(vec![Parameter::ArrayRead, Parameter::ReadFirmware]);
    let error =
        fit(&FitRequest { free: both, ..request(points) }).expect_err("one number does not tell two").to_string();
    assert!(error.contains("read-firmware") && error.contains("cannot distinguish it from array-read"), "{error}");
}

#[test]
fn what_is_asked_for_and_cannot_be_is_refused() {
    let points = measured(&truth(), &reads(&[1, 8]), || 1.0);
    let these = |parameter| FitRequest { free: Free::These(vec![parameter]), ..request(points.clone()) };
    let error = |request: FitRequest| fit(&request).expect_err("it cannot be fitted").to_string();
    assert_eq!(error(these(Parameter::Program)), "program cannot be fitted: no point that is used writes");
    let unused = FitRequest { is_used: vec![false; 2], ..request(points.clone()) };
    assert_eq!(error(unused), "no point is used: 2 were given, 2 of them held out");
    let mut still = request(points.clone());
    still.points[1].iops = 0.0;
    assert_eq!(error(still), "1-4KiB-8: iops is 0, and a number above 0 is needed");
    for (depth, is_allowed) in [(0, false), (1, true), (4096, true), (4097, false)] {
        let load = ClosedLoad { depth, ..load(1.0, 4, 1) };
        assert_eq!(check_load("point", &load).is_ok(), is_allowed, "{depth}");
    }
}

#[test]
fn the_same_request_gives_the_same_fit() {
    let points = measured(&truth(), &reads(&[1, 8, 32]), || 1.0);
    let request = FitRequest { free: Free::These(vec![Parameter::ArrayRead]), ..request(points) };
    assert_eq!(fit(&request).expect("it can be fitted"), fit(&request).expect("it can be fitted"));
}

#[test]
fn the_smaller_drive_reads_and_writes_as_fast_as_the_whole() {
    let mut whole = start();
    whole.geometry.channels = 2;
    whole.geometry.dies_per_channel = 1;
    whole.geometry.planes_per_die = 1;
    whole.geometry.blocks_per_plane = 400;
    whole.geometry.pages_per_block = 192;
    for loaded in [load(0.0, 4, 4), load(1.0, 4, 4)] {
        let state = Pattern::Fragmented(Steady { window: 0.33, windows: 3, tolerance: 0.05, windows_max: 60 });
        let mut drive = SolidState::new(whole.clone()).expect("the drive is sound");
        drive.precondition(Precondition { fill: 1.0, pattern: state }).expect("it gets steady");
        let own = closed_loop(&mut drive, loaded);
        let small = predict(&whole, loaded, WrittenState::Steady, Seed(9)).expect("the drive can do this");
        assert!((small / own - 1.0).abs() < 0.08, "{loaded:?}: {small} of the smaller, {own} of the whole");
    }
}

/// Commands a second of a drive, by the counts of a loop of its own.
fn closed_loop(drive: &mut SolidState, load: ClosedLoad) -> f64 {
    let mut stream = Seed(21).stream("whole");
    let mut ends = vec![Time::ZERO; load.depth as usize];
    let (warm, measured) = (4_000, 40_000);
    let mut began = Time::ZERO;
    for index in 0..warm + measured {
        ends.sort_unstable();
        let now = ends.remove(0);
        if index == warm {
            began = now;
        }
        let kind = if load.reads() { CommandKind::Read } else { CommandKind::Write };
        let address = stream.below(drive.capacity().count() / 4096) * 4096;
        ends.push(drive.submit(now, Command { kind, address, bytes: load.bytes }).expect("it is inside").end);
    }
    f64::from(measured) / (ends.iter().min().copied().expect("some are under way") - began).as_secs_f64()
}

/// A normal variate, near enough: twelve even ones less six.
fn gauss(stream: &mut Stream) -> f64 {
    (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
}

/// A drive that the fit does not know: each of these numbers is up to twice or half the preset's,
/// and dies are fewer or more.
fn unknown_drive(stream: &mut Stream, of: &[Parameter]) -> SolidStateConfig {
    let mut config = start();
    for parameter in of {
        parameter.moved(&mut config, &start(), (stream.unit() * 2.0 - 1.0) * std::f64::consts::LN_2);
    }
    if of.contains(&Parameter::Dies) {
        config.geometry.dies_per_channel = [1, 2, 4][stream.below(3) as usize];
    }
    config
}

/// How often the truth was within the range, and how often there was a range, by parameter.
type Coverage = std::collections::BTreeMap<Parameter, [u32; 2]>;

/// Measures a drive for so long that it does not hang on the addresses that were drawn, as fio
/// does, and with addresses of its own; the error is that of the measurement alone.
fn long_measured(number: u64, config: &SolidStateConfig, loads: &[ClosedLoad], stream: &mut Stream) -> Vec<FitPoint> {
    const RUNS: u64 = 16;
    let seeds = (number + 1) * RUNS..(number + 2) * RUNS;
    let mut points = measured(config, loads, || 1.0);
    for point in &mut points {
        let run = |seed| predict(config, point.load, WrittenState::Steady, Seed(seed)).expect("the drive can do this");
        point.iops = seeds.clone().map(run).sum::<f64>() / RUNS as f64 * (1.0 + 0.01 * gauss(stream));
    }
    points
}

/// Measures an unknown drive with errors of 1 %, fits it, and sees which ranges have the truth.
fn cover(number: u64, loads: &[ClosedLoad], of: &[Parameter], free: Free, coverage: &mut Coverage) -> Fit {
    let mut stream = Seed(number).stream("unknown drive");
    let unknown = unknown_drive(&mut stream, of);
    let points = long_measured(number, &unknown, loads, &mut stream);
    let found = fit(&FitRequest { free, ..request(points) }).expect("reads tell something");
    for told in &found.parameters {
        if let Some(range) = told.range {
            let [within, all] = coverage.entry(told.parameter).or_default();
            *within += u32::from(range.contains(told.parameter.value(&unknown)));
            *all += 1;
        }
    }
    found
}

/// Largest difference between answers of benches with other addresses to one drive, as ln.
fn scatter(load: ClosedLoad, make: impl Fn(u64) -> Bench) -> f64 {
    let answers = (0..6).map(|seed| make(seed).iops(&truth(), load).expect("the drive can do this").ln());
    let (low, high) = answers.fold((f64::MAX, f64::MIN), |(low, high), answer| (low.min(answer), high.max(answer)));
    high - low
}

#[test]
fn answers_do_not_depend_on_the_addresses_once_these_are_allowed_for() {
    // Commands wait for dies: which of them are busy is a matter of luck.
    let load = load(1.0, 4, 16);
    let new = |seed| Bench::new(&truth(), &[load], WrittenState::Steady, Seed(seed)).expect("a sound drive");
    let at = |config: &SolidStateConfig, seed| Bench::at(config, &[load], WrittenState::Steady, Seed(seed));
    let of_draw = scatter(load, new);
    // Measured near another drive of the same dies, as in a search.
    let allowed = scatter(load, |seed| at(&start(), seed).expect("a sound drive"));
    let left = at(&start(), 0).expect("a sound drive").error(load);
    assert!(of_draw > 0.015 && allowed < 0.5 * of_draw, "{of_draw} {allowed}");
    assert!(left > 0.0 && allowed < 6.0 * left, "{allowed} of {left}");
}

#[test]
fn ranges_have_the_truth_in_most_of_ten_drives() {
    let loads = [load(1.0, 4, 1), load(1.0, 4, 8), load(1.0, 4, 64)];
    let of = [Parameter::ArrayRead];
    let mut coverage = Coverage::new();
    for number in 0..10 {
        cover(number, &loads, &of, Free::These(of.into()), &mut coverage);
    }
    // Of ten, less than 8 come by chance once in 90 where 95 % are meant.
    for (parameter, [within, all]) in coverage {
        assert!(all == 10 && within >= 8, "{parameter}: {within} of {all}");
    }
}

#[test]
fn a_channel_that_hardly_matters_has_an_open_range_and_no_tight_one() {
    // Small reads at depths at which dies are busy and channels are not.
    let points = measured(&truth(), &reads(&[1, 2, 8, 32]), || 1.0);
    let fit = fit(&request(points)).expect("a sweep can be fitted");
    let channel = found(&fit, Parameter::Channel);
    let (range, true_value) = (channel.range.expect("reads cross the channel"), Parameter::Channel.value(&truth()));
    assert!(matches!(channel.outcome, Outcome::Held(_)), "{channel:?}");
    assert!(range.contains(true_value) && (range.is_open_above || range.high > 2.0 * true_value), "{channel:?}");
}

/// 200 unknown drives, in an hour or more: `make fit-coverage`.
#[test]
#[ignore = "takes an hour: make fit-coverage"]
fn ranges_have_the_truth_in_95_percent_of_200_drives() {
    let deep = [1, 4, 16, 64].map(|depth| load(1.0, 4, depth));
    let large = [1, 16].map(|depth| load(1.0, 16, depth));
    let loads = [deep.as_slice(), &large].concat();
    let mut coverage = Coverage::new();
    for number in 0..200 {
        let found = cover(number, &loads, &Parameter::ALL, Free::Determined, &mut coverage);
        if number < 5 {
            println!("{:#?}", found.parameters);
        }
        println!("{number}: {coverage:?}");
    }
    for (parameter, [within, all]) in coverage {
        // Of 200, less than 184 come by chance once in 30 where 95 % are meant.
        assert!(all == 200 && within >= 184, "{parameter}: {within} of {all}");
    }
}
