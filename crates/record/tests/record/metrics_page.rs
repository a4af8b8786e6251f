//! Tests that docs/reference/metrics.md agrees with the declarations.

use crate::support::agrees_with_reference;
use record::metric;
use std::fs;
use std::path::Path;

#[test]
fn the_reference_has_every_metric() {
    agrees_with_reference("metrics.md", &metric::page(), "metrics_page");
}

/// Hand-written pages name metrics too.
#[test]
fn every_metric_that_a_page_names_is_declared() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut named = 0;
    for folder in ["concepts", "guide", "reference"] {
        for entry in fs::read_dir(docs.join(folder)).expect("a folder of docs").flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            let after = text.split("`metrics.").skip(1).filter_map(|rest| rest.split_once('`'));
            for (name, _) in after.filter(|(name, _)| !name.contains("NAME")) {
                assert!(metric::find(name).is_some(), "{}: metrics.{name}", entry.path().display());
                named += 1;
            }
        }
    }
    assert!(named > 5, "{named}");
}
