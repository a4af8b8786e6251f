//! Unmodified clients of Redis. Each is skipped with a sentence where it is not installed, and
//! required in CI.

mod common;

use base::Span;
use bytes::Bytes;
use common::{Running, config, everywhere, with};
use kv::{Config, Limits};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A client that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(180);

/// Says that a client is missing. CI installs them all.
fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}: tools/setup-test.sh installs it");
    eprintln!("skipped: {why}");
}

/// Runs a program that may not be there.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new(program);
    let started = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut process) = started else {
        skip(&format!("{program} is not installed"));
        return None;
    };
    let start = Instant::now();
    while process.try_wait().expect("it was started").is_none() {
        if start.elapsed() > LONGEST {
            process.kill().expect("it runs");
            panic!("{program} hangs: {}", text(&process.wait_with_output().expect("it was started")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    process.wait_with_output().ok()
}

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn redis_cli_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = Some(Bytes::from_static(b"secret"));
    let store = Running::start(Config { password: secret, ..config(folder.path()) });
    let port = store.address.port().to_string();
    for version in ["-2", "-3"] {
        let ask = |words: &[&str]| {
            let common = ["-p", &port, version, "-a", "secret", "--no-auth-warning"];
            run("redis-cli", &[&common, words].concat()).map(|output| text(&output))
        };
        let Some(stored) = ask(&["SET", "a key", "a value"]) else { return };
        assert_eq!(stored, "OK\n", "{version}");
        assert_eq!(ask(&["GET", "a key"]).as_deref(), Some("a value\n"), "{version}");
        assert_eq!(ask(&["GET", "none"]).as_deref(), Some("\n"), "{version}");
        assert_eq!(ask(&["DEL", "a key"]).as_deref(), Some("1\n"), "{version}");
        assert!(
            ask(&["LPUSH", "a", "b"]).is_some_and(|told| told.contains("ERR unknown command 'LPUSH'")),
            "{version}"
        );
    }
    let refused = run("redis-cli", &["-p", &port, "GET", "a"]).map(|output| text(&output));
    assert!(refused.is_none_or(|told| told.contains("NOAUTH")));
}

#[test]
fn redis_benchmark_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(config(folder.path()));
    let port = store.address.port().to_string();
    for more in [
        &["-t", "ping,set,get,mset"][..],
        &["-t", "set,get", "-P", "16", "-r", "500", "-d", "200"],
        &["-3", "-t", "get"],
    ] {
        let common = ["-p", &port, "-n", "500", "-c", "10", "--csv"];
        let Some(output) = run("redis-benchmark", &[&common, more].concat()) else { return };
        let told = text(&output);
        assert!(output.status.success() && !told.to_lowercase().contains("err"), "{told}");
        let rates: Vec<f64> = told.lines().filter_map(|line| line.split('"').nth(3)?.parse().ok()).collect();
        assert!(!rates.is_empty() && rates.iter().all(|rate| *rate > 0.0), "{told}");
    }
}

const PYTHON: &str = r#"
import sys, redis
from redis.backoff import NoBackoff
from redis.retry import Retry
for protocol in (2, 3):
    r = redis.Redis(port=int(sys.argv[1]), password="secret", protocol=protocol, client_name="test", socket_timeout=60)
    assert r.ping() is True
    assert r.set("k", b"\x00\xff" * 1000) is True
    assert r.get("k") == b"\x00\xff" * 1000
    assert r.set("k", "x", nx=True) is None
    assert r.set("k", "x", xx=True, ex=100) is True
    assert r.setnx("n%d" % protocol, "1") in (True, 1)
    assert r.mset({"a": 1, "b": 2}) is True
    assert r.mget("a", "none", "b") == [b"1", None, b"2"]
    assert r.exists("a", "b", "none") == 2
    assert r.delete("a", "none") == 1
    assert r.echo("e") == b"e"
    assert r.dbsize() == 2 + protocol - 1, r.dbsize()
    assert r.client_getname() in ("test", b"test")
    assert isinstance(r.client_id(), int)
    assert "appendonly" in r.config_get("appendonly")
    assert r.info()["keys"] == r.dbsize()
    assert r.slowlog_reset() is True
    r.get("k")
    (slow,) = [entry for entry in r.slowlog_get() if entry["command"] == b"GET k"]
    assert slow["duration"] >= 0 and slow["client_name"] == b"test" and b":" in slow["client_address"], slow
    assert r.slowlog_len() >= 1
    pipe = r.pipeline(transaction=False)
    for i in range(100):
        pipe.set("p", i).get("p")
    assert pipe.execute()[1::2] == [str(i).encode() for i in range(100)]
    r.delete("p")
    try:
        r.lpush("l", 1)
        raise SystemExit("it is refused")
    except redis.ResponseError as error:
        assert "unknown command" in str(error), error
try:
    # By itself it tries three times more, and waits for seconds.
    redis.Redis(port=int(sys.argv[1]), retry=Retry(NoBackoff(), 0)).get("k")
    raise SystemExit("it is refused")
except redis.AuthenticationError:
    pass
"#;

/// Runs programs for redis-py: by the Python of tools/setup-test.sh, or that of the machine.
fn python(program: &'static str) -> Option<impl Fn(Running)> {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    let python = if made.exists() { made.to_str().expect("a path in UTF-8") } else { "python3" }.to_owned();
    if !run(&python, &["-c", "import redis"])?.status.success() {
        skip("redis-py (PyPI `redis`) is not installed");
        return None;
    }
    Some(move |store: Running| {
        let output = run(&python, &["-c", program, &store.address.port().to_string()]).expect("it was there");
        assert!(output.status.success(), "{}", text(&output));
    })
}

#[test]
fn redis_py_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = Some(Bytes::from_static(b"secret"));
    let limits = Limits { slow_after: Span::ZERO, ..Limits::default() };
    let config = Config { password: secret, limits, ..config(folder.path()) };
    python(PYTHON).into_iter().for_each(|play| everywhere(&config, play));
}

/// The client of Rust, redis-rs, in both versions of the protocol.
#[test]
fn redis_rs_works() {
    use redis::{Commands, ErrorKind, ServerErrorKind, SetExpiry, SetOptions};
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(Config { password: Some(Bytes::from_static(b"secret")), ..config(folder.path()) });
    let port = store.address.port();
    let open = |address: &str| redis::Client::open(address).and_then(|client| client.get_connection());
    let refused = open(&format!("redis://:wrong@127.0.0.1:{port}")).err().expect("it is refused");
    assert_eq!(refused.kind(), ErrorKind::AuthenticationFailed);
    for protocol in ["resp2", "resp3"] {
        let mut client = open(&format!("redis://:secret@127.0.0.1:{port}/?protocol={protocol}")).expect("it is let in");
        let long = vec![0xff_u8; 60_000];
        client.set::<_, _, ()>("long", &long).expect("it is stored");
        assert_eq!(client.get::<_, Vec<u8>>("long"), Ok(long));
        assert_eq!(client.get::<_, Option<String>>("none"), Ok(None));
        let for_a_while = SetOptions::default().with_expiration(SetExpiry::EX(100));
        client.set_options::<_, _, ()>("brief", 7, for_a_while).expect("it is stored");
        let left: i64 = client.ttl("brief").expect("it is there");
        assert!((90..=100).contains(&left), "{left}");
        client.mset::<_, _, ()>(&[("a", 1), ("b", 2)]).expect("both are stored");
        assert_eq!(client.mget::<_, Vec<Option<i64>>>(&["a", "none", "b"]), Ok(vec![Some(1), None, Some(2)]));
        let mut walked: Vec<String> = client.scan().expect("it begins").collect::<Result<_, _>>().expect("keys");
        walked.sort();
        assert_eq!(walked, ["a", "b", "brief", "long"]);
        let mut pipe = redis::pipe();
        (0..200).for_each(|number| _ = pipe.set("p", number).ignore().get("p"));
        assert_eq!(pipe.query::<Vec<u32>>(&mut client), Ok((0..200).collect()));
        assert_eq!(client.del::<_, u64>(&["p", "long", "none"]), Ok(2));
        let error = client.lpush::<_, _, ()>("l", 1).expect_err("there are no lists");
        assert_eq!(error.kind(), ErrorKind::Server(ServerErrorKind::ResponseError), "{error}");
    }
}

/// The calls of LMCache's RedisConnector (its redis_connector.py of 2025): the bytes of a chunk,
/// then what describes them; EXISTS of that for chunk after chunk; many chunks at a time, each from
/// a connection of a pool. Then pipelines of SET, EXISTS and MGET, as its batched connectors have.
const LMCACHE: &str = r#"
import asyncio, hashlib, sys
import redis, redis.asyncio

def chunk(number, size):
    return hashlib.shake_128(b"%d" % number).digest(1 << 16) * (size >> 16)

def key(number):
    return "vllm@meta-llama/Llama-3.1-8B-Instruct@1@0@%064x" % number

sizes = {number: size << 20 for number, size in enumerate([2, 2, 2, 2, 8, 8, 32])}

async def put(r, number):
    await r.set(key(number) + "kv_bytes", chunk(number, sizes[number]))
    await r.set(key(number) + "metadata", b"%d" % sizes[number])

async def get(r, number):
    length = await r.get(key(number) + "metadata")
    return length and (int(length), await r.get(key(number) + "kv_bytes"))

async def hits(r, numbers):
    count = 0
    for number in numbers:
        if not await r.exists(key(number) + "metadata"):
            break
        count += 1
    return count

async def connector():
    pool = redis.asyncio.ConnectionPool.from_url("redis://127.0.0.1:" + sys.argv[1], max_connections=150, socket_timeout=60)
    r = redis.asyncio.Redis.from_pool(pool)
    assert await hits(r, sizes) == 0
    await asyncio.gather(*(put(r, number) for number in sizes))
    assert await hits(r, [*sizes, 99]) == len(sizes)
    got = await asyncio.gather(*(get(r, number) for number in [*sizes, 99]))
    assert got.pop() is None
    for number, (length, data) in enumerate(got):
        assert length == sizes[number] and data == chunk(number, length), number
    await r.delete(key(0) + "kv_bytes")
    assert (await get(r, 0))[1] is None
    await r.aclose()

asyncio.run(connector())
pipe = redis.Redis(port=int(sys.argv[1]), socket_timeout=60).pipeline(transaction=False)
small = [number for number in sizes if sizes[number] == 2 << 20]
for number in small:
    pipe.set("batch%d" % number, chunk(number, 2 << 20))
pipe.exists(*("batch%d" % number for number in small))
pipe.mget("batch%d" % number for number in [*small, 99])
*stored, there, values = pipe.execute()
assert stored == [True] * len(small) and there == len(small)
assert values == [chunk(number, 2 << 20) for number in small] + [None]
"#;

#[test]
fn lmcache_s_calls_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = Limits { request: 33 << 20, reply: 64 << 20, ..Limits::default() };
    let config = with(config(folder.path()), |jbof| {
        (jbof.zones, jbof.zone_sectors, jbof.value_bytes_max) = (12, 9 * (33 << 20) / 512, 32 << 20);
    });
    python(LMCACHE).into_iter().for_each(|play| play(Running::start(Config { limits, ..config.clone() })));
}
