//! Commands that only print.

use crate::support::{Home, SMALL, SWEEP};
use serde_json::Value;

fn hash(plan: &str) -> &str {
    plan.lines().find_map(|line| line.strip_prefix("# plan ")).expect("a plan is printed with its hash")
}

#[test]
fn a_printed_plan_is_an_experiment_with_the_same_hash() {
    let home = Home::new().with("a.toml", SMALL);
    let first = home.run("check a.toml --set workload.load=0.25");
    let home = home.with("b.toml", &first);
    let second = home.run("check b.toml");
    assert_eq!(hash(&first).len(), 64);
    assert_eq!(first, second);
    assert_ne!(hash(&first), hash(&home.run("check a.toml")));
}

#[test]
fn warnings_are_part_of_the_plan_and_said_aloud() {
    let home = Home::new().with("a.toml", &SMALL.replace("0.5", "1.5"));
    let said = home.say("check a.toml");
    let warning = said.err.lines().find_map(|line| line.strip_prefix("warning: ")).expect("there is a warning");
    assert!(said.code == Some(0) && warning.contains("1.5"), "{said:?}");
    assert!(said.out.contains(&format!("# warning: {warning}")));
}

#[test]
fn a_sweep_shows_its_points() {
    let home = Home::new().with("a.toml", &format!("{SMALL}{SWEEP}"));
    assert!(home.run("check a.toml").starts_with("# point 1 of 4 of the sweep\n"));
    let third = home.run("check a.toml --point 3");
    assert!(third.contains("# point design.name=cxl workload.load=0.2\n"), "{third}");
    let all = home.run("check a.toml --all");
    assert_eq!(all.lines().filter(|line| line.starts_with("# plan ")).count(), 4);
    home.say("check a.toml --point 5").refused(2, &["--point 5: allowed is 1 to 4"]);
}

#[test]
fn mistakes_are_named_with_file_line_and_what_is_allowed() {
    for (from, to, words) in [
        ("nodes = 8", "nodess = 8", ["a.toml:3:1", "did you mean `nodes`?"]),
        ("rate = \"100Gbps\"", "rate = 100", ["a.toml:4:", "100"]),
        ("name = \"edm\"", "name = \"edn\"", ["a.toml:6:", "receiver-driven"]),
        ("load = 0.5", "load = 0.5\nsize = { cdf = \"none.txt\" }", ["a.toml:9:", "none.txt"]),
    ] {
        let home = Home::new().with("a.toml", &SMALL.replace(from, to));
        for command in ["check", "run", "sweep"] {
            home.say(&format!("{command} a.toml")).refused(2, &words);
        }
        assert_eq!(home.entries("."), ["a.toml"], "nothing is written");
    }
    let home = Home::new().with("a.toml", SMALL);
    home.say("check none.toml").refused(2, &["none.toml", "No such file"]);
    home.say("check a.toml --scale large").refused(2, &["large", "quick, judged, paper"]);
    home.say("check a.toml --set load=1").refused(2, &["load", "unknown key"]);
    home.say("run a.toml --seeds 3..3").refused(2, &["no seed"]);
}

#[test]
fn every_claim_is_listed_with_its_verdict() {
    let home = Home::new();
    let claims: Vec<Value> = serde_json::from_str(&home.run("claims --json")).unwrap();
    assert_eq!(claims.len(), 94);
    for claim in &claims {
        let text = |key: &str| claim[key].as_str().unwrap_or_default();
        assert!(["agrees", "undetermined", "differs", "not-comparable"].contains(&text("verdict")), "{claim}");
        assert!(!claim["paper"].is_null() && !text("reason").is_empty() && !text("unit").is_empty(), "{claim}");
        let is_judged = text("verdict") != "not-comparable";
        assert!(!is_judged || !claim["ours"].is_null() && claim["from"]["scale"].is_string(), "{claim}");
    }
    let edm: Vec<Value> = serde_json::from_str(&home.run("claims --design edm --json")).unwrap();
    assert_eq!(edm.len(), 20);
    assert!(edm.iter().all(|claim| claim["id"].as_str().unwrap().starts_with("edm.")));
    let text = home.run("claims --design edm");
    assert!(edm.iter().all(|claim| text.contains(claim["id"].as_str().unwrap())), "{text}");
    home.say("claims --design fax").refused(2, &["fax", "edm, blox, san, sdirect, scalio"]);
    home.say("claims --from .").refused(2, &["results.json", "No such file"]);
}

#[test]
fn columns_and_schema_are_there_for_people_and_programs() {
    let home = Home::new();
    let columns: Vec<Value> = serde_json::from_str(&home.run("describe --json")).unwrap();
    let text = home.run("describe");
    assert!(columns.len() > 30);
    for column in &columns {
        let line = format!("  {} (", column["name"].as_str().unwrap());
        assert!(text.contains(&line) && text.contains(column["doc"].as_str().unwrap()), "{column}");
    }
    let store = home.run("describe keys-key-value");
    assert!(store.contains("## `[ditto]`") && store.contains("| `samples` | whole number, 1 to 64 | `5` |"), "{store}");
    assert!(text.contains("metrics.cache_hit_ratio (f64; unit: ratio; seeds: mean; after warm-up)"), "{text}");
    assert!(home.run("describe metrics").contains("| `cache_hit_ratio` | ratio | mean | after warm-up | GETs"));
    home.say("describe keys-value").refused(2, &["there is no page `keys-value`", "keys-key-value"]);
    let schema: Value = serde_json::from_str(&home.run("schema")).unwrap();
    assert!(schema["properties"]["fabric"].is_object() && schema["$schema"].is_string());
    assert_eq!(home.run("--version"), format!("rackweave {}\n", env!("CARGO_PKG_VERSION")));
}
