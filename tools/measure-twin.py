#!/usr/bin/env python3
"""Measures how far the twin of a live rack is off: the tables of docs/reference/twin.md.

Starts racks on this machine, loads them, and has `rackweave twin` simulate what their journals tell.
Each load runs twice: each run is simulated with its own model, and the second one with that of the
first. Prints a line for each span from end to end: the error of the twin's P50 and P99 in per cent.
It ends with how many are within 15 % (P50) and 30 % (P99). A decision that differs ends it with 1.

Nothing else may run meanwhile. Needs the program that RACKWEAVE names, or target/release/rackweave.
"""

import argparse
import json
import os
import pathlib
import random
import select
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = str(pathlib.Path(os.environ.get("RACKWEAVE", ROOT / "target/release/rackweave")).resolve())
SECONDS = 6
KEYS = 20_000
PIPELINE = 64
# Most updates are of pipelines, so one in a hundred is one pipeline in a hundred: 15 are beyond P99.
PIPELINES = 1_500
WITHIN = {"P50": 15, "P99": 30}
FLASH = 'path = "store.flash"\nsize = "1GiB"\nblocks = 2048\nflush = false\n'


def free_ports(count):
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def rackweave(folder, *arguments, allowed=(0,)):
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode not in allowed:
        sys.exit(f"rackweave {' '.join(arguments)} ended with {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


class Volumes:
    """A disk with two replicas on three servers, whose flash takes 100 us, 400 us and 3 ms."""

    def __init__(self, depth, mixed):
        self.name = f"volumes, depth {depth}" + (", reads and writes together" if mixed else "")
        self.depth, self.mixed, self.ports = depth, mixed, []

    def write(self, folder):
        switch, control, *servers, door, self.port = self.ports
        flash = 'flash = { read = "100us", program = "400us", erase = "3ms" }'
        storage = "".join(
            f'[[storage]]\nname = "s{place}"\nlisten = "127.0.0.1:{port}"\n{flash}\n' for place, port in enumerate(servers)
        )
        (folder / "rack.toml").write_text(
            f'folder = "rack"\njournal = "journal"\n[switch]\nlisten = "127.0.0.1:{switch}"\n'
            f'[control]\nlisten = "127.0.0.1:{control}"\n{storage}[[volume]]\nname = "disk"\nsize = "256MiB"\n'
            f'replicas = ["s0", "s1"]\n[[door]]\nname = "door"\nlisten = "127.0.0.1:{door}"\nconfig = "target.toml"\n'
        )
        (folder / "target.toml").write_text(
            f'[[port]]\naddress = "127.0.0.1:{self.port}"\n[[subsystem]]\nnqn = "nqn.2026-11.io.rackweave:twin"\n'
            '[[subsystem.namespace]]\nbackend = "volume"\nrack = "rack.toml"\ndoor = "door"\nvolume = "disk"\n'
            'block = "4KiB"\n'
        )

    def bench(self, load, *more):
        host = [PROGRAM, "disk", f"127.0.0.1:{self.port}", "bench", "--load", load, "--depth", str(self.depth)]
        return subprocess.Popen([*host, "--seconds", str(SECONDS), *more], stdout=subprocess.DEVNULL)

    def load(self):
        hosts = [self.bench("random-write", "--overwrite")]
        if not self.mixed:
            hosts[0].wait()
        hosts.append(self.bench("random-read"))
        for host in hosts:
            if host.wait() != 0:
                sys.exit(f"{self.name}: a host of it failed")

    def times(self, told):
        return told["comparison"]["times"]


class Stores:
    """A store: SETs in pipelines of 64, then keys at random in closed loops, one SET of five."""

    def __init__(self, name, clients, value, place, loops=1):
        self.name = f"stores, {name}, {clients} clients, {value} B"
        self.clients, self.value, self.place, self.loops, self.ports = clients, value, place, loops, []

    def write(self, folder):
        self.port, jbof = self.ports[:2]
        rack = 'folder = "rack"\njournal = "journal"\n'
        store = f'listen = "127.0.0.1:{self.port}"\ninsecure = true\nloops = {self.loops}\n'
        if self.place == "inside":
            store += FLASH
        else:
            way = {"socket": 'socket = "jbof.sock"\n', "tcp": f'listen = "127.0.0.1:{jbof}"\nsecret_file = "secret"\n'}
            store += {
                "socket": 'jbof_socket = "jbof.sock"\n',
                "tcp": f'jbof_address = "127.0.0.1:{jbof}"\njbof_secret_file = "secret"\n',
            }[self.place]
            (folder / "secret").write_text("s" * 32)
            (folder / "jbof.toml").write_text(FLASH + way[self.place])
            rack += '[[jbof]]\nname = "jbof"\nconfig = "jbof.toml"\n'
        (folder / "kv.toml").write_text(store)
        (folder / "rack.toml").write_text(f'{rack}[[store]]\nname = "store"\nconfig = "kv.toml"\n')

    def connect(self):
        stream = socket.create_connection(("127.0.0.1", self.port))
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return stream

    def fill(self):
        """Writes all keys, again and again."""
        stream = self.connect()
        answers = stream.makefile("rb")
        for first in range(0, PIPELINES * PIPELINE, PIPELINE):
            keys = [key % KEYS for key in range(first, first + PIPELINE)]
            stream.sendall(b"".join(request(b"SET", b"k%d" % key, b"v" * self.value) for key in keys))
            for _ in keys:
                if answers.readline() != b"+OK\r\n":
                    sys.exit(f"{self.name}: a SET was refused")

    def load(self):
        self.fill()
        chance, events = random.Random(1), select.epoll()
        left, streams = {}, {}

        def ask(stream):
            key = b"k%d" % chance.randrange(KEYS)
            if chance.randrange(5) == 0:
                words, length = (b"SET", key, b"v" * self.value), len("+OK\r\n")
            else:
                words, length = (b"GET", key), len(f"${self.value}\r\n") + self.value + 2
            left[stream.fileno()] = length
            stream.sendall(request(*words))

        for _ in range(self.clients):
            stream = self.connect()
            streams[stream.fileno()] = stream
            events.register(stream, select.EPOLLIN)
            ask(stream)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for number, _ in events.poll(1):
                left[number] -= len(streams[number].recv(1 << 16))
                if left[number] < 0:
                    sys.exit(f"{self.name}: an answer is longer than it should be")
                if left[number] == 0:
                    ask(streams[number])

    def times(self, told):
        return told["stores"][0]["comparison"]["times"]


def request(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def run(folder, kind):
    """Starts the rack, loads it and ends it."""
    kind.write(folder)
    rackweave(folder, "rack", "up", "rack.toml", "--wait", "60")
    try:
        kind.load()
    finally:
        rackweave(folder, "rack", "down", "rack.toml")


def errors(folder, kind, *more):
    """Errors of the twin of a run in per cent, by operation."""
    told = json.loads(rackweave(folder, "twin", "rack.toml", "--json", *more, allowed=(0, 1)))
    for role in told["roles"]:
        if role["differences"]:
            sys.exit(f"{kind.name}: {role['name']} decides otherwise: {role['first']}")
    off = {}
    for row in kind.times(told):
        if row["span"] == "total":
            percentiles = row["percentiles"]
            off[row["operation"]] = {
                name: 100 * (percentiles[name][1] / percentiles[name][0] - 1) for name in WITHIN
            }
    return off


def measure(kind, place, tally):
    """Two runs; prints their errors, and adds to `tally` whether they are small enough."""
    folders = [place / "first", place / "second"]
    # A calibration is of the same rack: its file says the same, also of addresses.
    kind.ports = free_ports(7)
    for folder in folders:
        folder.mkdir()
        run(folder, kind)
    own = [errors(folder, kind) for folder in folders]
    columns = [*own, errors(folders[1], kind, "--calibration", str(folders[0] / "journal"))]
    for operation in own[1]:
        cells = []
        for number, column in enumerate(columns):
            off = column[operation]
            cells.append(" ".join(f"{off[name]:+.0f}" for name in WITHIN))
            for name, most in WITHIN.items():
                tally[number == 2, name].append(abs(off[name]) <= most)
        print(f"| {kind.name} | {operation} | {' | '.join(cells)} |", flush=True)


KINDS = {
    "volumes": [Volumes(1, False), Volumes(4, False), Volumes(8, False), Volumes(1, True), Volumes(4, True)],
    "stores": [
        Stores("inside", 1, 50, "inside"),
        Stores("by its socket", 4, 50, "socket"),
        Stores("over TCP", 4, 4_000, "tcp"),
        Stores("inside, two loops", 8, 4_000, "inside", loops=2),
    ],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=KINDS)
    wanted = parser.parse_args()
    tally = {(by_other, name): [] for by_other in (False, True) for name in WITHIN}
    print("| load | operation | first run, P50 P99 | second run | second by the model of the first |\n| --- | --- | --- | --- | --- |")
    for name, kinds in KINDS.items():
        for kind in kinds if wanted.only in (None, name) else []:
            with tempfile.TemporaryDirectory() as place:
                measure(kind, pathlib.Path(place), tally)
    for (by_other, name), all_of in tally.items():
        whose = "another run's model" if by_other else "its own model"
        print(f"by {whose}, {sum(all_of)} of {len(all_of)} {name} are within {WITHIN[name]} %")


if __name__ == "__main__":
    main()
