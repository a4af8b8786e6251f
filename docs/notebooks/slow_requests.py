"""Why is P99 so? A run, its explanation, its timeline, and a formula."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Why is P99 so?")

with app.setup:
    import altair
    import marimo as mo
    import polars
    import rackweave


@app.cell
def _():
    mo.md(r"""
    # Why is P99 so?

    **Question.** Fifteen nodes write 1 KiB each to one, and keep its link 90 % busy. The 99th
    percentile is far above the median. What do the slow requests wait for, and would less load help?
    """)
    return


@app.cell
def _():
    load = 0.9
    experiment = rackweave.Experiment(
        title="Sixteen nodes write to one",
        design={"name": "dctcp"},
        fabric={"nodes": 16, "rate": "100Gbps"},
        workload={"pattern": "incast", "target": 3, "load": load, "size": "1KiB", "read_fraction": 0.0},
        run={"requests": 20_000},
    )
    run = experiment.run(spans="slowest:20", progress=False)
    mo.md(f"```\n{run}\n```")
    return experiment, load, run


@app.cell
def _():
    mo.md(r"""
    ## Explain

    `explain` compares slow requests with usual ones, span by span, and says what they have in
    common.
    """)
    return


@app.cell
def _(run):
    explanation = run.explain(worst=3)
    explanation
    return (explanation,)


@app.cell
def _():
    mo.md(r"""
    ## The slowest requests on their way

    Each row is a request, each bar a span of its time. `rackweave timeline` writes the same for
    Perfetto.
    """)
    return


@app.cell
def _(run):
    spans = run.spans().to_polars().with_columns(
        begin_us=polars.col("begin_ps") / 1e6, end_us=polars.col("end_ps") / 1e6
    )
    altair.Chart(spans).mark_bar().encode(
        x=altair.X("begin_us:Q", title="time (us)", scale=altair.Scale(zero=False)),
        x2="end_us:Q",
        y=altair.Y("request:N", title="request"),
        color="span:N",
        tooltip=["span", "place", "place_index", "begin_us", "end_us"],
    )
    return (spans,)


@app.cell
def _():
    mo.md(r"""
    ## A formula

    Packets of one size that arrive at random at one link are a queue whose service takes the same
    time *S* for each, M/D/1. At a load of *r*, a packet waits *r S* / (2 (1 - *r*)) on average
    (Pollaczek and Khinchine). *S* is the time that a message takes of the link. It follows from the
    run: the share of time for which the link was busy, over the rate of requests. A message of 1 KiB
    is one packet. Those of larger messages arrive together, and wait longer than this.
    """)
    return


@app.cell
def _(experiment):
    _rows = []
    for _load in (0.3, 0.5, 0.7, 0.8, 0.9):
        _run = experiment.set("workload.load", _load).run(seeds=range(1, 4), progress=False)
        _summary = _run.summary
        _spans = _summary["span_mean_ns"]["all"]
        _busy = _summary["load"]["busiest_link"]
        _service_ns = _busy / _summary["load"]["requests_per_second"] * 1e9
        _rows.append(
            {
                "load": _load,
                "busy": _busy,
                "service_ns": _service_ns,
                "measured_ns": _spans["switch_queue"],
                "formula_ns": _busy * _service_ns / (2 * (1 - _busy)),
                "p99_ns": _summary["latency_ns"]["all"]["p99"],
            }
        )
    waits = polars.DataFrame(_rows)
    _long = waits.unpivot(["measured_ns", "formula_ns"], index="load", variable_name="wait", value_name="ns")
    altair.Chart(_long).mark_line(point=True).encode(
        x=altair.X("load:Q", scale=altair.Scale(zero=False)),
        y=altair.Y("ns:Q", title="mean wait (ns)"),
        color="wait:N",
    )
    return (waits,)


@app.cell
def _(explanation, load, waits):
    facts = explanation.facts
    longest = max(facts["spans"], key=lambda span: span["slow_ns"] - span["usual_ns"])
    common = [f"{item['of']} {item['value']}" for item in facts["common"]]
    half, full = (waits.row(by_predicate=polars.col("load") == at, named=True) for at in (0.5, load))
    answer = (
        f"The 99th percentile of {facts['p99_ns'] / 1e3:.1f} us is {facts['p99_ns'] / facts['median_ns']:.1f} times the "
        f"median. {100 * longest['extra_share']:.0f} % of the extra time is `{longest['span']}`. The cause is "
        f"{facts['cause']['kind']}; slow requests have in common: {', '.join(common)}. At a load of 0.5 the 99th "
        f"percentile is {half['p99_ns'] / 1e3:.1f} us instead of {full['p99_ns'] / 1e3:.1f}. A queue of "
        f"fixed service time predicts a mean wait of {full['formula_ns']:.0f} ns at {load}; "
        f"{full['measured_ns']:.0f} ns were measured."
    )
    mo.md(f"**Answer.** {answer}")
    return


if __name__ == "__main__":
    app.run()
