#!/usr/bin/env python3
"""Measures how long `rackweave kv` takes to answer after a kill, and that it has lost nothing.

With `--overwrites N` it first overwrites values at random, N times as many as there are. It prints
the rate of each tenth, beside that of filling the store, and what compaction wrote for each byte of
updates. `--full 0.8` makes the file so short that values take so much of what it can hold, which is
three quarters of its length.

Fills a store with values, kills it (SIGKILL) while it writes, drops the page cache where that is
allowed, starts it again, and takes the time until the first GET is answered. The yardstick of the
machine is the time that reading the whole file takes, cold too: a store that reads all of its values
cannot be faster than that. All values that were acknowledged are then read and compared.
Needs the program that RACKWEAVE names, or target/release/rackweave, and room for the file: `--values
N` of `--bytes N`, by default 400,000 of 4 KiB, which take 3 GiB. `--folder` is where.
"""

import argparse
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = str(pathlib.Path(os.environ.get("RACKWEAVE", ROOT / "target/release/rackweave")).resolve())
GIB = 1 << 30
PIPELINE = 256
START_SECONDS_MAX = 600


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def value_of(number, version, length):
    return f"value {number}, version {version} ".encode().ljust(length, b".")


def request(*arguments):
    parts = [b"$%d\r\n%s\r\n" % (len(one), one) for one in arguments]
    return b"*%d\r\n" % len(arguments) + b"".join(parts)


class Client:
    """A connection that sends requests and reads their answers."""

    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port))
        self.answers = self.stream.makefile("rb")

    def send(self, *requests):
        self.stream.sendall(b"".join(requests))

    def answer(self):
        """Bytes of a value, None, a number, or a line."""
        line = self.answers.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the store went away")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return None if rest == b"-1" else self.answers.read(int(rest) + 2)[:-2]
        return int(rest) if kind == b":" else line[:-2]


def start(folder, port):
    log = open(folder / "store.log", "ab")
    return subprocess.Popen([PROGRAM, "kv", "--config", "kv.toml"], cwd=folder, stdout=log, stderr=log)


def client_of(process, port, folder):
    """A client, when the store listens."""
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        try:
            return Client(port)
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.005)
    sys.exit(f"the store does not start: {(folder / 'store.log').read_text()}")


def set_of(number, version, length):
    return request(b"SET", b"key:%d" % number, value_of(number, version, length))


def store(client, versions, numbers, length):
    """Stores the next versions of values, all of which are acknowledged. Returns values a second."""
    begin = time.monotonic()
    for first in range(0, len(numbers), PIPELINE):
        part = numbers[first : first + PIPELINE]
        for number in part:
            versions[number] = versions.get(number, -1) + 1
        client.send(*(set_of(number, versions[number], length) for number in part))
        for number in part:
            answer = client.answer()
            if answer != b"+OK":
                sys.exit(f"key:{number} was refused: {answer!r}")
    return len(numbers) / (time.monotonic() - begin)


def info(client):
    client.send(request(b"INFO"))
    lines = (line.split(":", 1) for line in client.answer().decode().splitlines() if ":" in line)
    return {name: int(value) for name, value in lines if value.isdigit()}


def overwrite(client, versions, times, length, filled):
    """Overwrites values at random, `times` as many as there are."""
    chance, before = random.Random(1), info(client)
    full = before["live_bytes"] / before["capacity_bytes"]
    count = int(times * len(versions)) // 10
    rates = [store(client, versions, chance.choices(range(len(versions)), k=count), length) for _ in range(10)]
    after = info(client)
    written, moved = (after[name] - before[name] for name in ("sectors_written", "sectors_moved"))
    print(
        f"{full:.0%} full: {10 * count} overwrites, {' '.join(f'{rate / filled:.2f}' for rate in rates)} times the "
        f"{filled:.0f} values/s of filling, tenth by tenth; compaction wrote {moved / written:.2f} B for each byte of "
        f"updates, and won back {after['zones_reclaimed'] - before['zones_reclaimed']} zones",
        flush=True,
    )


def kill_while_writing(process, client, versions, length):
    """Kills the store with requests for new keys on their way. Notes those that were acknowledged."""
    first = len(versions)
    client.send(*(set_of(number, 0, length) for number in range(first, first + 64)))
    process.kill()
    process.wait()
    try:
        while client.answer() == b"+OK":
            versions[len(versions)] = 0
    except (ConnectionError, OSError):
        pass


def drop_cache(path):
    """Takes the file out of the page cache."""
    os.sync()
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def read_whole(path):
    """Seconds to read the file in pieces of 8 MiB, holes passed over."""
    begin, at, total = time.monotonic(), 0, 0
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            os.lseek(file.fileno(), at, os.SEEK_SET)
            got = len(file.read(8 << 20))
            at, total = at + got, total + got
    return time.monotonic() - begin, total


def first_answer(folder, port, expected):
    """Starts the store. Returns it, its client, and seconds until it has answered a GET."""
    begin = time.monotonic()
    process = start(folder, port)
    client = client_of(process, port, folder)
    client.send(request(b"GET", b"key:0"))
    answer = client.answer()
    if answer != expected:
        sys.exit(f"the first answer is wrong: {answer!r}")
    return process, client, time.monotonic() - begin


def compare_all(client, versions, length):
    for first in range(0, len(versions), PIPELINE):
        part = range(first, min(first + PIPELINE, len(versions)))
        client.send(*(request(b"GET", b"key:%d" % number) for number in part))
        for number in part:
            if client.answer() != value_of(number, versions[number], length):
                sys.exit(f"key:{number} was acknowledged, and is lost or wrong")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=400_000)
    parser.add_argument("--bytes", type=int, default=4096, help="of a value")
    parser.add_argument("--folder", type=pathlib.Path, help="where the file of the store is made")
    parser.add_argument("--turns", type=int, default=3, help="kills and restarts")
    parser.add_argument("--full", type=float, default=0.8, help="how much of what the file can hold values take")
    parser.add_argument("--overwrites", type=float, default=0, help="before the first kill, times the values")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=wanted.folder) as folder:
        try:
            measure(pathlib.Path(folder), wanted)
        except OSError as error:
            sys.exit(f"{error}; the store's log ends:\n{(pathlib.Path(folder) / 'store.log').read_text()[-4000:]}")


def measure(folder, wanted):
    port = free_port()
    # A record begins with its key and what describes it, and ends with its sector of 512 B. A zone is a hundredth.
    record = -(-(wanted.bytes + 64) // 512) * 512
    used = wanted.values * record
    zone = min(16 << 20, max(1 << 20, used // 100 >> 20 << 20))
    size = (int(used / wanted.full * 4 / 3) // zone + 7) * zone
    blocks = max(1024, wanted.values // 15)
    config = f'listen = "127.0.0.1:{port}"\ninsecure = true\npath = "store.flash"\nflush = false\nvalue = "64KiB"\n'
    (folder / "kv.toml").write_text(f"{config}size = \"{size}B\"\nzone = \"{zone}B\"\nblocks = {blocks}\n")
    process = start(folder, port)
    client = client_of(process, port, folder)
    versions = {}
    filled = store(client, versions, range(wanted.values), wanted.bytes)
    if wanted.overwrites:
        overwrite(client, versions, wanted.overwrites, wanted.bytes, filled)
    for turn in range(wanted.turns):
        kill_while_writing(process, client, versions, wanted.bytes)
        path = folder / "store.flash"
        drop_cache(path)
        process, client, restart = first_answer(folder, port, value_of(0, versions[0], wanted.bytes))
        compare_all(client, versions, wanted.bytes)
        drop_cache(path)
        whole, total = read_whole(path)
        print(
            f"turn {turn + 1}: {len(versions)} values, {total / GIB:.2f} GiB of data; first answer after {restart:.2f} s, "
            f"{restart / whole:.2f} times the {whole:.2f} s that reading the file takes; nothing acknowledged is lost",
            flush=True,
        )
    process.kill()
    process.wait()


if __name__ == "__main__":
    main()
