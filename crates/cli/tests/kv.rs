//! The file of a key-value store.

mod support;

use std::fs;
use std::path::Path;
use support::Home;

#[test]
fn nobody_is_let_in_by_default() {
    let home = Home::new().with("right.toml", "path = 'f'\ninsecure = true\n").with("wrong.toml", "path = 'f'\n");
    assert_eq!(home.say("kv --check --config right.toml").code, Some(0));
    home.say("kv --config wrong.toml").refused(2, &["insecure = true", "password"]);
    assert!(!home.path("f").exists());
}

#[test]
fn every_example_is_a_store() {
    let home = Home::new().with("store.password", "secret\n");
    let mut found = 0;
    for name in ["docs/guide/redis.md", "docs/reference/kv.md"] {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let text = fs::read_to_string(page).expect("it is there");
        for example in text.split("```toml fragment\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            found += 1;
            fs::write(home.path("example.toml"), example).expect("the home can be written");
            assert_eq!(home.say("kv --check --config example.toml").code, Some(0), "{name}:\n{example}");
        }
    }
    assert_eq!(found, 3);
}
