//! The gates of a line do what the golden vectors say that `crates/edm` has written. Here the model
//! is not asked: another implementation can be held against the same files.

use edm::pcs::multiplex::Policy;
use rtl_harness::line::replay;

#[test]
fn the_gates_of_a_line_do_what_the_golden_vectors_say() {
    for (name, policy) in [("fair", Policy::Fair), ("strict", Policy::Strict), ("whole", Policy::None)] {
        let path = format!("{}/../vectors/line-{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("it is there");
        replay(policy, &text).unwrap_or_else(|error| panic!("{path}: {error}"));
        // One bit of what is expected: the comparison sees it.
        let changed: Vec<String> = text.lines().map(str::to_owned).collect();
        let place = changed.len() / 2;
        let fields: Vec<&str> = changed[place].split(' ').collect();
        for field in [3, 6, 7] {
            let mut wrong: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
            let digit = wrong[field].pop().expect("a digit");
            wrong[field].push(if digit == '0' { '1' } else { '0' });
            let mut lines = changed.clone();
            lines[place] = wrong.join(" ");
            let error = replay(policy, &lines.join("\n")).expect_err("it differs");
            assert!(error.starts_with(&format!("cycle {place}:")), "{error}");
        }
    }
}
