#!/usr/bin/env python3
"""Compares `rackweave kv` with redis-server on this machine, in one run, by redis-benchmark.

Both are measured in turn, so that a busy machine disturbs both. What counts are the ratios:
requests a second, the 99th percentile, and CPU seconds of the server for a million requests.
Redis keeps all values in memory; `rackweave kv` reads them from its file, through the page cache.
With `--jbof`, stores whose JBOF is in the door, in a thread of it for two loops, shared with it,
over TCP, over TCP with its memory by libfabric, and both with its flash by NVMe/TCP are compared
instead, by a client of two threads: CPU seconds of door, JBOF and target for a million requests.
`--sizes` and `--ways` choose some of them; `--sizes` also chooses 100 B or 4 KiB of `--memory`.
With `--ycsb` it runs YCSB's workloads A to D and F (tools/ycsb, needs Go) in place of redis-benchmark,
and with `--large` values of 2 and 32 MiB, whose rates it tells in GB/s.
With `--memory MIB` records take four times the memory that a server may have, page cache and all (a
control group, as root), and memcached with extstore joins: YCSB's workload B, 95 % reads.
Needs redis-server and redis-benchmark, and the program that RACKWEAVE names, or
target/release/rackweave. `--requests N` for each measurement, `--rounds N`. `--keys N` says of how
many keys, and with it how much disk the store takes: 41 KiB for each, 4 GiB of 100,000.
"""

import argparse
import contextlib
import csv
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = str(pathlib.Path(os.environ.get("RACKWEAVE", ROOT / "target/release/rackweave")).resolve())
LARGE_BYTES = 2 << 30
LARGE_KEYS_BYTES = 256 << 20
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Served:
    """A server for the length of a `with`."""

    def __init__(self, name, command, port, folder, join=None):
        self.name, self.command, self.port, self.folder, self.join = name, command, port, folder, join

    def __enter__(self):
        self.log = open(pathlib.Path(self.folder) / f"{self.name}.log", "wb")
        self.process = subprocess.Popen(self.command, cwd=self.folder, stdout=self.log, stderr=self.log, preexec_fn=self.join)
        until = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.fail("it does not listen")
                time.sleep(0.05)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def cpu(self):
        """CPU seconds so far, all threads."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / TICKS

    def cost(self, others, test, size, pipeline, requests, keys):
        """Requests a second; CPU seconds of this server and of others for a million requests."""
        before = [other.cpu() for other in others]
        rate, _, own = self.measure(test, size, pipeline, requests, keys, ["--threads", "2"])
        return rate, own, *((other.cpu() - was) / requests * 1e6 for other, was in zip(others, before))

    def asked_by(self, command):
        """What a client prints. Where it fails, what it said and what this server said are shown."""
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            self.fail(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    def fail(self, why):
        log = pathlib.Path(self.log.name)
        sys.exit(f"{self.name}: {why}\nIts exit code is {self.process.poll()}, and {shutil.disk_usage(log.parent).free >> 20:,} "
                 f"MiB of disk are free. It said:\n{log.read_text(errors='replace')[-4000:]}")

    def measure(self, test, size, pipeline, requests, keys, more=()):
        """Requests a second, p99 in ms, and CPU seconds for a million requests."""
        before = self.cpu()
        command = ["redis-benchmark", "-p", str(self.port), "-t", test, "-n", str(requests), "-d", str(size)]
        command += ["-P", str(pipeline), "--csv", "-r", str(keys), *more]
        lines = [line for line in self.asked_by(command).splitlines() if line.startswith('"')]
        row = next(csv.DictReader(lines))
        return float(row["rps"]), float(row["p99_latency_ms"]), (self.cpu() - before) / requests * 1e6

    def ycsb(self, program, keys, requests):
        """Operations a second of each workload, by its letter."""
        command = [program, "-address", f"127.0.0.1:{self.port}", "-records", str(keys), "-operations", str(requests)]
        out = self.asked_by(command)
        return {letter: float(rate) for letter, rate in re.findall(r"^(\w): .* s, (\d+) a second", out, re.M)}


def median(results):
    return [statistics.median(column) for column in zip(*results)]


def flash(options):
    """Keys of kv.toml and jbof.toml: ten times what the keys take with values of 4 KiB."""
    zones = max(-(-options.keys * 256 // 100_000), 12)
    return (f'path = "store.flash"\nsize = "{16 * zones}MiB"\n'
            f'blocks = {max(options.keys * 8192 // 100_000, 1024)}\nflush = false\n')


def servers(folder, options):
    ours, theirs = free_port(), free_port()
    text = flash(options)
    if options.large:
        text = ('path = "store.flash"\nsize = "8GiB"\nblocks = 8192\nflush = false\n'
                'value = "32MiB"\nzone = "512MiB"\nlimits = { request = "40MiB" }\n')
    (pathlib.Path(folder) / "kv.toml").write_text(f'listen = "127.0.0.1:{ours}"\ninsecure = true\n' + text)
    yield "rackweave", [PROGRAM, "kv", "--config", "kv.toml"], ours
    yield "redis", ["redis-server", "--port", str(theirs), "--save", "", "--appendonly", "no"], theirs


SUBSYSTEM = "nqn.2026-11.io.rackweave:flash"


def compare_jbofs(folder, options):
    """The places of a JBOF, in turn."""
    folder = pathlib.Path(folder)
    at, fabric, flash_at = (f"127.0.0.1:{free_port()}" for _ in range(3))
    far = f'jbof_address = "{at}"\n'
    own_flash = flash(options)
    far_flash = f'[jbof_flash]\naddress = "{flash_at}"\nsubsystem = "{SUBSYSTEM}"\n'
    files = {
        "inside": own_flash.replace("store.flash", "inside.flash"),
        "loops": own_flash.replace("store.flash", "loops.flash") + "loops = 2\n",
        "shared": 'jbof_socket = "jbof.sock"\n',
        "tcp": far,
        "nvme": far + far_flash,
        "libfabric": far + 'jbof_fabric = "tcp"\n',
        "libfabric-nvme": far + 'jbof_fabric = "tcp"\n' + far_flash,
    }
    ways = options.ways or list(files)
    has_fabric = any(way.startswith("libfabric") for way in ways)
    (folder / "jbof.toml").write_text(f'socket = "jbof.sock"\nlisten = "{at}"\n{own_flash}' +
                                      f'fabric = "{fabric}"\n' * has_fabric)
    (folder / "target.toml").write_text(
        f'port = [{{ address = "{flash_at}" }}]\n[[subsystem]]\nnqn = "{SUBSYSTEM}"\n[[subsystem.namespace]]\n'
        'backend = "file"\npath = "store.flash"\nread_only = true\nunlocked = true\n')
    with contextlib.ExitStack() as stack:
        def serve(name, kind, port):
            command = [PROGRAM, kind, "--config", f"{name}.toml"]
            return stack.enter_context(Served(name, command, port, folder))

        others = [serve(name, name, int(address.rsplit(":", 1)[1])) for name, address in (("jbof", at), ("target", flash_at))]
        doors = []
        for way in ways:
            port = free_port()
            (folder / f"{way}.toml").write_text(f'listen = "127.0.0.1:{port}"\ninsecure = true\n' + files[way])
            doors.append(serve(way, "kv", port))
        print("| request | in a pipeline | JBOF | requests/s, to the first | CPU of the door | of the JBOF | of the target |")
        print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
        for size in options.sizes:
            # Those of one JBOF have one store.
            own = [one for one in doors if one.name in ("inside", "loops")]
            for one in own + [one for one in doors if one not in own][:1]:
                one.measure("set", size, 16, 3 * options.keys, options.keys)
            for test, pipeline in (("get", 1), ("get", 16), ("set", 16)):
                rounds = [[one.cost(others, test, size, pipeline, options.requests, options.keys) for one in doors]
                          for _ in range(options.rounds)]
                medians = [median(column) for column in zip(*rounds)]
                for one, (rate, *costs) in zip(doors, medians):
                    cells = " | ".join("" if one in own and at else f"{cost:.2f} s a million"
                                       for at, cost in enumerate(costs))
                    print(f"| {test.upper()} of {size} B | {pipeline} | {one.name} | {rate:,.0f} "
                          f"({rate / medians[0][0]:.2f}) | {cells} |", flush=True)


def built_ycsb(folder):
    """The program of tools/ycsb, in this folder."""
    program = pathlib.Path(folder) / "ycsb"
    subprocess.run(["go", "build", "-o", program, "."], check=True, cwd=ROOT / "tools/ycsb")
    return program


def compare_ycsb(ours, theirs, folder, options):
    """YCSB on both in turn."""
    program = built_ycsb(folder)
    rounds = [[one.ycsb(program, options.keys, options.requests) for one in (ours, theirs)] for _ in range(options.rounds)]
    print(f"{options.keys:,} records of 1,000 B, {options.rounds} rounds of {options.requests:,} operations, 8 connections\n")
    print("| workload | operations/s, ours to Redis's |")
    print("| --- | ---: |")
    for letter in rounds[0][0]:
        mine, redis = median([[one[letter] for one in turn] for turn in rounds])
        print(f"| {letter} | {mine:,.0f} to {redis:,.0f} ({mine / redis:.2f}) |")


class Limited:
    """A control group whose processes have so many bytes of memory, what the system keeps of their files among them."""

    def __init__(self, name, limit):
        root = pathlib.Path("/sys/fs/cgroup")
        old = root / "memory/memory.limit_in_bytes"
        self.folder = (root / "memory" if old.exists() else root) / f"rackweave-{os.getpid()}-{name}"
        try:
            self.folder.mkdir()
            (self.folder / (old.name if old.exists() else "memory.max")).write_text(str(limit))
        except OSError as error:
            sys.exit(f"no control group with a limit of memory: {error}")

    def join(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.rmdir()


def limited_servers(folder, limit, records):
    """Name, command, port and protocol of each server."""
    # What is for its own data. Memcached has buffers of its flash besides: with three quarters it was killed.
    own, items = limit * 3 // 4, limit // 2
    ours, redis, memcached = (free_port() for _ in range(3))
    # About 15 keys a block are best. No slot holds such values.
    text = f'listen = "127.0.0.1:{ours}"\npath = "store.flash"\nblocks = {max(records // 15, 1024)}\nslots = 0\n'
    (pathlib.Path(folder) / "kv.toml").write_text(text + 'size = "4GiB"\nflush = false\ninsecure = true\n')
    yield "rackweave", [PROGRAM, "kv", "--config", "kv.toml"], ours, "redis"
    yield "redis", ["redis-server", "--port", str(redis), "--save", "", "--appendonly", "no", "--maxmemory", str(own),
                    "--maxmemory-policy", "allkeys-lru"], redis, "redis"
    yield "memcached", ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(memcached), "-m", str(items >> 20),
                        "-o", "ext_path=extstore.flash:4g,ext_item_size=64"], memcached, "memcached"


def compare_limited(folder, options):
    """YCSB's workload B on each in turn, with records of four times the memory."""
    program = built_ycsb(folder)
    limit = options.memory << 20
    print("| value | server | operations/s | P99 of reads | reads that found nothing | CPU of the server |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for size in (size for size in (100, 4096) if size in options.sizes):
        records = 4 * limit // size
        # A field is in a JSON object of 13 B more, in base 64.
        call = [program, "-fields", "1", "-field-bytes", str((size - 13) * 3 // 4), "-records", str(records), "-misses"]
        for name, command, port, database in limited_servers(folder, limit, records):
            with Limited(name, limit) as group, Served(name, command, port, folder, group.join) as server:
                own = [*call, "-database", database, "-address", f"127.0.0.1:{port}"]
                rounds = limited(server, own, options)
            (pathlib.Path(folder) / "store.flash").unlink(missing_ok=True)
            rate, missed, late, cpu = median(rounds)
            print(f"| {size} B | {name} | {rate:,.0f} | {late / 1000:.2f} ms | {missed / 0.95 / options.requests:.1%} "
                  f"| {cpu:.1f} s a million |", flush=True)


def limited(server, command, options):
    """Operations a second, reads that missed, P99 of reads and CPU seconds a million of each round."""
    subprocess.run([*command, "-workloads", "", "-threads", "64"], check=True, stdout=subprocess.DEVNULL)
    rounds = []
    for _ in range(options.rounds + 1):
        before = server.cpu()
        out = subprocess.run([*command, "-workloads", "B", "-load=false", "-operations", str(options.requests)],
                             check=True, stdout=subprocess.PIPE, text=True).stdout
        line = re.search(r"^B: .* s, (\d+) a second, .* (\d+) missed, P99 of reads (\d+) us", out, re.M)
        rounds.append((*map(float, line.groups()), (server.cpu() - before) / options.requests * 1e6))
    # The first one has the load's cache.
    return rounds[1:]


def compare_large(ours, theirs, options):
    """Long values on both in turn, under so many keys that they take LARGE_KEYS_BYTES."""
    print("| request | GB/s, ours to Redis's | CPU of the server for a GB |")
    print("| --- | ---: | ---: |")
    for mebibytes in (2, 32):
        size = mebibytes << 20
        count = LARGE_BYTES // size
        for test in ("set", "get"):
            rounds = [[one.measure(test, size, 1, count, LARGE_KEYS_BYTES // size, ["-c", "4"]) for one in (ours, theirs)]
                      for _ in range(options.rounds)]
            mine, redis = median([one[0] for one in rounds]), median([one[1] for one in rounds])
            rate = [one[0] * size / 1e9 for one in (mine, redis)]
            cpu = [one[2] / 1e6 / size * 1e9 for one in (mine, redis)]
            print(f"| {test.upper()} of {mebibytes} MiB | {rate[0]:.2f} to {rate[1]:.2f} ({rate[0] / rate[1]:.2f}) "
                  f"| {cpu[0]:.2f} to {cpu[1]:.2f} s |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--jbof", action="store_true", help="compare places of the JBOF")
    parser.add_argument("--ycsb", action="store_true", help="YCSB's workloads in place of redis-benchmark")
    parser.add_argument("--large", action="store_true", help="values of 2 and 32 MiB")
    parser.add_argument("--memory", type=int, help="MiB that a server may have (64 or more), for four times as many of records")
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 100, 4096], help="bytes of values, with --jbof and --memory")
    parser.add_argument("--ways", nargs="+", help="places of the JBOF, such as tcp nvme")
    options = parser.parse_args()
    needed = ("redis-server", "redis-benchmark", *(("memcached",) if options.memory else ()))
    missing = [name for name in needed if not shutil.which(name)]
    if missing:
        sys.exit(f"{' and '.join(missing)} missing: as root, apt-get install redis-server redis-tools memcached")
    version = re.search(r"v=(\S+)", subprocess.run(["redis-server", "-v"], capture_output=True, text=True).stdout)
    if options.memory is not None:
        if options.memory < 64:
            sys.exit("--memory: memcached needs 64 MiB or more")
        with tempfile.TemporaryDirectory() as folder:
            return compare_limited(folder, options)
    if options.jbof:
        with tempfile.TemporaryDirectory() as folder:
            return compare_jbofs(folder, options)
    with tempfile.TemporaryDirectory() as folder:
        (ours, theirs) = [Served(*server, folder) for server in servers(folder, options)]
        with ours, theirs:
            print(f"redis-server {version[1] if version else '?'}")
            if options.ycsb:
                compare_ycsb(ours, theirs, folder, options)
            elif options.large:
                compare_large(ours, theirs, options)
            else:
                compare(ours, theirs, options)


def compare(ours, theirs, options):
    print(f"{options.keys:,} keys, {options.rounds} rounds of {options.requests:,} requests\n")
    print("| request | in a pipeline | requests/s, ours to Redis's | p99 | CPU of the server |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for size in (100, 4096):
        for server in (ours, theirs):
            server.measure("set", size, 16, 3 * options.keys, options.keys)
        for test in ("get", "set"):
            for pipeline in (1, 16):
                rounds = [[server.measure(test, size, pipeline, options.requests, options.keys) for server in (ours, theirs)]
                          for _ in range(options.rounds)]
                mine, redis = median([one[0] for one in rounds]), median([one[1] for one in rounds])
                rate = f"{mine[0]:,.0f} to {redis[0]:,.0f} ({mine[0] / redis[0]:.2f})"
                late = f"{mine[1]:.2f} to {redis[1]:.2f} ms"
                cpu = f"{mine[2]:.1f} to {redis[2]:.1f} s a million"
                print(f"| {test.upper()} of {size} B | {pipeline} | {rate} | {late} | {cpu} |", flush=True)


if __name__ == "__main__":
    main()
