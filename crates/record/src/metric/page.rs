//! The reference page of all metrics.

use super::{Definition, SECTIONS, Section};

const INTRO: &str = "\
# Metrics

<!-- Made by `BLESS=1 cargo test -p record --test record metrics_page` from crates/record/src/metric. -->

What designs and workloads count beside the statistics of requests: `metrics.NAME` in a summary, in
`claims.toml` and in `figure.toml`. A claim or a figure that names any other is refused with the
nearest names. `<server>` and its like stand for what varies.

**Window** is the part of the run that a metric covers. `after warm-up` is from the first request
that is measured to the end of the run: totals count what was added since then, and extremes are
those since then. Without a warm-up it is the whole run, but not the preparation of drives before.
`end of run` is a state then; `plan` depends on the plan alone.

**Seeds** is how runs that differ in their seed are put together; those that lack a metric do not
count. `pooled` is the percentile of the values of all seeds together, as those of latency are.
";

/// Returns the content of docs/reference/metrics.md.
pub fn page() -> String {
    let sections: Vec<String> = SECTIONS.iter().map(section).collect();
    format!("{INTRO}{}", sections.concat())
}

fn section(section: &Section) -> String {
    let rows: Vec<String> = section.metrics.iter().map(|metric| row(metric)).collect();
    format!(
        "\n## {}\n\n{}\n\n| name | unit | seeds | window | meaning |\n| --- | --- | --- | --- | --- |\n{}",
        section.title,
        wrapped(section.intro),
        rows.concat()
    )
}

fn row(metric: &Definition) -> String {
    let name = metric.name.replace('{', "<").replace('}', ">");
    let (seeds, window) = (metric.merge().name(), metric.window.text());
    format!("| `{name}` | {} | {seeds} | {window} | {} |\n", metric.unit, metric.doc())
}

/// Wraps text at 100 bytes.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        match line.is_empty() {
            true => line.push_str(word),
            false if line.len() + 1 + word.len() <= 100 => *line += &format!(" {word}"),
            false => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
