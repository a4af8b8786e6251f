//! Health and metrics of a role, over HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long a role may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest page that is read.
const PAGE_MAX: u64 = 4 << 20;

/// Whether something healthy answers at the address.
pub fn is_healthy(address: &str) -> bool {
    text(address, "/healthz").is_some()
}

/// Every number of a role's metrics, those of one name with different labels added up; `None`
/// without an answer.
pub fn metrics(address: &str) -> Option<BTreeMap<String, f64>> {
    text(address, "/metrics").map(|page| numbers(&page))
}

/// The page at `path`, if it is served.
fn text(address: &str, path: &str) -> Option<String> {
    // A proxy of the environment does not reach loopback addresses.
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).proxy(None).max_redirects(0);
    let agent: ureq::Agent = config.build().into();
    let mut answer =
        agent.get(format!("http://{address}{path}")).call().ok().filter(|answer| answer.status() == 200)?;
    answer.body_mut().with_config().limit(PAGE_MAX).read_to_string().ok()
}

/// The numbers of a page in the text format of OpenMetrics. Parts of histograms are left out.
fn numbers(page: &str) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        // Labels may have blanks in them.
        let (name, rest) = match line.split_once('{') {
            Some((name, rest)) => (name, rest.rsplit_once('}').map_or("", |(_, rest)| rest)),
            None => line.split_once(' ').unwrap_or((line, "")),
        };
        let value = rest.split_whitespace().next().and_then(|value| value.parse::<f64>().ok());
        let Some(value) = value.filter(|value| value.is_finite() && !name.ends_with("_bucket")) else { continue };
        *all.entry(name.to_owned()).or_insert(0.0) += value;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_a_page_and_nonsense_is_passed_over() {
        let page = "# HELP a Something.\n# TYPE a counter\na_total 3\nb{x=\"1 } 2\",y=\"z\"} 2.5 1700000000\n\
            b{x=\"2\"} 1\nc_bucket{le=\"1\"} 9\nd NaN\ne\nf x\ng{ 1\n# EOF\n";
        let all: Vec<(String, f64)> = numbers(page).into_iter().collect();
        assert_eq!(all, [("a_total".into(), 3.0), ("b".into(), 3.5)]);
    }

    #[test]
    fn where_nobody_listens_nobody_is_healthy() {
        assert!(!is_healthy("127.0.0.1:1"));
        assert_eq!(metrics("not an address"), None);
    }
}
