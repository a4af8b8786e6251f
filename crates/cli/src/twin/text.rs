//! The report for people.

use super::Report;
use super::compare::{Comparison, Counter, PERCENTILES, Times};
use super::doors::Site;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use volumes::twin::{Model, Replayed, SLEEPS};

pub fn text(report: &Report) -> String {
    let mut text = format!("Decisions in the replay of each journal\n{}\n", roles(&report.roles));
    for role in &report.roles {
        if let Some(first) = &role.first {
            let (live, twin) = (shortened(&first.live), shortened(&first.twin));
            let at = time(first.at_ns);
            text += &format!("{}, input {} at {at}: live {live}; replay {twin}\n", role.name, first.input);
        }
        for (name, live, here) in &role.counters {
            text += &format!("{}: at its end {name} was {live}, and is {here} in the replay\n", role.name);
        }
    }
    if !report.model.links.is_empty() {
        text += &format!("\nThe model of links and roles\n{}\n", links(&report.model));
    }
    report.comparison.iter().for_each(|comparison| text += &simulation(comparison, report.sides));
    report.stores.iter().for_each(|site| text += &store(site));
    text
}

fn store(site: &Site) -> String {
    let Some(comparison) = &site.comparison else { return String::new() };
    let (sides, name, [live, twin]) = (["live", "twin"], &site.name, comparison.requests);
    if live == 0 && twin == 0 {
        return format!("\n{name} and its doors had no operations\n");
    }
    let mut text = format!(
        "\nTimes of {name} and its doors: {live} operations live, {twin} in the twin\n{}\n",
        times(&comparison.times, sides)
    );
    let [live, twin] = comparison.open;
    if live + twin > 0 {
        text += &format!("without an end: {live} live, {twin} in the twin\n");
    }
    text + &format!("\nCounters of decisions\n{}\n", counters(&comparison.counters, sides))
}

fn simulation(comparison: &Comparison, sides: [&str; 2]) -> String {
    let [one, other] = sides;
    let Comparison { requests, failed: [live, twin], open, same_server: [same, all], redirected, .. } = comparison;
    let mut text = format!(
        "\nTimes, {one} and {other}: {requests} pages; without a good end {live} {one}, {twin} {other}\n{}\n",
        times(&comparison.times, sides)
    );
    if *open > 0 {
        text += &format!("{open} requests had no end in the simulation ({other})\n");
    }
    text += &format!("\nCounters of decisions\n{}\n", counters(&comparison.counters, sides));
    if *all > 0 {
        let share = *same as f64 / *all as f64 * 100.0;
        let [both, only_live, only_twin] = redirected;
        text += &format!(
            "\n{share:.1} % of {all} reads were answered by the same server. Redirected: {both} in both, \
             {only_live} {one} only, {only_twin} {other} only.\n"
        );
    }
    text
}

pub fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(head);
    table
}

/// All columns but the first `texts` hold numbers.
pub fn shown(mut table: Table, texts: usize) -> String {
    for column in table.column_iter_mut().skip(texts) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

fn roles(roles: &[Replayed]) -> String {
    let mut rows = table(&["role", "inputs", "decisions", "inputs that differ", "end"]);
    for role in roles {
        let end = if role.is_whole { "in order" } else { "none" };
        let numbers = [role.inputs, role.decisions, role.differences].map(|number| number.to_string());
        let [inputs, decisions, differences] = numbers;
        rows.add_row([role.name.clone(), inputs, decisions, differences, end.into()]);
    }
    shown(rows, 1)
}

fn links(model: &Model) -> String {
    let mut rows = table(&["from", "to", "least time", "packets", "lost"]);
    for link in &model.links {
        let [packets, lost] = [link.packets, link.lost].map(|number| number.to_string());
        let (from, to) = (link.from.name().to_owned(), link.to.name().to_owned());
        rows.add_row([from, to, time(link.least_ns), packets, lost]);
    }
    let mut hosts = table(&["role", "", "mean", "P50", "P99"]);
    for (kind, host) in &model.hosts {
        let sleeps = SLEEPS.iter().map(|limit| format!("wakes after up to {limit}"));
        let wakes = sleeps.chain(["wakes after longer".to_owned()]).zip(&host.wake_ns);
        let ([bare, page, next, next_page], [read, write]) = (&host.packet_ns, &host.ask_ns);
        let ([word, sent], [leaves, leaves_page]) = (&host.turn_ns, &host.leave_ns);
        let others = [
            ("takes a packet without a page", bare),
            ("takes a packet with a page", page),
            ("takes another without a page", next),
            ("takes another with a page", next_page),
            ("takes a read", read),
            ("takes a write", write),
            ("sends a packet after a wake-up", word),
            ("sends one, some with pages", sent),
            ("hands one to the system", leaves),
            ("hands one over, some with pages", leaves_page),
            ("timers are late", &host.late_ns),
        ];
        let others = others.map(|(what, times)| (what.to_owned(), times));
        for (what, times) in wakes.chain(others).filter(|(_, times)| !times.is_empty()) {
            let times = times.rising();
            let [median, late] = [0.5, 0.99].map(|share| time(times[(times.len() as f64 * share) as usize]));
            let mean = time(times.iter().sum::<u64>() / times.len() as u64);
            hosts.add_row([kind.name().to_owned(), what, mean, median, late]);
        }
    }
    let waited: u64 = model.pauses.iter().map(|pause| pause.took_ns).sum();
    let pauses = match model.pauses.len() {
        0 => String::new(),
        count => format!("\n\n{count} times the machine kept a role waiting, {} in all", time(waited)),
    };
    format!("{}\n\n{}{pauses}{}", shown(rows, 2), shown(hosts, 2), machines(model))
}

fn machines(model: &Model) -> String {
    let known = model.machines.iter().filter(|machine| machine.processors > 0);
    let said = known.map(|machine| {
        let others = machine.others_ns.rising();
        let median = others.get(others.len() / 2).copied().unwrap_or_default();
        let (processors, roles) = (machine.processors, machine.nodes.len());
        format!("\n\n{roles} roles share {processors} processors with others, which have {} a request", time(median))
    });
    said.collect()
}

fn times(times: &[Times], [_, twin]: [&str; 2]) -> String {
    let mut head = vec!["", "span"];
    PERCENTILES.iter().for_each(|(name, _)| head.extend([*name, twin, "off"]));
    let mut rows = table(&head);
    for one in times {
        let mut row = vec![one.operation.to_owned(), one.span.to_owned()];
        for (name, _) in PERCENTILES {
            let [left, right] = one.percentiles[name];
            let off = one.error(name).map_or("-".into(), |error| format!("{:+.0} %", error * 100.0));
            row.extend([time(left), time(right), off]);
        }
        rows.add_row(row);
    }
    shown(rows, 2)
}

fn counters(all: &[Counter], [one, other]: [&str; 2]) -> String {
    let mut rows = table(&["role", "counter", one, other]);
    for its in all {
        rows.add_row([its.role.clone(), its.name.clone(), its.live.to_string(), its.twin.to_string()]);
    }
    shown(rows, 2)
}

/// A time with three or four digits.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 300;
    let short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() { short + " ..." } else { short }
}
