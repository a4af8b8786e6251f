"""Rackweave simulates one disaggregated rack of storage and memory.

    experiment = rackweave.Experiment.from_toml("first.toml").set("workload.load", 0.8)
    run = experiment.run(seeds=range(1, 6))
    print(run)
    frame = run.requests().to_polars()

The command line `rackweave` does the same: both share one implementation, and the same experiment
and seed give the same bytes.
"""

from ._native import VERSION as __version__
from ._native import Demand, Job, Read, Unit
from .errors import (
    ExperimentError,
    InputError,
    Interrupted,
    PartialWarning,
    PolicyError,
    Problem,
    RackweaveError,
    RackweaveWarning,
    RunError,
)
from .experiment import Experiment, Plan, reproduce
from .frame import Frame
from .progress import Progress
from .results import Comparison, Explanation, Reproduction, Run, Sweep, compare, explain, open

__all__ = [
    "Comparison",
    "Demand",
    "Experiment",
    "ExperimentError",
    "Explanation",
    "Frame",
    "InputError",
    "Interrupted",
    "Job",
    "PartialWarning",
    "PolicyError",
    "Plan",
    "Problem",
    "Progress",
    "RackweaveError",
    "RackweaveWarning",
    "Read",
    "Reproduction",
    "Run",
    "RunError",
    "Sweep",
    "Unit",
    "__version__",
    "compare",
    "explain",
    "open",
    "reproduce",
]
