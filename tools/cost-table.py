#!/usr/bin/env python3
"""Measures what a point of a sweep costs in each scene: points an hour on one core.

The points are those of `rackweave init`, and one of each design that the scene compares. Each is
played alone, --times times, and the median of its CPU time counts: user and system time of the
process, its results included. `--write PAGE` puts the table into a page, between its marks.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

BEGIN, END = "<!-- begin of the table of tools/cost-table.py -->", "<!-- end of the table of tools/cost-table.py -->"
# The designs of each scene, the first of which is that of `rackweave init`.
SCENES = {
    "messages": ["edm", "cxl", "receiver-driven", "pfabric", "dcqcn", "dctcp", "fastpass"],
    "volumes": ["rackblox", "vdc"],
    "wear": ["wear-levelling"],
    "san": ["san", "san-plain"],
    "devices": ["s-direct", "linux", "spdk"],
    "key-value": ["scalio", "leed", "leed-ditto"],
}


def point(program, file, design, folder):
    """Plays a point once. Returns its CPU seconds, its memory in MB and its requests."""
    out = folder / "out"
    command = [program, "run", file, "--set", f"design.name={design}", "--out", out, "--force"]
    with open(folder / "said", "w+", encoding="utf-8") as said:
        process = subprocess.Popen(list(map(str, command)), stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(f"{' '.join(map(str, command))}\nended with {process.returncode}:\n{said.read()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, offered(out)


def offered(out):
    """The requests of a run; none in a scene without them."""
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return summary["counts"]["offered"]


def row(program, scene, design, times, folder):
    """A row of the table."""
    played = [point(program, folder / f"{scene}.toml", design, folder) for _ in range(times)]
    seconds = statistics.median(cpu for cpu, _, _ in played)
    memory, requests = max(memory for _, memory, _ in played), played[0][2]
    rate = f"{requests / seconds / 1000:,.0f}" if requests else "–"
    cells = [scene, f"`{design}`", f"{requests:,}" if requests else "–", f"{seconds:.3g} s", f"{3600 / seconds:,.0f}"]
    return "| " + " | ".join([*cells, rate, f"{memory:,.0f} MB"]) + " |"


def table(program, scenes, times):
    """The lines of the table."""
    head = ["scene", "design", "requests of a point", "CPU", "points an hour a core", "thousand requests a CPU second"]
    yield "| " + " | ".join([*head, "memory"]) + " |"
    yield "|" + " --- |" * 2 + " ---: |" * 5
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for scene in scenes:
            subprocess.run([program, "init", scene, folder / f"{scene}.toml"], check=True, capture_output=True)
            for design in SCENES[scene]:
                line = row(program, scene, design, times, folder)
                print(line, flush=True)
                yield line


def machine():
    """The processor, as Linux names it."""
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path, help="the program rackweave, as users have it: target/release/rackweave")
    parser.add_argument("--times", type=int, default=5, help="how often each point is played")
    parser.add_argument("--scene", action="append", choices=SCENES, help="only this one; can be repeated")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE", help="put the table into this page")
    arguments = parser.parse_args()
    if arguments.times < 1:
        parser.error(f"--times {arguments.times}: allowed is 1 or more")
    if not arguments.program.is_file():
        parser.error(f"{arguments.program}: there is no such program; `make build` makes it")
    before, after = "", ""
    if arguments.write:
        before, begin, rest = arguments.write.read_text(encoding="utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            parser.error(f"{arguments.write}: it has no lines {BEGIN!r} and {END!r}")
    lines = list(table(arguments.program.resolve(), arguments.scene or SCENES, arguments.times))
    version = subprocess.run([arguments.program.resolve(), "--version"], check=True, capture_output=True, text=True).stdout.strip()
    lines += ["", f"Measured with {version} on {machine()}, one run at a time, medians of {arguments.times}."]
    print(lines[-1])
    if arguments.write:
        text = "\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{after}"])
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
