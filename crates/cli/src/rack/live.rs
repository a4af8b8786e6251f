//! `rackweave rack status --listen`: a page with all roles, renewed while it is open.

use super::status::{Report, State, ago, reports};
use super::{Kind, Site};
use crate::failure::{Failure, bad_input, print};
use base::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tiny_http::{Header, Method, Response, Server};

const PAGE: &str = include_str!("live.html");
/// Requests that come sooner after the last look get its rows again.
const FRESH_S: f64 = 0.5;

/// How a number of the page comes of a role's metrics.
#[derive(Clone, Copy)]
enum Number {
    /// What it is now.
    Now(&'static str),
    /// How much a second it has counted.
    Rate(&'static str),
    /// The share of the first in both.
    Share(&'static str, &'static str),
    /// Milliseconds that one took of late: of a sum of seconds and a count.
    Mean(&'static str),
}

type Shown = &'static [(&'static str, Number)];

const SWITCH: Shown = &[
    ("packets/s", Number::Rate("transmitted")),
    ("reads redirected/s", Number::Rate("redirected")),
    ("reads rescued/s", Number::Rate("rescued")),
    ("collections delayed/s", Number::Rate("soft_delayed")),
];
const CONTROL: Shown = &[("servers lost", Number::Now("suspected")), ("replicas rebuilt", Number::Now("rebuilt"))];
const STORAGE: Shown = &[
    ("replicas collecting", Number::Now("collecting")),
    ("reads/s", Number::Rate("reads")),
    ("writes/s", Number::Rate("writes")),
    ("collection steps/s", Number::Rate("collections")),
];
const DOOR: Shown = &[
    ("connections", Number::Now("connections")),
    ("reads/s", Number::Rate("reads")),
    ("writes/s", Number::Rate("writes")),
    ("mean latency, ms", Number::Mean("request_seconds")),
];
const JBOF: Shown = &[
    ("keys", Number::Now("keys")),
    ("doors", Number::Now("doors")),
    ("updates/s", Number::Rate("requests")),
    ("verbs/s", Number::Rate("verbs")),
];
const STORE: Shown = &[
    ("keys", Number::Now("keys")),
    ("commands/s", Number::Rate("commands")),
    ("mean latency, ms", Number::Mean("request_seconds")),
    ("answered by the cache, %", Number::Share("hits", "misses")),
    ("connections", Number::Now("connections")),
];

/// The prefix of the metrics of a kind of role, and what is shown of them.
fn numbers(kind: Kind) -> (&'static str, Shown) {
    match kind {
        Kind::Control => ("control", CONTROL),
        Kind::Switch => ("switch", SWITCH),
        Kind::Storage => ("storage", STORAGE),
        Kind::Door | Kind::Target => ("target", DOOR),
        Kind::Jbof => ("jbof", JBOF),
        Kind::Store => ("kv", STORE),
    }
}

type Metrics = BTreeMap<String, f64>;

/// What the metrics of a role say; rates need those of a look before.
fn told(kind: Kind, before: Option<&Metrics>, now: &Metrics, seconds: f64) -> String {
    let (prefix, shown) = numbers(kind);
    let at = |metrics: &Metrics, name: &str| {
        let name = format!("rackweave_{prefix}_{name}");
        metrics.get(&name).or_else(|| metrics.get(&format!("{name}_total"))).copied()
    };
    // A role that was started anew has counted from zero.
    let gained = |name: &str| {
        let (before, now) = (before.and_then(|before| at(before, name))?, at(now, name)?);
        (now >= before).then_some(now - before)
    };
    let value = |number: Number| match number {
        Number::Now(name) => at(now, name).map(|value| format!("{value:.0}")),
        Number::Rate(name) => gained(name).map(|count| format!("{:.0}", count / seconds)),
        Number::Share(one, other) => {
            let (one, other) = (gained(one)?, gained(other)?);
            (one + other > 0.0).then(|| format!("{:.0}", 100.0 * one / (one + other)))
        }
        Number::Mean(name) => {
            let (sum, count) = (gained(&format!("{name}_sum"))?, gained(&format!("{name}_count"))?);
            (count > 0.0).then(|| format!("{:.2}", 1_000.0 * sum / count))
        }
    };
    let all = shown.iter().filter_map(|(label, number)| Some(format!("{label}: {}", value(*number)?)));
    all.collect::<Vec<_>>().join("; ")
}

/// The last look at all roles.
struct Look {
    at: Instant,
    reports: Vec<Report>,
    rows: String,
}

impl Look {
    fn new(site: &Site, before: Option<&Look>) -> Result<Look, Failure> {
        let (at, reports) = (Instant::now(), reports(site, &[])?);
        let seconds = before.map_or(f64::INFINITY, |before| (at - before.at).as_secs_f64());
        let earlier =
            |one: &Report| before?.reports.iter().find(|other| other.role == one.role && other.pid == one.pid);
        let kind = |one: &Report| site.roles.iter().find(|role| role.name == one.role).map(|role| role.kind);
        let rows = reports.iter().filter_map(|one| Some(row(one, kind(one)?, earlier(one), seconds))).collect();
        Ok(Look { at, reports, rows })
    }
}

fn row(one: &Report, kind: Kind, before: Option<&Report>, seconds: f64) -> String {
    let told = match (&one.broken, one.pid) {
        (Some(error), _) => error.clone(),
        (None, Some(_)) if one.metrics.is_empty() => "no metrics".into(),
        _ => told(kind, before.map(|before| &before.metrics), &one.metrics, seconds),
    };
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let since = one.since_unix_s.map(|since| ago(now_s.saturating_sub(since))).unwrap_or_default();
    let used = before.and_then(|before| before.cpu_s).zip(one.cpu_s);
    let cpu = used.map(|(before, now)| format!("{:.0} %", 100.0 * (now - before) / seconds)).unwrap_or_default();
    let memory = one.memory_bytes.map(|bytes| Bytes::new(bytes >> 20 << 20).to_string()).unwrap_or_default();
    let class = if one.state == State::Ready { "" } else { " class=\"wrong\"" };
    let [name, told] = [&one.role, &told].map(|text| escaped(text));
    format!(
        "<tr><th scope=\"row\">{name}</th><td{class}>{}</td><td>{since}</td><td>{cpu}</td><td>{memory}</td>\
         <td>{told}</td></tr>\n",
        one.state.words()
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Serves the page until a signal ends the process.
pub fn serve(site: &Site, listen: SocketAddr) -> Result<(), Failure> {
    if !listen.ip().is_loopback() {
        let reason = "the page has no password; give a loopback address, and reach it by `ssh -L`";
        return Err(bad_input(format!("{listen}: {reason}")));
    }
    let server = Server::http(listen).map_err(|error| Failure::Failed(format!("{listen}: {error}")))?;
    print(&format!("the page is at http://{}/\n", server.server_addr()))?;
    let (mut last, mut wrong): (Option<Look>, Option<String>) = (None, None);
    for request in server.incoming_requests() {
        if last.as_ref().is_none_or(|look| look.at.elapsed().as_secs_f64() >= FRESH_S) {
            // The file may have changed since, or be wrong while somebody edits it.
            wrong = match Site::of(&site.file).and_then(|site| Look::new(&site, last.as_ref())) {
                Ok(look) => {
                    last = Some(look);
                    None
                }
                Err(error) => Some(row_of(&error.to_string())),
            };
        }
        let rows = wrong.as_deref().or(last.as_ref().map(|look| &*look.rows)).unwrap_or_default();
        let (code, text) = match (request.method(), request.url()) {
            (Method::Get, "/") => (200, page(site, rows)),
            (Method::Get, "/rows") => (200, rows.to_owned()),
            _ => (404, "only / and /rows are here\n".into()),
        };
        let header = Header::from_bytes("Content-Type", "text/html; charset=utf-8").expect("it is one");
        let answer = Response::from_string(text).with_status_code(code).with_header(header);
        // Who asked may be gone.
        let _ = request.respond(answer);
    }
    Ok(())
}

/// A row that says what is wrong, in place of all others.
fn row_of(error: &str) -> String {
    format!("<tr><td class=\"wrong\" colspan=\"9\">{}</td></tr>", escaped(error))
}

fn page(site: &Site, rows: &str) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs()) % 86_400;
    let time = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let title = escaped(&format!("Rack {}", site.file.display()));
    PAGE.replace("{title}", &title).replace("{time}", &time).replace("{rows}", rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(all: &[(&str, f64)]) -> Metrics {
        all.iter().map(|(name, value)| (format!("rackweave_{name}"), *value)).collect()
    }

    #[test]
    fn rates_shares_and_means_are_of_the_time_between_two_looks() {
        let before = metrics(&[("kv_keys", 5.0), ("kv_commands_total", 100.0), ("kv_hits_total", 10.0)]);
        let mut now = metrics(&[("kv_keys", 7.0), ("kv_commands_total", 160.0), ("kv_hits_total", 40.0)]);
        let [before, with] = [(before, 10.0), (now.clone(), 20.0)].map(|(mut all, misses)| {
            all.extend(metrics(&[("kv_misses_total", misses)]));
            all
        });
        let shown = "keys: 7; commands/s: 30; answered by the cache, %: 75";
        assert_eq!(told(Kind::Store, Some(&before), &with, 2.0), shown);
        assert_eq!(told(Kind::Store, None, &with, f64::INFINITY), "keys: 7", "nothing came before");
        // It was started anew.
        now.insert("rackweave_kv_commands_total".into(), 3.0);
        assert_eq!(told(Kind::Store, Some(&before), &now, 2.0), "keys: 7");
        let door =
            |sum, count| metrics(&[("target_request_seconds_sum", sum), ("target_request_seconds_count", count)]);
        assert_eq!(told(Kind::Door, Some(&door(1.0, 100.0)), &door(1.5, 300.0), 2.0), "mean latency, ms: 2.50");
        assert_eq!(told(Kind::Door, Some(&door(1.0, 100.0)), &door(1.0, 100.0), 2.0), "", "nothing was asked for");
    }

    #[test]
    fn what_files_and_errors_say_is_text() {
        assert_eq!(escaped("<b> & \"c\""), "&lt;b&gt; &amp; \"c\"");
    }
}
