#!/usr/bin/env python3
"""Runs the commands of the guides and compares what they print with what the guides show.

A row of a table that begins with a metric and a number shows that metric of the last run.
A block marked `text` shows lines of the output of the command above it: they must follow
one another in that output. `--bless` writes the present output in their place. Needs the
program that RACKWEAVE names, or target/release/rackweave.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("RACKWEAVE", "target/release/rackweave")
# Commands that serve until they are ended, need a measurement of the reader's, or take hours.
NOT_RUN = re.compile(r"rackweave (target|kv|jbof|rack|disk|attack|fit)\b|target.toml|--scale paper")

# Programs of these languages have tests of their own: what they print is no output of a command.
FOREIGN = ("```python", "```sql")


def parts(text):
    """Yields ("command" | "shown" | "metric" | "file", line number, what) in their order."""
    lines = text.split("\n")
    index, name, foreign = 0, None, False
    while index < len(lines):
        line = lines[index]
        name = (re.findall(r"Save this as `([^`]+)`", line) or [name])[0]
        if line.startswith("```"):
            start = index + 1
            index = start
            while not lines[index].startswith("```"):
                index += 1
            if line == "```text" and not foreign:
                yield "shown", start, lines[start:index]
            foreign = line in FOREIGN
            if line == "```toml" and name:
                yield "file", start, (name, "\n".join(lines[start:index]))
                name = None
        elif row := re.match(r"\| `(\w+)` \| ([\d.,]+) \|", line):
            yield "metric", index, row.groups()
        elif line.startswith("    "):
            start, command = index, line.strip()
            while command.endswith("\\"):
                index += 1
                command = command[:-1] + " " + lines[index].strip()
            yield "command", start, re.sub("^(target/release/)?rackweave ", f"{PROGRAM} ", command)
        index += 1


def run(command, folder):
    """Runs a command in `folder`, and returns the lines that it prints."""
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return [line.rstrip() for line in (done.stdout + done.stderr).split("\n")]


def workplace(folder):
    """Makes a folder look as the repository does, so that commands leave nothing there."""
    for entry in ROOT.iterdir():
        if entry.name not in ("out", ".git"):
            (folder / entry.name).symlink_to(entry)
    return folder


def metric(name, shown, command, folder):
    """The metric of the run of `command`, with as many decimals as the guide shows."""
    out = re.search(r"--out (\S+)", command).group(1)
    value = json.loads((folder / out / "summary.json").read_text())["metrics"][name]
    decimals = len(shown.partition(".")[2])
    return f"{value:,.{decimals}f}"


def find(shown, printed):
    """The place of the shown lines in the output: all of them, one after the other; else None."""
    places = range(len(printed) - len(shown) + 1)
    return next((place for place in places if printed[place : place + len(shown)] == shown), None)


def alike(line, printed):
    """The place of the first printed line that begins with the same words, two or one."""
    for words in (2, 1):
        for place, other in enumerate(printed):
            if other.split()[:words] == line.split()[:words]:
                return place
    sys.exit(f"no line of the output begins as {line!r} does")


def renewed(shown, printed):
    """The lines of the output from the one that begins as the first shown does to the last."""
    if len(shown) == len([line for line in printed if line]):
        return [line for line in printed if line]
    start = alike(shown[0], printed)
    return printed[start : start + alike(shown[-1], printed[start:]) + 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bless", action="store_true", help="write the present output there")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    pages = arguments.pages or sorted((ROOT / "docs/guide").glob("*.md"))
    wrong = commands = blocks = 0
    for page in pages:
        lines = page.read_text().split("\n")
        with tempfile.TemporaryDirectory() as temporary:
            # A block that grows moves those behind it: they are written when all are known.
            blessed = []
            folder, printed, command = workplace(pathlib.Path(temporary)), [], ""
            for kind, start, what in list(parts("\n".join(lines))):
                if kind == "file":
                    (folder / what[0]).write_text(what[1])
                    continue
                if kind == "command":
                    is_run = what.startswith((PROGRAM, "python3 ")) and not NOT_RUN.search(what)
                    printed, command = (run(what, folder), what) if is_run else ([], command)
                    commands += is_run
                    continue
                blocks += 1
                if kind == "metric":
                    value = metric(*what, command, folder)
                    if value != what[1] and arguments.bless:
                        lines[start] = lines[start].replace(what[1], value, 1)
                    elif value != what[1]:
                        wrong += 1
                        print(f"{page}:{start + 1}: {what[0]} is {value}, not {what[1]}")
                    continue
                shown = [line.rstrip() for line in what]
                if find(shown, printed) is not None:
                    continue
                if arguments.bless and printed:
                    blessed.append((start, start + len(shown), renewed(shown, printed)))
                    continue
                wrong += 1
                heading = f"{page}:{start}: the command above does not print this:"
                print(heading, *shown, "but:", *printed, sep="\n  ")
        for start, end, block in reversed(blessed):
            lines[start:end] = block
        if arguments.bless:
            page.write_text("\n".join(lines))
    print(f"{len(pages)} pages, {commands} commands, {blocks} outputs, {wrong} of them wrong")
    if wrong or not blocks:
        sys.exit(1)


if __name__ == "__main__":
    main()
