#!/usr/bin/env python3
"""Shows that tests in lock step fail when a guard of the gates is removed.

What rtl/formal/prove.py does for proofs, for modules that have none: a guard is a piece of the gates;
in a copy of rtl it is replaced, and then its test must fail. Without a change all tests must pass. Only
the units of the tests are compiled (RTL_UNITS, rtl/harness/build.rs). Needs Verilator and Cargo.
"""

import argparse
import dataclasses
import os
import pathlib
import shutil
import sys
import time

from prove import GATES, Failed, Guard, replaced, said_by, take

ROOT = GATES.parent.parent
COPY = ROOT / "target" / "rtl" / "guards"


@dataclasses.dataclass(frozen=True)
class Tests:
    """A file of tests, the units that it plays, and what of the gates it must see."""

    name: str
    units: tuple
    guards: tuple


MIRROR, DUAL, PORT, INGRESS, EGRESS = "edm_mirror", "edm_dual_host", "edm_port", "edm_ingress", "edm_egress"
TRANSMIT = "edm_host_transmit"
ALL = (
    Tests("mirror", ("mirror",), (
        Guard("the rest of a torn message", MIRROR, "!dies[i] && !(torn_q[i] && is_rest)", "!dies[i]"),
        Guard("the wait for the other one's message", MIRROR, "message_q[1-i].open && message_q[1-i].keep) begin",
              "message_q[1-i].open && message_q[1-i].keep && 1'b0) begin"),
        Guard("the last one", MIRROR, "!dead_q[1-i] && !(i == 1 && dies[0])", "!(i == 1 && dies[0])"),
        Guard("one of two that fail together", MIRROR, " && !(i == 1 && dies[0])", ""),
        Guard("a copy is whole", MIRROR, "if (ends && !message.stranger", "if (starts && !message.stranger"),
        Guard("the top of the lead", MIRROR, " && lead != LeadMax && lead != -LeadMax", " && lead != -LeadMax"),
        Guard("strangers", MIRROR, "starts ? is_first && !message.stranger", "starts ? is_first"),
        Guard("what is for nobody", MIRROR, " || (kind != KindGrant && header.source == header.target)", ""),
        Guard("the end of what has broken off", MIRROR, "if (dead_q[i] && !head_valid[i])", "if (dead_q[i] && !head_valid[i] && 1'b0)"),
        Guard("the owner of a standstill", MIRROR, "(stalls && message_q[i].open && message_q[i].keep)", "stalls"),
        Guard("the standstill", MIRROR, " || (stalls && message_q[i].open && message_q[i].keep)", " || (stalls && 1'b0)"),
        Guard("grants for writes and answers apart", MIRROR, "? CountedWriteGrant : CountedAnswerGrant", "? CountedWriteGrant + 3'd1 : CountedAnswerGrant"),
        Guard("an abandoned network", MIRROR, "dies[i] = down_i[i] || !used_q[i];", "dies[i] = down_i[i] || (!used_q[i] && 1'b0);"),
    )),
    Tests("switch", ("switch3",), (
        Guard("the end of a message by a dead port", PORT, "ends = silent && message_open", "ends = silent && message_open && 1'b0"),
        Guard("the bytes of a circuit", INGRESS, "circuit_q[c].bytes >= BytesW'(header.size)", "circuit_q[c].bytes != 0"),
        Guard("the id of a circuit", INGRESS, "            circuit_q[c].id == header.id && ", "            "),
        Guard("the age of a circuit", INGRESS, "if (circuit_q[c].old) circuit_valid_d[c] = 1'b0;", ""),
        Guard("the sender's own number", INGRESS, "header.source == own_i && header.target", "header.target"),
        Guard("the room for a cut", INGRESS, "32'(room) > 32'(payload_blocks(message_bytes))", "32'(room) >= 32'(payload_blocks(message_bytes))"),
        Guard("the count of requests", INGRESS, "request_good = places_q[PortW'(target_q)] != PlacesW'(2 * Active);",
              "request_good = places_q[PortW'(target_q)] != PlacesW'(2 * Active) || 1'b1;"),
        Guard("the place of a refused request", INGRESS, "waits_q[2] && refused_i != RefusedNot && waiting", "waits_q[2] && refused_i != RefusedNot && 1'b0 && waiting"),
        Guard("a message that stands still", INGRESS, "(memory_fault_i || down_i || stalled)", "(memory_fault_i || down_i || (stalled && 1'b0))"),
        Guard("a message that is broken", INGRESS, "(memory_fault_i || down_i || stalled)", "((memory_fault_i && 1'b0) || down_i || stalled)"),
        Guard("ids of writes in requests", INGRESS, "own_message && !id_of_write(header.id) && header.kind", "own_message && header.kind"),
        Guard("what is after an RMWREQ", INGRESS, " && memory_i.payload[63:8] == 0;", ";"),
        Guard("what is before a request", EGRESS, "emit_waits[r] && front.ahead == left_i[r]", "emit_waits[r] && (front.ahead == left_i[r] || 1'b1)"),
        Guard("what waits for a request", EGRESS, "(!due[s] || (lane_q == LaneForward && source_q == PortW'(s)))", "(!due[s] || 1'b1)"),
        Guard("a message at a time", EGRESS, "forward_wants = lane_q == LaneForward && asks[source_q];", "forward_wants = asks[source_q];"),
        Guard("the turns of sources", EGRESS, "source_d = forward_goes ? source : source_q", "source_d = forward_goes && lane_d != LaneFree ? source : '0"),
        Guard("the cut", EGRESS, "message_cut_o = forward_wants && forward_i[source].cut", "message_cut_o = forward_wants && forward_i[source].cut && 1'b0"),
        Guard("what a dead port takes of a message", PORT, "message_ready_o = message_ready || silent", "message_ready_o = message_ready"),
        Guard("the first grant of an answer", EGRESS, "grant_i.class_id == ClassResponse && grant_i.first", "grant_i.class_id == ClassResponse"),
    )),
    Tests("dual", ("dual2", "dual2_fair", "system2"), (
        Guard("the end of a message by a port", PORT, "ends = silent && message_open", "ends = silent && message_open && 1'b0"),
        Guard("a block on both lines", DUAL, "behind == 0 ? leaves == '1", "behind == 0 ? leaves != '0"),
        Guard("a block to both ports or none", DUAL, "message_valid && message_ready)", "message_valid)"),
        Guard("an abandoned port", DUAL, ".abandoned_i    (!used_o[i])", ".abandoned_i    (1'b0)"),
    )),
    Tests("order", ("system2", "system3"), (
        Guard("the wait for a long read", TRANSMIT, "front.kind != AccessRead && touches_i", "front.kind != AccessRead && touches_i && 1'b0"),
        Guard("the wait of a modification", TRANSMIT, "front.kind != AccessRead && touches_i", "front_write && touches_i"),
    )),
)


def copied(units, guard=None):
    """Writes the copy of rtl, with one piece replaced."""
    for folder in ("edm", "harness"):
        for path in (ROOT / "rtl" / folder).rglob("*"):
            relative = path.relative_to(ROOT / "rtl")
            if path.is_dir() or relative.parts[:2] == ("harness", "target"):
                continue
            text = path.read_text(encoding="utf-8")
            if guard and path.name == f"{guard.file}.sv":
                text = replaced(text, guard.text, guard.instead, guard.file)
            if path.name == "Cargo.toml":
                text = text.replace("../../crates", str(ROOT / "crates"))
            target = COPY / "rtl" / relative
            # Cargo compiles what is newer.
            if not target.exists() or target.read_text(encoding="utf-8") != text:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
    # What of Rust has not changed is not compiled again.
    own = {"RTL_UNITS": ",".join(units), "CARGO_TARGET_DIR": str(COPY / "target"), "CARGO_INCREMENTAL": "1"}
    return {**os.environ, **own}


def passes(tests, environment, limit):
    """Whether a file of tests passes, and the reason that it gives if not."""
    command = ["cargo", "test", "--locked", "--quiet", "--manifest-path", str(COPY / "rtl/harness/Cargo.toml"), "--test", tests.name]
    said = said_by(command, limit, tests.name, env=environment)
    if "test result: ok" in said:
        return True, ""
    if "test result: FAILED" not in said and "process abort signal" not in said:
        raise Failed(f"{tests.name} does not run:\n{said[-4000:]}")
    lines = said.splitlines()
    panicked = next((at for at, line in enumerate(lines) if "panicked at" in line), len(lines) - 2)
    return False, lines[panicked + 1].strip()[:160]


def refute(tests, guard, limit):
    """Without the guard a test fails."""
    begin = time.monotonic()
    passed, reason = passes(tests, copied(tests.units, guard), limit)
    if passed:
        raise Failed(f"{tests.name} passes without {guard.name}")
    print(f"lockstep: {tests.name} without {guard.name}: {reason} ({time.monotonic() - begin:.0f} s)", flush=True)


def steps(arguments):
    """The tests as they are, then without each guard."""
    for tests in [tests for tests in ALL if arguments.tests in (None, tests.name)]:
        passed, reason = passes(tests, copied(tests.units), arguments.limit)
        if not passed:
            sys.exit(f"lockstep: {tests.name} fails with all guards: {reason}")
        for guard in [guard for guard in tests.guards if (arguments.guard or "") in guard.name]:
            yield lambda tests=tests, guard=guard: refute(tests, guard, arguments.limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", choices=[tests.name for tests in ALL], help="only these")
    parser.add_argument("--guard", help="only guards whose name has this")
    parser.add_argument("--limit", type=int, default=1800, help="seconds for one guard")
    arguments = parser.parse_args()
    if not shutil.which("verilator"):
        sys.exit("lockstep.py: verilator is missing: tools/setup-rtl.sh installs it")
    take(steps(arguments), "lockstep")


if __name__ == "__main__":
    main()
