"""What the tests share."""

from __future__ import annotations

import signal

import rackweave
import pytest

# A shell lets what it starts in the background ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

SMALL = """\
title = "Small messages"
design.name = "edm"
fabric = { nodes = 8, rate = "100Gbps" }
workload = { load = 0.4, size = "64B", read_fraction = 0.5 }
run.requests = 400
"""

SWEEP = SMALL + """
[sweep]
"workload.load" = [0.2, 0.5]
"design.name" = ["edm", "cxl"]
"""


@pytest.fixture
def small() -> rackweave.Experiment:
    """A run of a moment."""
    return rackweave.Experiment.from_text(SMALL, "small.toml")


@pytest.fixture
def swept() -> rackweave.Experiment:
    """A sweep of four points."""
    return rackweave.Experiment.from_text(SWEEP, "swept.toml")


@pytest.fixture
def long() -> rackweave.Experiment:
    """A run that nobody waits for."""
    return rackweave.Experiment.from_text(SMALL, "long.toml").set("run.requests", 2_000_000_000)
