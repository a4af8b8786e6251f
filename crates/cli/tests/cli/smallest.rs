//! Whatever `check` accepts runs: the smallest file of each kind of experiment, on defaults.

use crate::support::Home;

/// Name, and what is least. Beside it, what only keeps preparation short in a test: few pages of
/// flash, few keys.
const SMALLEST: [(&str, &str); 6] = [
    ("messages", "design.name = \"edm\"\nfabric = { nodes = 2, rate = \"100Gbps\" }\nworkload.load = 0.5\n"),
    ("volumes", "design.name = \"rackblox\"\nvssd.capacity = \"64MiB\"\nflash.pages_per_block = 64\n"),
    ("wear", "design.name = \"wear-levelling\"\n"),
    ("san", "design.name = \"san\"\nfabric = { kind = \"single-switch\", hosts = 1, targets = 1 }\n"),
    ("devices", "design.name = \"s-direct\"\n"),
    ("pairs", "design.name = \"scalio\"\nstore = { keys = 1000, cached_keys = 100 }\n"),
];

#[test]
fn the_smallest_file_of_each_scene_is_accepted_and_runs() {
    for (name, text) in SMALLEST {
        let end = if name == "wear" { "" } else { "run.requests = 100\n" };
        let home = Home::new().with("a.toml", &format!("title = \"{name}\"\n{text}{end}"));
        home.run("check a.toml");
        let out = home.run("run a.toml --out out");
        assert!(name == "wear" || out.contains("100 offered, 100 finished"), "{name}: {out}");
    }
}

/// A newcomer's first files run as they are, have nothing to warn of, and are not replaced.
#[test]
fn the_starter_of_each_scene_runs_without_a_warning() {
    for scene in ["messages", "volumes", "wear", "san", "devices", "key-value"] {
        let home = Home::new();
        let file = format!("{scene}.toml");
        let out = home.run(&format!("init {scene}"));
        assert_eq!(out, format!("{file}\nnext       rackweave run {file}\n"));
        assert_eq!(home.run(&format!("init {scene} -")), home.text(&file));
        home.say(&format!("init {scene}")).refused(2, &[&file, "exists", "--force"]);
        home.run(&format!("init {scene} --force"));
        let out = home.run(&format!("run {file} --out out"));
        assert!(!out.contains("warning"), "{scene}: {out}");
        assert!(scene == "wear" || out.contains(" 0 timed out, 0 rejected, 0 lost"), "{scene}: {out}");
    }
    Home::new().say("init rack").refused(2, &["rack", "key-value"]);
    Home::new().say("init san gone/a.toml").refused(2, &["gone/a.toml"]);
}

/// More links at one switch than a header can name.
#[test]
fn a_plan_of_which_nothing_can_be_built_is_bad_input_and_leaves_no_folder() {
    let text = "title = \"large\"\ndesign.name = \"san\"\nrun.requests = 10\nio.drive = 0\n\
                drives = { model = \"quick\", per_target = 1 }\n\
                fabric = { kind = \"single-switch\", hosts = 33000, targets = 1 }\n";
    let home = Home::new().with("a.toml", text);
    home.say("run a.toml --out out").refused(2, &["a.toml:6", "fabric.hosts", "33001 links", "32767"]);
    assert!(!home.path("out").exists());
}
