//! The shipped profiles against the files that they were taken from, where these lie beside the
//! project.

use base::Bytes;
use std::path::Path;
use workload::{PROFILES, profile, read_cdf};

#[test]
fn the_figures_are_those_of_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/edm");
    if !folder.exists() {
        println!("skipped: {} does not exist", folder.display());
        return;
    }
    for each in PROFILES {
        let path = folder.join(format!("CDF_{}.txt", each.name.replace('-', "")));
        let text = std::fs::read(&path).unwrap();
        let published = read_cdf(each.name, Bytes::new(1460), text.as_slice()).unwrap();
        assert_eq!(published, profile(each.name).unwrap());
    }
}
