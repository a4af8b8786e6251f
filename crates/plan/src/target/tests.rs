use super::*;
use proptest::prelude::*;

fn complaint(text: &str) -> String {
    parse("target.toml", text).expect_err("it is wrong").to_string()
}

#[test]
fn an_empty_file_is_one_ram_disk_at_the_local_address() {
    let plan = TargetPlan::standard();
    assert_eq!(plan.ports, [Port { address: "127.0.0.1:4420".into(), advertised: None, tls: TlsName::Off }]);
    let [subsystem] = plan.subsystems.as_slice() else { panic!("{plan:?}") };
    let [disk] = subsystem.namespaces.as_slice() else { panic!("{plan:?}") };
    assert_eq!((disk.id, &disk.backend, disk.size), (1, &Backend::Ram, Some(Bytes::new(1 << 30))));
    assert_eq!(subsystem.hosts, None);
    assert_eq!((&subsystem.nqn, &subsystem.serial), (&None, &None), "two of them must not have one name");
}

#[test]
fn what_is_printed_says_all_of_the_plan() {
    let text = r#"
        state = "state"
        metrics = "127.0.0.1:9420"
        log = "debug"
        busy_poll = "7us"
        loops = 3
        strict = true
        port = [{ address = "127.0.0.1:4420" }, { address = "[::1]:4421", advertised = "10.0.0.1:4421", tls = "required" }]
        dhchap = { hashes = ["sha384"], groups = ["ffdhe4096", "null"], stranger_cost = 7 }
        host = [{ nqn = "nqn.2026-11.io.rackweave:host", dhchap_secret_file = "secret", tls_key_file = "key",
            tls_derivation = "libnvme",
            dhchap_controller_secret = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:" }]
        limits = { connections = 9, idle = "1min", transfer = "128KiB" }
        records = { folder = "rows", sample = 7, tail = "3ms" }
        [[subsystem]]
        nqn = "nqn.2026-11.io.rackweave:one"
        hosts = ["nqn.2026-11.io.rackweave:host"]
        path = [{ port = 2, access = "non-optimized" }]
        [[subsystem.namespace]]
        backend = "file"
        path = "disk"
        shared = true
        [[subsystem.namespace]]
        backend = "file"
        path = "store.flash"
        read_only = true
        unlocked = true
        [[subsystem.namespace]]
        id = 9
        backend = "flash"
        drive = "optane"
        prefault = true
        size = "64MiB"
        block = "4KiB"
        uuid = "5d2f1c1e-7a0b-4a53-9f0e-0242ac120002"
        [[subsystem]]
        nqn = "nqn.2026-11.io.rackweave:two"
        ports = [2]
        namespace = []
    "#;
    for plan in [parse("one", text).expect("it is right"), TargetPlan::standard()] {
        assert_eq!(parse("again", &plan.to_toml()).expect("it was printed"), plan);
    }
}

#[test]
fn a_volume_has_blocks_of_a_page_where_the_file_says_nothing() {
    let block = |namespace: &str| {
        let text = format!("[[subsystem]]\nnamespace = [{{ {namespace} }}]");
        parse("target.toml", &text).expect("it is right").subsystems[0].namespaces[0].block
    };
    let volume = "backend = 'volume', rack = 'r', door = 'd', volume = 'v'";
    assert_eq!(block(volume), Bytes::kib(4));
    assert_eq!(block(&format!("{volume}, block = '8KiB'")), Bytes::kib(8));
    assert_eq!(block("backend = 'ram'"), Bytes::new(512));
}

/// A key that is read and dropped would be printed as its default, and read so again.
#[test]
fn keys_are_in_the_plan_as_the_file_says_and_else_by_their_default() {
    let named = |keys: &str, disk: &str| {
        let text = format!("{keys}\n{}namespace = [{{ {disk} }}]\n", with_host(&format!("tls_key = '{LONG_TLS_KEY}'")));
        let plan = parse("one", &text).expect("it is right");
        let disk = &plan.subsystems[0].namespaces[0];
        let derivation = plan.hosts[0].tls_derivation;
        (plan.strict, plan.limits.controllers_per_host, derivation, disk.prefault, (disk.reserve, disk.shared))
    };
    let file = "backend = 'file', path = 'x'";
    assert_eq!(named("", file), (false, 64, TlsDerivationName::Any, false, (false, false)));
    assert_eq!(named("strict = true", "prefault = true"), (true, 64, TlsDerivationName::Any, true, (false, false)));
    let reserved = named("strict = true", &format!("{file}, reserve = true"));
    assert_eq!(reserved, (true, 64, TlsDerivationName::Any, false, (true, false)));
    let limits = "limits = { controllers_per_host = 5 }";
    assert_eq!(
        named(limits, &format!("{file}, shared = true")),
        (false, 5, TlsDerivationName::Any, false, (false, true))
    );
    let old = with_host(&format!("tls_key = '{TLS_KEY}'\ntls_derivation = 'libnvme'"));
    assert_eq!(parse("one", &old).expect("it is right").hosts[0].tls_derivation, TlsDerivationName::Libnvme);
}

#[test]
fn every_mistake_is_told_with_its_line_and_what_is_allowed() {
    let text = "metric = '127.0.0.1:1'\n[[subsystem]]\n[[subsystem.namespace]]\nbackend = 'fille'\nsize = '1'\n";
    let told = complaint(text);
    assert!(told.contains("target.toml:1:1: unknown key `metric`, did you mean `metrics`?"), "{told}");
    assert!(
        told.contains(
            "target.toml:4:11: subsystem.0.namespace.0.backend: `fille` is not allowed, did you mean `file`?"
        ),
        "{told}"
    );
    assert!(told.contains("target.toml:5:8: subsystem.0.namespace.0.size: `1` has no unit"), "{told}");
}

#[test]
fn values_that_do_not_go_together_are_refused() {
    let namespace = |keys: &str| format!("[[subsystem]]\nnamespace = [{{ {keys} }}]");
    for (text, reason) in [
        (namespace("path = 'x'"), "`path` is valid only with backend = file or flash, not with ram"),
        ("busy_poll = '1001us'".into(), "up to 1ms"),
        (
            namespace("backend = 'null', prefault = true"),
            "`prefault` is valid only with backend = ram or flash, not with null",
        ),
        (namespace("backend = 'flash', path = 'x', prefault = true"), "`prefault` is not valid with `path`"),
        (namespace("reserve = true"), "`reserve` is valid only with `path`"),
        (namespace("backend = 'file', path = 'x', reserve = true, read_only = true"), "needs no room"),
        (namespace("io = 'uring'"), "`io` is valid only with backend = file, not with ram"),
        (namespace("backend = 'file', path = 'x', io = 'magic'"), "uring"),
        (namespace("shared = true"), "`shared` is valid only with backend = file or flash, not with ram"),
        (namespace("backend = 'file'"), "`path` is missing"),
        (namespace("size = '1000B'"), "one or more whole blocks of 512B"),
        (namespace("block = '768B'"), "a power of two from 512B to 64KiB"),
        (namespace("backend = 'flash', drive = 'optan'"), "did you mean `optane`?"),
        (namespace("uuid = '1-2'"), "32 hexadecimal digits"),
        ("[[subsystem]]\nnamespace = [{ id = 2 }, {}]".into(), "there is a namespace 2 already"),
        ("[[subsystem]]\nports = [2]".into(), "1..=1, the ports of this file"),
        ("[[subsystem]]\n[[subsystem]]".into(), "`nqn` is missing"),
        ("[[subsystem]]\nnqn = 'a b'".into(), "no NVMe qualified name"),
        ("[[subsystem]]\nnqn = 'nqn.2014-08.org.nvmexpress.discovery'".into(), "another subsystem already"),
        ("[[port]]\naddress = '4420'".into(), "ADDRESS:PORT"),
        ("limits = { transfer = '5KiB' }".into(), "a power of two from 4KiB"),
        ("limits = { transfer = '16MiB' }".into(), "at least `transfer`"),
    ] {
        let told = complaint(&text);
        assert!(told.contains(reason), "{text}: {told}");
    }
}

#[test]
fn files_of_targets_and_experiments_are_told_apart() {
    assert!(is_target_file("[[subsystem]]\n"));
    assert!(!is_target_file("title = 'a'\ndesign = { name = 'edm' }\n"));
    assert!(!is_target_file("records = 1\ndesign = 2\n"));
}

#[test]
fn a_uuid_is_read_as_it_is_written() {
    let bytes = uuid_bytes("00112233-4455-6677-8899-aabbccddeeff").expect("it is a UUID");
    assert_eq!(bytes.map(|byte| byte % 0x11), [0; 16]);
    assert_eq!(uuid_bytes("0011223344556677-8899-aabbccddeeff"), None);
    assert_eq!(uuid_bytes("00112233-4455-6677-8899-aabbccddeefg"), None);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_fall_over(text in "[ -~\n]{0,200}") {
        let _ = parse("any", &text);
    }
}

const HOST: &str = "nqn.2026-11.io.rackweave:host";
const SECRET: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const TLS_KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
const LONG_TLS_KEY: &str = "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:";

fn with_host(keys: &str) -> String {
    format!("[[host]]\nnqn = '{HOST}'\n{keys}\n[[subsystem]]\nhosts = ['{HOST}']\n")
}

#[test]
fn a_wrong_secret_is_told_with_its_key_and_reason_and_not_shown() {
    for (key, secret, reason) in [
        ("dhchap_secret", SECRET.replace("AAEC", "AAED"), "the checksum of the secret is wrong"),
        ("dhchap_secret", "hunter2".into(), "a secret has the form DHHC-1:hh:base64:"),
        ("tls_key", TLS_KEY.replace("VRLb", "VRLc"), "the checksum of the TLS key is wrong"),
        ("tls_key", LONG_TLS_KEY.replace(":02:", ":01:"), "the TLS key has 48 bytes, allowed are 32"),
    ] {
        let told = complaint(&with_host(&format!("{key} = '{secret}'")));
        assert!(told.contains("target.toml:3:") && told.contains(&format!("host.0.{key}: {reason}")), "{told}");
        assert!(!told.contains(&secret), "{told}");
    }
}

#[test]
fn keys_of_hosts_that_do_not_go_together_are_refused() {
    for (text, reason) in [
        (
            with_host(&format!("dhchap_secret = '{SECRET}'\ndhchap_secret_file = 'x'")),
            "`dhchap_secret_file` is not valid with `dhchap_secret`",
        ),
        (with_host("dhchap_controller_secret_file = 'x'"), "`dhchap_secret` is missing"),
        (
            format!("[[host]]\nnqn = '{HOST}'\ndhchap_secret = '{SECRET}'\n"),
            "in `hosts`, so that its keys would not be used",
        ),
        (format!("{}[[host]]\nnqn = '{HOST}'\n", with_host("")), "is listed twice"),
        ("[[port]]\ntls = 'required'\n".into(), "no `host` has a `tls_key`"),
        (with_host("") + "[dhchap]\ngroups = []\n", "groups"),
    ] {
        let told = complaint(&text);
        assert!(told.contains(reason), "{reason}: {told}");
    }
}

#[test]
fn what_is_shown_to_people_has_no_secrets() {
    let keys = format!("dhchap_secret = '{SECRET}'\ntls_key = '{TLS_KEY}'\ndhchap_controller_secret_file = 'there'");
    let plan = parse("one", &with_host(&keys)).expect("it is right");
    for shown in [plan.without_secrets().to_toml(), format!("{plan:?}")] {
        assert!(!shown.contains(SECRET) && !shown.contains(TLS_KEY) && shown.contains("there"), "{shown}");
    }
    assert!(plan.to_toml().contains(SECRET));
}

#[test]
fn a_file_of_another_process_is_read_alone() {
    let with = |more: &str| {
        parse(
            "",
            &format!("[[subsystem]]\n[[subsystem.namespace]]\nbackend = 'file'\npath = 'f'\nunlocked = true\n{more}\n"),
        )
    };
    let plan = with("read_only = true").expect("it is right");
    assert!(plan.subsystems[0].namespaces[0].unlocked);
    for more in ["", "read_only = true\nshared = true"] {
        let error = with(more).expect_err("it is wrong").to_string();
        assert!(error.contains("it needs `read_only = true`"), "{error}");
    }
    assert!(
        complaint("[[subsystem]]\n[[subsystem.namespace]]\nread_only = true\nunlocked = true\n").contains("unlocked")
    );
}
