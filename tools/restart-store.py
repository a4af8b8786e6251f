#!/usr/bin/env python3
"""Measures how long `rackweave kv` takes to answer after a kill, and that it has lost nothing.

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
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = os.environ.get("RACKWEAVE", str(ROOT / "target/release/rackweave"))
GIB = 1 << 30
PIPELINE = 256
START_SECONDS_MAX = 600


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def value_of(number, length):
    return f"value {number} ".encode().ljust(length, b".")


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


def fill(client, numbers, length):
    """Stores values. Returns how many were acknowledged."""
    stored = 0
    for first in range(0, len(numbers), PIPELINE):
        part = numbers[first : first + PIPELINE]
        client.send(*(request(b"SET", b"key:%d" % number, value_of(number, length)) for number in part))
        for _ in part:
            answer = client.answer()
            if answer != b"+OK":
                sys.exit(f"a value was refused: {answer!r}")
            stored += 1
    return stored


def kill_while_writing(process, client, count, length):
    """Kills the store with requests on their way. Returns how many of these were acknowledged."""
    client.send(*(request(b"SET", b"key:%d" % number, value_of(number, length)) for number in range(count, count + 64)))
    process.kill()
    process.wait()
    acknowledged = 0
    try:
        while client.answer() == b"+OK":
            acknowledged += 1
    except (ConnectionError, OSError):
        pass
    return acknowledged


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


def first_answer(folder, port, length):
    """Starts the store. Returns it, its client, and seconds until it has answered a GET."""
    begin = time.monotonic()
    process = start(folder, port)
    client = client_of(process, port, folder)
    client.send(request(b"GET", b"key:0"))
    answer = client.answer()
    if answer != value_of(0, length):
        sys.exit(f"the first answer is wrong: {answer!r}")
    return process, client, time.monotonic() - begin


def compare_all(client, count, length):
    for first in range(0, count, PIPELINE):
        part = range(first, min(first + PIPELINE, count))
        client.send(*(request(b"GET", b"key:%d" % number) for number in part))
        for number in part:
            if client.answer() != value_of(number, length):
                sys.exit(f"key:{number} was acknowledged, and is lost or wrong")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=400_000)
    parser.add_argument("--bytes", type=int, default=4096, help="of a value")
    parser.add_argument("--folder", type=pathlib.Path, help="where the file of the store is made")
    parser.add_argument("--turns", type=int, default=3, help="kills and restarts")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=wanted.folder) as folder:
        measure(pathlib.Path(folder), wanted)


def measure(folder, wanted):
    port = free_port()
    # With a record's and a page's head, and a third more for compaction.
    zone = 16 << 20
    zones = wanted.values * (wanted.bytes + 600) * 3 // 2 // zone + 16
    size = zones * zone
    blocks = max(1024, wanted.values // 15)
    config = f'listen = "127.0.0.1:{port}"\ninsecure = true\npath = "store.flash"\nflush = false\n'
    (folder / "kv.toml").write_text(f"{config}size = \"{size}B\"\nzone = \"16MiB\"\nblocks = {blocks}\n")
    process = start(folder, port)
    client = client_of(process, port, folder)
    count = fill(client, range(wanted.values), wanted.bytes)
    for turn in range(wanted.turns):
        count += kill_while_writing(process, client, count, wanted.bytes)
        path = folder / "store.flash"
        drop_cache(path)
        process, client, restart = first_answer(folder, port, wanted.bytes)
        compare_all(client, count, wanted.bytes)
        drop_cache(path)
        whole, total = read_whole(path)
        print(
            f"turn {turn + 1}: {count} values, {total / GIB:.2f} GiB of data; first answer after {restart:.2f} s, "
            f"{restart / whole:.2f} times the {whole:.2f} s that reading the file takes; nothing acknowledged is lost",
            flush=True,
        )
    process.kill()
    process.wait()


if __name__ == "__main__":
    main()
