use super::*;
use crate::wear::{LocalConfig, SwapTrigger};
use base::{Bytes, Seed};

const YEAR: u32 = 365;

fn rackblox(arm: WearArm) -> WearConfig {
    WearConfig::rackblox(arm, Seed(1))
}

fn run(config: WearConfig) -> WearReport {
    WearModel::new(config).expect("these numbers are allowed").run()
}

fn last(report: &WearReport) -> WearSample {
    *report.last().expect("days were played")
}

/// One server of two drives with a vSSD each, of which the first writes `shares[0]` of its peak of
/// 10 drive writes a day and the second `shares[1]`.
fn pair(shares: [f64; 2], arm: WearArm) -> WearConfig {
    let workload = |write_share: f64| WearWorkload { name: String::new(), write_share, write_amplification: 1.0 };
    WearConfig {
        servers: 1,
        ssds: 2,
        vssds: 1,
        flash: DriveFlash { block: Bytes::new(100), blocks: 1_000, endurance: 30_000 },
        workloads: shares.map(workload).into(),
        peak_per_day: Bytes::new(1_000_000),
        rate_spread: 0.0,
        drift: 0.0,
        ..rackblox(arm)
    }
}

#[test]
fn a_drive_wears_by_its_writes_over_its_size() {
    let mut config = pair([0.5, 0.2], WearArm::NoSwap);
    config.workloads[0].write_amplification = 3.0;
    config.days = 100;
    let report = run(config);
    // 10 drive writes a day * 0.5 * 3 and 10 * 0.2 * 1, for 100 days.
    let snapshot = report.snapshots.last().expect("the last day has one");
    assert!((snapshot.erases[0] - 1_500.0).abs() < 1e-6 && (snapshot.erases[1] - 200.0).abs() < 1e-6, "{snapshot:?}");
    let sample = last(&report);
    assert!((sample.server_max - 1_500.0 / 850.0).abs() < 1e-9, "{sample:?}");
    assert_eq!((sample.server_max, sample.rack_servers), (sample.rack_ssds, 1.0));
    assert!((report.lifetime.used_max - 0.05).abs() < 1e-9);
}

#[test]
fn a_swap_moves_the_load_and_costs_both_drives_one_write() {
    let mut config = pair([0.3, 0.1], WearArm::Local);
    config.days = 13;
    let report = run(WearConfig { snapshot_days: 1, ..config });
    let erases = |day: usize| report.snapshots[day - 1].erases.clone();
    let is = |got: Vec<f64>, want: [f64; 2]| got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-9);
    assert!(is(erases(11), [33.0, 11.0]), "{:?}", erases(11));
    assert!(is(erases(12), [37.0, 13.0]), "{:?}", erases(12));
    assert!(is(erases(13), [38.0, 16.0]), "{:?}", erases(13));
    assert_eq!(report.swaps, SwapCounts { local: vec![1], global: 0, global_looks: 0 });
    assert!((report.lifetime.swaps_max - 1.0 / 30_000.0).abs() < 1e-12);
}

#[test]
fn spread_and_drift_leave_the_mean_rate_as_it_is() {
    let plain = run(WearConfig { rate_spread: 0.0, drift: 0.0, ..rackblox(WearArm::NoSwap) });
    let varied = run(rackblox(WearArm::NoSwap));
    let ratio = last(&varied).erases_mean / last(&plain).erases_mean;
    // 2,048 factors of standard deviation 0.2 / sqrt(3): their mean is within 0.0026 of 1, times
    // four for certainty.
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    assert_ne!(varied, plain);
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_seed_another() {
    let of = |seed| run(WearConfig { days: 100, ..WearConfig::rackblox(WearArm::LocalAndGlobal, Seed(seed)) });
    assert_eq!(of(5), of(5));
    assert_ne!(of(5), of(6));
}

#[test]
fn a_run_that_is_stopped_has_seen_the_days_before_alone() {
    let model =
        |days| WearModel::new(WearConfig { days, ..rackblox(WearArm::Local) }).expect("the numbers are allowed");
    let (stopped, short) = (model(100).run_while(|day| day <= 40), model(40).run());
    assert_eq!(stopped.samples, short.samples);
    assert_eq!(stopped.lifetime, short.lifetime);
}

#[test]
fn vssds_are_handed_to_servers_in_turn() {
    let config = rackblox(WearArm::NoSwap);
    let shares: Vec<f64> = config.workloads.iter().map(|workload| config.erases_per_day(workload)).collect();
    let report = run(WearConfig { days: 1, rate_spread: 0.0, drift: 0.0, ..config });
    // Drive 0 of server 1 gets vSSDs 1, 513, 1025 and 1537, which run workloads 1, 3, 0 and 2.
    let erases = report.snapshots[0].erases[16];
    assert!((erases - (shares[1] + shares[3] + shares[0] + shares[2])).abs() < 1e-12, "{erases}");
}

#[test]
fn a_replaced_drive_begins_anew_and_the_local_balancer_brings_the_server_back() {
    let place = SsdPlace { server: 4, ssd: 9 };
    let of = |arm| {
        let replacements = vec![Replacement { day: 2 * YEAR, place }];
        run(WearConfig { replacements, snapshot_days: 1, servers: 8, ..rackblox(arm) })
    };
    let (alone, levelled) = (of(WearArm::NoSwap), of(WearArm::Local));
    let wear = |report: &WearReport, day: u32| report.snapshots[day as usize - 1].erases[4 * 16 + 9];
    assert!(wear(&levelled, 2 * YEAR - 1) > 5_000.0 && wear(&levelled, 2 * YEAR) < 50.0);
    assert!(last(&levelled).server_max < last(&alone).server_max);
}

#[test]
fn numbers_that_make_no_rack_are_refused() {
    let refused = |change: fn(&mut WearConfig)| {
        let mut config = rackblox(WearArm::Local);
        change(&mut config);
        WearModel::new(config).err().map(|error| error.field)
    };
    assert_eq!(refused(|_| {}), None);
    assert_eq!(refused(|config| config.servers = 0), Some("servers"));
    assert_eq!(refused(|config| config.servers = u32::MAX), Some("servers * ssds * vssds"));
    assert_eq!(refused(|config| config.workloads.clear()), Some("workloads"));
    assert_eq!(refused(|config| config.workloads[0].write_share = 1.01), Some("write_share"));
    assert_eq!(refused(|config| config.workloads[0].write_amplification = f64::NAN), Some("write_amplification"));
    assert_eq!(refused(|config| config.drift = 1.5), Some("drift"));
    assert_eq!(refused(|config| config.erases_per_swap = f64::INFINITY), Some("erases_per_swap"));
    assert_eq!(refused(|config| config.local.period_days = 0), Some("period_days"));
    let outside = Replacement { day: 1, place: SsdPlace { server: 32, ssd: 0 } };
    let error = WearModel::new(WearConfig { replacements: vec![outside], ..rackblox(WearArm::Local) }).err();
    assert!(error.is_some_and(|error| error.to_string().contains("server 32, drive 0")));
}

/// The three arms on the rack of 4.6, with one thing changed.
fn arms(seed: u64, change: impl Fn(&mut WearConfig)) -> [WearReport; 3] {
    [WearArm::NoSwap, WearArm::Local, WearArm::LocalAndGlobal].map(|arm| {
        let mut config = WearConfig::rackblox(arm, Seed(seed));
        change(&mut config);
        run(config)
    })
}

fn imbalance_after(years: u32, report: &WearReport) -> f64 {
    report.server_imbalance_max(years * YEAR).expect("five years are played")
}

#[test]
fn figure_22_drives_of_each_server_wear_evenly_after_the_first_year() {
    for seed in 1..=3 {
        let [alone, local, both] = arms(seed, |_| {});
        assert!(last(&alone).server_max > 1.3, "{:?}", last(&alone));
        for levelled in [&local, &both] {
            assert!(imbalance_after(1, levelled) <= 1.1, "{}", imbalance_after(1, levelled));
            assert!(last(levelled).server_max < 1.04, "{:?}", last(levelled));
        }
    }
}

#[test]
fn figure_22_takes_longer_where_workloads_are_drawn() {
    for seed in 1..=3 {
        let [alone, local, both] = arms(seed, |config| config.assignment = Assignment::Drawn);
        assert!(last(&alone).server_max > 1.9, "{:?}", last(&alone));
        for levelled in [&local, &both] {
            assert!(imbalance_after(1, levelled) <= 1.15, "{}", imbalance_after(1, levelled));
            assert!(imbalance_after(3, levelled) <= 1.1, "{}", imbalance_after(3, levelled));
            assert!(last(levelled).server_max < 1.06, "{:?}", last(levelled));
        }
    }
}

#[test]
fn figure_23_each_balancer_brings_the_rack_closer_to_even_wear() {
    for (assignment, end_max) in [(Assignment::InTurn, 1.04), (Assignment::Drawn, 1.12)] {
        let [alone, local, both] = arms(1, |config| config.assignment = assignment).map(|report| last(&report));
        assert!(both.rack_ssds < local.rack_ssds && local.rack_ssds < alone.rack_ssds, "{both:?} {local:?} {alone:?}");
        assert!(both.rack_ssds < end_max, "{both:?}");
        // Between servers only the balancer between servers can help.
        assert!(both.rack_servers < local.rack_servers, "{both:?} {local:?}");
        assert!((local.rack_servers - alone.rack_servers).abs() < 1e-3, "{local:?} {alone:?}");
    }
}

#[test]
fn one_swap_every_twelve_days_costs_half_a_percent_of_a_lifetime() {
    let [alone, local, both] = arms(1, |_| {});
    assert_eq!(alone.lifetime.swaps_worst_case, 0.0);
    // 1,825 days hold 152 periods.
    assert_eq!(local.swaps.local.iter().max(), Some(&152));
    assert!((0.0045..=0.0055).contains(&local.lifetime.swaps_worst_case), "{:?}", local.lifetime);
    for lifetime in [local.lifetime, both.lifetime] {
        assert!(lifetime.swaps_mean < lifetime.swaps_max && lifetime.swaps_max < lifetime.swaps_worst_case / 2.0);
    }
    // Every local swap costs two drives of the 512 one erase of 30,000.
    let mean = f64::from(local.swaps.local_total() * 2) / 512.0 / 30_000.0;
    assert!((local.lifetime.swaps_mean - mean).abs() < 1e-12);
}

#[test]
fn the_worst_drive_outlives_five_years_only_where_wear_is_levelled() {
    let [alone, local, both] = arms(1, |_| {}).map(|report| report.lifetime.used_max);
    assert!(alone > 1.0 && local < 1.0 && both < local, "{alone} {local} {both}");
}

#[test]
fn rates_of_the_last_period_alone_send_heavy_loads_back_to_worn_drives() {
    let imbalance = |rate_window_days| {
        let config = WearConfig::rackblox(WearArm::Local, Seed(2));
        last(&run(WearConfig { assignment: Assignment::Drawn, rate_window_days, ..config })).server_max
    };
    assert!(imbalance(12) > 1.1 && imbalance(48) < 1.06, "{} {}", imbalance(12), imbalance(48));
}

#[test]
fn who_swaps_only_where_it_is_needed_swaps_less_and_stays_near_the_limit() {
    let of = |trigger| {
        let config = WearConfig::rackblox(WearArm::Local, Seed(1));
        run(WearConfig { local: LocalConfig { trigger, ..config.local }, ..config })
    };
    let [always, ahead, late] =
        [SwapTrigger::EveryLook, SwapTrigger::Uneven { horizon_days: 96 }, SwapTrigger::Uneven { horizon_days: 0 }]
            .map(of);
    assert!(late.swaps.local_total() < ahead.swaps.local_total());
    assert!(ahead.swaps.local_total() * 2 < always.swaps.local_total());
    let imbalances = [&always, &ahead, &late].map(|report| imbalance_after(1, report));
    assert!(imbalances[1] <= 1.1 && imbalances[2] > 1.1 && imbalances[2] < 1.13, "{imbalances:?}");
    assert_eq!(ahead.days_above(f64::INFINITY), 0);
    assert!(late.days_above(0.1) > ahead.days_above(0.1));
}
