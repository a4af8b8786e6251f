use super::*;

const WHOLE: &str = r#"folder = "state"
journal = "notes"
records = { folder = "rows", sample = 7, tail = "3ms" }
model = "model.json"
secret_file = "rack.secret"
log = "warn"
log_format = "json"

[switch]
listen = "10.0.0.1:7000"
metrics = "127.0.0.1:9500"
coordination = false

[control]
listen = "10.0.0.1:7001"
metrics = "127.0.0.1:9501"
beat = "100ms"
misses = 5
patience = "1s"
lease = "300ms"
resend = "20ms"
replace_after = "1min"

[[storage]]
name = "s1"
listen = "0.0.0.0:7010"
address = "s1.rack:7010"
metrics = "127.0.0.1:9510"
room = 0
cache = "1MiB"
scrub = "1h"
[storage.flash]
path = "/mnt/s1"
size = "64MiB"
reserve = true
spare = 0.25
channels = 2
pages_per_block = 64
read = "50us"
program = "200us"
erase = "2ms"

[[storage]]
name = "s2"
listen = "10.0.0.1:7011"

[[volume]]
name = "v"
size = "40MiB"
replicas = ["s2", "s1"]

[[door]]
name = "door"
listen = "10.0.0.1:7020"
config = "target.toml"

[[store]]
name = "store"
config = "kv.toml"

[[load]]
door = "door"
volume = "v"
order = "sequential"
reads = 0.5
rate = 2000.0
requests = 700
fill = true

[[load]]
store = "store"
keys = 50
value = "4KiB"
theta = 0.9
reads = 0.25
depth = 3
requests = 900
"#;

/// The smallest rack with all kinds of roles; every line may be replaced.
const SMALL: &str = r#"[control]
beat = "50ms"
[[storage]]
name = "s1"
listen = "127.0.0.1:7010"
[[storage]]
name = "s2"
listen = "127.0.0.1:7011"
metrics = "127.0.0.1:9511"
[storage.flash]
size = "1GiB"
[[volume]]
name = "v"
size = "100MiB"
replicas = ["s1", "s2"]
[[door]]
name = "d"
listen = "127.0.0.1:7020"
config = "target.toml"
[[store]]
name = "k"
config = "kv.toml"
"#;

fn refused(text: &str) -> String {
    parse("rack.toml", text).expect_err("it is wrong").to_string()
}

/// What is said where the line `old` of [`SMALL`] is `new`: its place, then all `words`.
fn says(old: &str, new: &str, key: &str, words: &[&str]) {
    assert_eq!(SMALL.matches(old).count(), 1, "{old}");
    let error = refused(&SMALL.replace(old, new));
    let line = SMALL[..SMALL.find(old).expect("it is there")].matches('\n').count() + 1;
    assert!(error.starts_with(&format!("rack.toml:{line}:")) && error.contains(&format!(" {key}: ")), "{error}");
    assert_eq!(error.lines().count(), 1, "one mistake, one message: {error}");
    words.iter().for_each(|word| assert!(error.contains(word), "{word}: {error}"));
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// The load of [`WHOLE`].
fn load() -> Load {
    Load {
        door: 0,
        volume: 0,
        order: OrderName::Sequential,
        reads: 0.5,
        depth: 1,
        rate: Some(2_000.0),
        requests: 700,
        fill: true,
    }
}

/// The load of its store.
fn store_load() -> StoreLoad {
    StoreLoad {
        store: 0,
        reads: 0.25,
        depth: 3,
        rate: None,
        requests: 900,
        keys: 50,
        value: Bytes::kib(4),
        theta: Some(0.9),
    }
}

/// The storage servers of [`WHOLE`].
fn servers() -> Vec<Storage> {
    let flash = Flash {
        path: Some("/mnt/s1".into()),
        size: Bytes::new(64 << 20),
        reserve: true,
        spare: 0.25,
        channels: 2,
        pages_per_block: 64,
        read: Span::us(50),
        program: Span::us(200),
        erase: Span::ms(2),
    };
    let first = Storage {
        name: "s1".into(),
        listen: address("0.0.0.0:7010"),
        address: Some("s1.rack:7010".into()),
        metrics: Some(address("127.0.0.1:9510")),
        room: 0,
        flash,
        cache: Bytes::new(1 << 20),
        scrub: Span::secs(3_600),
    };
    let usual = Storage {
        name: "s2".into(),
        listen: address("10.0.0.1:7011"),
        address: None,
        metrics: None,
        room: 2,
        flash: FlashFile::default().resolve(),
        cache: Bytes::new(16 << 20),
        scrub: Span::secs(86_400),
    };
    vec![first, usual]
}

#[test]
fn every_key_arrives_where_it_belongs() {
    let rack = parse("", WHOLE).expect("it is right");
    let switch = Switch {
        listen: address("10.0.0.1:7000"),
        address: None,
        metrics: Some(address("127.0.0.1:9500")),
        coordination: false,
        xdp: None,
    };
    let control = Control {
        listen: address("10.0.0.1:7001"),
        address: None,
        metrics: Some(address("127.0.0.1:9501")),
        beat: Span::ms(100),
        misses: 5,
        patience: Span::secs(1),
        lease: Span::ms(300),
        resend: Span::ms(20),
        replace_after: Span::secs(60),
    };
    let door =
        Door { name: "door".into(), listen: address("10.0.0.1:7020"), address: None, config: "target.toml".into() };
    assert_eq!(
        rack,
        Rack {
            folder: "state".into(),
            log: LogLevelName::Warn,
            log_format: LogFormatName::Json,
            secret: Some("rack.secret".into()),
            journal: Some("notes".into()),
            records: Some(Records { folder: "rows".into(), sample: 7, tail: Span::ms(3) }),
            switch,
            control,
            storage: servers(),
            volumes: vec![Volume { name: "v".into(), size: Bytes::new(40 << 20), replicas: vec![1, 0] }],
            doors: vec![door],
            jbofs: Vec::new(),
            targets: Vec::new(),
            stores: vec![Configured { name: "store".into(), config: "kv.toml".into() }],
            loads: vec![load()],
            store_loads: vec![store_load()],
            model: Some("model.json".into()),
        }
    );
}

/// A rack at these addresses whose switch has a data path in the kernel.
const IN_KERNEL: &str = r#"insecure = true
[switch]
listen = "10.0.0.1:7000"
[switch.xdp]
interface = "eth0"
object = "switch.bpf.o"
[control]
listen = "10.0.0.1:7001"
[[storage]]
name = "s"
listen = "10.0.0.2:7010"
"#;

#[test]
fn a_data_path_in_the_kernel_needs_an_address_of_its_interface_and_packets_that_it_can_read() {
    let xdp = parse("", IN_KERNEL).expect("it is right").switch.xdp.expect("it is wanted");
    assert_eq!(xdp, Xdp { interface: "eth0".into(), object: "switch.bpf.o".into(), mode: XdpModeName::Generic });
    let native = IN_KERNEL.replace("object", "mode = 'native'\nobject");
    assert_eq!(parse("", &native).expect("it is right").switch.xdp.map(|xdp| xdp.mode), Some(XdpModeName::Native));
    let says = |old: &str, new: &str, words: &str| {
        let error = refused(&IN_KERNEL.replace(old, new));
        assert!(error.contains(words), "{words}: {error}");
    };
    let own = "switch.listen: ";
    let allowed = "with `xdp`, an IPv4 address of its interface";
    for listen in ["0.0.0.0:7000\"\naddress = \"10.0.0.1:7000", "127.0.0.1:7000\"\naddress = \"10.0.0.1:7000"] {
        says("10.0.0.1:7000", listen, own);
        says("10.0.0.1:7000", listen, allowed);
    }
    says("insecure = true", "secret_file = 's'", "does not go with `secret_file`");
    says("insecure = true", "insecure = true\njournal = 'j'", "does not go with `journal`");
    says("interface = \"eth0\"\n", "", "`interface` is missing");
    says("interface = \"eth0\"\n", "interface = \"sixteen-letters-\"\n", "15 bytes at most");
    says("\"eth0\"", "''", "switch.xdp.interface: an empty text");
    says("object = \"switch.bpf.o\"\n", "", "`object` is missing");
    says("\"switch.bpf.o\"", "''", "switch.xdp.object");
    says("object =", "mode = 'offload'\nobject =", "generic, native");
}

#[test]
fn what_is_left_out_is_the_default() {
    let rack = parse("", SMALL).expect("it is right");
    assert_eq!((rack.switch.listen.port(), rack.control.listen.port()), (7_000, 7_001));
    assert!(rack.switch.coordination && rack.switch.metrics.is_none());
    let Control { beat, misses, patience, lease, resend, replace_after, .. } = rack.control;
    assert_eq!((beat, misses, patience, lease), (Span::ms(50), 6, Span::secs(3), Span::ms(200)));
    assert_eq!((resend, replace_after), (Span::ms(50), Span::secs(30)));
    let Flash { size, spare, channels, pages_per_block, read, program, erase, .. } = rack.storage[0].flash.clone();
    assert_eq!((size.count(), spare, channels, pages_per_block), (1 << 30, 0.2, 4, 256));
    assert_eq!((read, program, erase), (Span::ZERO, Span::ZERO, Span::ZERO));
    let only = parse("", "[[store]]\nname = 'k'\nconfig = 'kv.toml'\n").expect("a store alone is a rack");
    assert_eq!((only.folder, only.stores.len()), (PathBuf::from("rack"), 1));
}

#[test]
fn each_mistake_names_its_place() {
    says("beat = \"50ms\"", "beats = \"50ms\"", "control", &["unknown key `beats`, did you mean `beat`?"]);
    says("name = \"s1\"", "name = \"s 1\"", "storage.0.name", &["letters, digits, `-` and `_`"]);
    says("name = \"s2\"", "name = \"s1\"", "storage.1.name", &["`s1` is taken", "storage.0.name"]);
    says("name = \"d\"", "name = \"control\"", "door.0.name", &["`control` is taken"]);
    says("name = \"k\"", "name = \"d\"", "store.0.name", &["door.0.name"]);
    says("name = \"k\"", "name = \"../k\"", "store.0.name", &["letters, digits, `-` and `_`"]);
    says("name = \"k\"", "name = \"-k\"", "store.0.name", &["no `-` in front"]);
    says("name = \"v\"", "name = \"v/1\"", "volume.0.name", &["letters, digits"]);
    says("beat = \"50ms\"", "beat = \"300ms\"", "control.beat", &["a lease of 200ms", "above 300ms", "below 1800ms"]);
    says("beat = \"50ms\"", "lease = \"50ms\"", "control.lease", &["above 50ms (`beat`)"]);
    says("beat = \"50ms\"", "patience = \"299ms\"", "control.patience", &["at least 300ms (`misses` beats)"]);
    says("beat = \"50ms\"", "lease = \"300ms\"", "control.lease", &["below 300ms (`misses` beats)"]);
    says("beat = \"50ms\"", "beat = \"50\"", "control.beat", &["no unit"]);
    says("size = \"1GiB\"", "size = \"1025MiB\"", "storage.1.flash.size", &["a multiple of 4MiB"]);
    says("size = \"1GiB\"", "size = \"12MiB\"", "storage.1.flash.size", &["4 of them at least"]);
    says("size = \"1GiB\"", "spare = 1.0", "storage.1.flash.spare", &["0.01..=0.9"]);
    says("size = \"100MiB\"", "size = \"4098B\"", "volume.0.size", &["out of range"]);
    says("size = \"100MiB\"", "size = \"6KiB\"", "volume.0.size", &["a multiple of 4KiB"]);
    says("replicas = [\"s1\", \"s2\"]", "replicas = [\"s1\", \"s3\"]", "volume.0.replicas.1", &["`s3`", "s1, s2"]);
    says("replicas = [\"s1\", \"s2\"]", "replicas = [\"s1\", \"s1\"]", "volume.0.replicas.1", &["named twice"]);
    says("replicas = [\"s1\", \"s2\"]", "replicas = []", "volume.0.replicas", &["a list of 1 to 3"]);
}

#[test]
fn addresses_are_numbers_of_their_own_on_this_machine() {
    let with = |new: &str, words: &[&str]| says("\"127.0.0.1:7011\"", new, "storage.1.listen", words);
    with("\"127.0.0.1:7010\"", &["is taken", "storage.0.listen"]);
    with("\"127.0.0.1:7001\"", &["control.listen"]);
    with("\"localhost:7011\"", &["an IP address and a port", "127.0.0.1:7000"]);
    with("\"127.0.0.1:0\"", &["a port from 1"]);
    with("\"127.0.0.1\"", &["a port from 1"]);
    with("7011", &["an IP address and a port"]);
    with("true", &["an IP address and a port"]);
    with("\"[::1]:7011\"", &["all are IPv4, or all IPv6"]);
    says("\"127.0.0.1:9511\"", "\"127.0.0.1:7020\"", "storage.1.metrics", &["door.0.listen"]);
    // One role elsewhere: the others have to be reached from there, and packets to be sealed.
    let far = |text: &str| text.replace("127.0.0.1", "192.0.2.1");
    let one = refused(&SMALL.replace("127.0.0.1:7011", "192.0.2.1:7011"));
    for words in ["storage.1.listen: `secret_file` is missing", "`insecure = true` says it is meant"] {
        assert!(one.contains(words), "{words}: {one}");
    }
    for key in ["switch.listen", "control.listen", "storage.0.listen", "door.0.listen"] {
        let words = format!("{key}: ");
        assert!(one.contains(&words) && one.contains("as `storage.1.listen` does"), "{key}: {one}");
    }
    let all = far(&SMALL.replace("[control]\n", "[control]\nlisten = '192.0.2.1:7001'\n"));
    let all = format!("insecure = true\nswitch.listen = '192.0.2.1:7000'\n{all}");
    parse("", &all).expect("it is meant");
    assert!(refused(&all.replace("192.0.2.1:7011", "0.0.0.0:7011")).contains("an address that others can send to"));
}

#[test]
fn a_name_says_where_others_reach_a_role_of_another_machine() {
    let with = |listen: &str, address: &str| {
        let lines = format!("\"{listen}\"\naddress = \"{address}\"");
        let far = SMALL.replace("[control]\n", "[control]\nlisten = '192.0.2.1:7001'\n");
        let text = format!(
            "secret_file = 's'\nswitch.listen = '192.0.2.1:7000'\n{}",
            far.replace("\"127.0.0.1:7011\"", &lines).replace("127.0.0.1:70", "192.0.2.1:70")
        );
        parse("rack.toml", &text).map_err(|error| error.to_string())
    };
    for address in ["storage-1.rack:7010", "192.0.2.9:7010", "s_1:1", "a:65535"] {
        let rack = with("0.0.0.0:7011", address).unwrap_or_else(|error| panic!("{address}: {error}"));
        assert_eq!(rack.places()[1].reached, address);
    }
    let wrong = ["s1", "s1:0", "s1:70000", ":7010", "0.0.0.0:7010", "1.2.3:7010", "s 1:7010", "s1:70:10", "s1:"];
    for address in wrong {
        let error = with("0.0.0.0:7011", address).expect_err(address);
        assert!(error.contains("storage.1.address") && error.contains("a name or an IP address"), "{address}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let error = with("0.0.0.0:7011", "[::1]:7010").expect_err("IPv4 does not reach it");
    assert!(error.contains("storage.1.address") && error.contains("one of the same kind as 0.0.0.0"), "{error}");
    // Who is reached at an address of its own may listen where a role of another machine does.
    with("192.0.2.1:7010", "s2:7010").expect("another machine");
    let error = with("0.0.0.0:7011", "192.0.2.1:7010").expect_err("that is s1");
    assert!(error.contains("storage.1.address") && error.contains("`storage.0.listen`"), "{error}");
}

#[test]
fn volumes_have_to_fit_into_every_server_that_holds_them() {
    // 1 GiB are 256 blocks of 4 MiB over all channels. The second volume of 4 KiB takes 1 / 0.8, so
    // 2, and 2 for collection; the first has 252 then, of which (252 - 2) x 0.8 may be full.
    let volumes = |first: u64, second: u64| {
        let more = format!("[[volume]]\nname = 'w'\nsize = '{second}KiB'\nreplicas = ['s2']\n");
        let text = SMALL.replace("size = \"100MiB\"", &format!("size = \"{first}KiB\""));
        parse("rack.toml", &text.replace("[[door]]", &(more + "[[door]]"))).map_err(|error| error.to_string())
    };
    let most = 200 * 4_096;
    volumes(most, 4).expect("both fill s2");
    let error = volumes(most, 4_100).expect_err("the second does not fit");
    assert!(error.contains("volume.1.size") && error.contains("up to 4MiB: what is left on `s2`"), "{error}");
    let error = volumes(most + 4 * 4_096, 4).expect_err("the first takes 256 blocks on s2");
    assert!(error.contains("volume.1.size") && error.contains("up to 0B"), "{error}");
    let error = volumes(220 * 4_096, 4).expect_err("the first");
    assert!(error.contains("up to 812MiB: what is left on `s1`"), "{error}");
}

#[test]
fn room_for_lost_replicas_is_what_the_flash_has_left() {
    // 256 blocks, of which a volume of 200 x 4 MiB takes 252, of 100 x 4 MiB 127, of 50 x 4 MiB 65.
    let with = |blocks: u64, room: &str| {
        let text = SMALL.replace("size = \"100MiB\"", &format!("size = \"{}MiB\"", blocks * 4));
        let text = text.replacen("[[storage]]\n", &format!("[[storage]]\n{room}\n"), 1);
        parse("rack.toml", &text).map_err(|error| error.to_string())
    };
    let room = |blocks| with(blocks, "").map(|rack| rack.storage[0].room);
    assert_eq!([200, 100, 50, 4].map(room), [Ok(0), Ok(1), Ok(2), Ok(2)]);
    assert_eq!(with(50, "room = 2").map(|rack| rack.storage[0].room), Ok(2));
    let error = with(50, "room = 3").expect_err("it takes a fourth part");
    assert!(error.contains("storage.0.room") && error.contains("up to 2"), "{error}");
}

#[test]
fn tables_that_nothing_needs_are_refused() {
    let store = "[[store]]\nname = 'k'\nconfig = 'kv.toml'\n";
    for table in ["[switch]\n", "[control]\n", "[[volume]]\nname = 'v'\nsize = '4KiB'\nreplicas = ['s']\n"] {
        let error = refused(&format!("{store}{table}"));
        assert!(error.starts_with("rack.toml:4:") && error.contains("storage"), "{error}");
    }
    assert!(refused("folder = 'x'\n").contains("`[[store]]` at least"));
}

#[test]
fn paths_begin_at_the_folder_of_the_file() {
    let mut rack = parse("", WHOLE).expect("it is right");
    rack.begin_paths_at(Path::new("/etc/rack"));
    assert_eq!(rack.folder, Path::new("/etc/rack/state"));
    assert_eq!(rack.secret.as_deref(), Some(Path::new("/etc/rack/rack.secret")));
    assert_eq!(rack.storage[0].flash.path.as_deref(), Some(Path::new("/mnt/s1")));
    assert_eq!(rack.storage[1].flash.path.as_deref(), Some(Path::new("/etc/rack/state/s2.flash")));
    assert_eq!(rack.doors[0].config, Path::new("/etc/rack/target.toml"));
    assert_eq!(rack.stores[0].config, Path::new("/etc/rack/kv.toml"));
    let missing = Rack::read(Path::new("/nowhere/rack.toml")).expect_err("it is not there").to_string();
    assert!(missing.starts_with("/nowhere/rack.toml: "), "{missing}");
}

#[test]
fn a_load_has_a_door_and_a_volume_of_the_rack() {
    let says = |load: &str, words: &[&str]| {
        let error = refused(&format!("{SMALL}{load}"));
        words.iter().for_each(|word| assert!(error.contains(word), "{word}: {error}"));
    };
    let load = "[[load]]\ndoor = 'd'\nvolume = 'v'\n";
    assert_eq!(parse("rack.toml", &format!("{SMALL}{load}")).expect("it is right").loads[0].requests, 10_000);
    says("[[load]]\ndoor = 'e'\nvolume = 'v'\n", &["load.0.door", "allowed are d"]);
    says("[[load]]\ndoor = 'd'\nvolume = 'w'\n", &["load.0.volume", "allowed are v"]);
    says("[[load]]\nvolume = 'v'\n", &["door"]);
    says(&format!("{load}rate = 9.0\ndepth = 2\n"), &["depth", "rate"]);
    says(&format!("{load}{load}"), &["load.1.door", "has a load already"]);
    says("model = 'm.json'\n", &["model"]);
    let load = "[[load]]\nstore = 'k'\n";
    let loads = parse("rack.toml", &format!("{SMALL}{load}")).expect("it is right").store_loads;
    assert_eq!((loads[0].keys, loads[0].value.count(), loads[0].theta), (100_000, 64, None));
    says("[[load]]\nstore = 'd'\n", &["load.0.store", "allowed are k"]);
    says(&format!("{load}{load}"), &["load.1.store", "has a load already"]);
    says(&format!("{load}door = 'd'\n"), &["load.0.door", "store"]);
    says(&format!("{load}order = 'random'\n"), &["load.0.order"]);
    says("[[load]]\ndoor = 'd'\nvolume = 'v'\nkeys = 9\n", &["load.0.keys"]);
    let of_store = format!("model = 'm'\n{SMALL}{load}");
    assert!(refused(&of_store).contains("it is of volumes"), "{}", refused(&of_store));
}
