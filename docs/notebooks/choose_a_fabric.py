"""Choose a fabric: the cheapest one that keeps a goal."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Choose a fabric")

with app.setup:
    import altair
    import marimo as mo
    import polars
    import rackweave


@app.cell
def _():
    mo.md(r"""
    # Choose a fabric

    **Question.** Eight storage nodes of four drives serve eight clients, which read and write 64 KiB.
    Which of six networks is the cheapest that keeps the 99th percentile of reads below a goal?

    [The guide](https://github.com/rackweave/rackweave/blob/main/docs/guide/choose-a-fabric.md) has
    costs, bounds and transports. Costs are those of the paper's model (NSDI 2026, section 5.2):
    switches and adapters.
    """)
    return


@app.cell
def _():
    hosts, depth = 8, 8
    experiment = rackweave.Experiment(
        title="A fabric for two racks",
        design={"name": "san"},
        fabric={"rate": "100Gbps", "hosts": hosts, "targets": 8},
        drives={"per_target": 4},
        io={"write_share": 0.2, "size": "64KiB", "depth": depth},
        run={"requests": 12_000},
        sweep={
            "axis": [
                {
                    "name": "fabric",
                    "points": [
                        {"label": "one ToR", "set": {"fabric.kind": "single-switch", "fabric.trunk": 4}},
                        {
                            "label": "two ToRs",
                            "set": {"fabric.kind": "redundant-switches", "fabric.switches": 2, "fabric.trunk": 2},
                        },
                        *(
                            {"label": label, "set": {**kind, "fabric.endpoint_cables": 4}}
                            for label, kind in {
                                "ring": {"fabric.kind": "ring", "fabric.nodes": 8},
                                "dual ring": {"fabric.kind": "dual-ring", "fabric.nodes": 8},
                                "2D torus": {"fabric.kind": "torus", "fabric.dimensions": [4, 2]},
                                "3D torus": {"fabric.kind": "torus", "fabric.dimensions": [2, 2, 2]},
                            }.items()
                        ),
                    ],
                }
            ]
        },
    )
    sweep = experiment.sweep(progress=False)
    mo.md(f"```\n{sweep}\n```")
    return depth, hosts, sweep


@app.cell
def _(sweep):
    fabrics = polars.DataFrame(
        [
            {
                "fabric": point.summary["labels"]["fabric"],
                "cost_usd": point.summary["metrics"]["fabric_cost_usd"],
                "read_p99_us": point.summary["latency_ns"]["read"]["p99"] / 1e3,
                "mean_us": point.summary["latency_ns"]["all"]["mean"] / 1e3,
                "requests_per_second": point.summary["load"]["requests_per_second"],
                "gbps": point.summary["load"]["achieved_gbps"],
                "busiest_link": point.summary["metrics"]["link_load_max_fraction"],
            }
            for point in sweep
        ]
    )
    return (fabrics,)


@app.cell
def _():
    mo.md(r"""
    ## The goal
    """)
    return


@app.cell
def _():
    goal = mo.ui.slider(50, 300, value=175, step=1, label="99th percentile of reads, at most (us)", show_value=True)
    goal
    return (goal,)


@app.cell
def _(goal):
    goal_us = goal.value
    return (goal_us,)


@app.cell
def _(fabrics, goal_us):
    _points = altair.Chart(fabrics).mark_point(filled=True, size=100).encode(
        x=altair.X("cost_usd:Q", title="cost of switches and adapters (USD)", scale=altair.Scale(zero=False)),
        y=altair.Y("read_p99_us:Q", title="99th percentile of reads (us)", scale=altair.Scale(zero=False)),
        color="fabric:N",
        tooltip=fabrics.columns,
    )
    _points + altair.Chart(polars.DataFrame({"goal": [goal_us]})).mark_rule(strokeDash=[4, 4]).encode(y="goal:Q")
    return


@app.cell
def _(fabrics, goal_us):
    good = fabrics.filter(polars.col("read_p99_us") <= goal_us).sort("cost_usd", "read_p99_us")
    best = good.row(0, named=True) if good.height else None
    fastest = fabrics.sort("read_p99_us", "cost_usd").row(0, named=True)
    if best is None:
        answer = (
            f"None of the six keeps {goal_us:.0f} us. The fastest is the {fastest['fabric']} with "
            f"{fastest['read_p99_us']:.0f} us, for {fastest['cost_usd']:,.0f} USD."
        )
    else:
        answer = (
            f"{good.height} of {fabrics.height} fabrics keep {goal_us:.0f} us. The cheapest of them is the "
            f"{best['fabric']}: {best['read_p99_us']:.0f} us and {best['gbps']:.0f} Gb/s for "
            f"{best['cost_usd']:,.0f} USD. The fastest is the {fastest['fabric']}: {fastest['read_p99_us']:.0f} us for "
            f"{fastest['cost_usd']:,.0f} USD."
        )
    mo.md(f"**Answer.** {answer}")
    return


if __name__ == "__main__":
    app.run()
