"""A distribution of message sizes of your own, on EDM and its seven rivals."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Sizes of your own")

with app.setup:
    import altair
    import marimo as mo
    import polars
    import rackweave


@app.cell
def _():
    mo.md(r"""
    # Sizes of your own

    **Question.** An application sends messages of its own sizes. Which of EDM and seven rivals
    completes them fastest on the same links?

    Put your distribution here: pairs of a size in bytes and the share of messages up to that size,
    linear in between. A long one can be a file, `size={"cdf": "sizes.txt"}`.
    """)
    return


@app.cell
def _():
    sizes = [(8, 0.0), (64, 0.5), (512, 0.8), (4096, 0.95), (16384, 1.0)]
    return (sizes,)


@app.cell
def _():
    load, requests = 0.5, 2_000
    designs = ["edm", "cxl", "receiver-driven", "pfabric", "dcqcn", "dctcp", "fastpass", "raw-ethernet"]
    return designs, load, requests


@app.cell
def _():
    mo.md(r"""
    The load is the share of the busiest link that requests would take alone, with their headers and
    control messages. At the same load, a design with more of them carries fewer requests.
    """)
    return


@app.cell
def _(designs, load, requests, sizes):
    experiment = rackweave.Experiment(
        title="Sizes of an application",
        design={"name": "edm"},
        fabric={"nodes": 16, "rate": "100Gbps"},
        workload={
            "load": load,
            "read_fraction": 0.5,
            "size": {"name": "the application", "points": [list(point) for point in sizes]},
        },
        run={"requests": requests},
        sweep={"design.name": designs},
    )
    sweep = experiment.sweep(seeds=range(1, 4), progress=False)
    messages = sweep.requests().to_polars().filter(polars.col("measured"))
    return messages, sweep


@app.cell
def _():
    mo.md(r"""
    ## Are these the sizes?

    The line is what was asked for, the points are the messages that were sent.
    """)
    return


@app.cell
def _(messages, sizes):
    _sent = messages.filter(design="edm").select(polars.col("bytes").sort())
    sent = _sent.with_columns(share=(polars.int_range(1, polars.len() + 1) / polars.len()))
    _points = altair.Chart(sent.gather_every(max(1, sent.height // 200))).mark_point(size=12)
    # Linear in between is a bow on a logarithmic axis: each piece has 20 points.
    _asked = [
        {"bytes": low + (high - low) * part / 20, "share": below + (above - below) * part / 20}
        for (low, below), (high, above) in zip(sizes, sizes[1:])
        for part in range(21)
    ]
    _line = altair.Chart(polars.DataFrame(_asked)).mark_line()
    _bytes = altair.X("bytes:Q", scale=altair.Scale(type="log"), title="size (B)")
    (_line + _points).encode(x=_bytes, y=altair.Y("share:Q", title="share of messages"))
    return (sent,)


@app.cell
def _():
    mo.md(r"""
    ## Who is fastest?

    Completion times of small and of large messages have little in common. The figure therefore has
    the 99th percentile for each kind: up to 512 B, and larger.
    """)
    return


@app.cell
def _(messages):
    kinds = (
        messages.with_columns(
            kind=polars.when(polars.col("bytes") <= 512).then(polars.lit("small")).otherwise(polars.lit("large")),
            us=polars.col("latency_ps") / 1e6,
        )
        .group_by("design", "kind")
        .agg(p99_us=polars.col("us").quantile(0.99), mean_us=polars.col("us").mean(), messages=polars.len())
        .sort("kind", "p99_us")
    )
    altair.Chart(kinds).mark_bar().encode(
        x=altair.X("p99_us:Q", title="99th percentile of completion time (us)"),
        y=altair.Y("design:N", sort="x", title=None),
        row=altair.Row("kind:N", title=None),
    ).resolve_scale(x="independent", y="independent")
    return (kinds,)


@app.cell
def _(kinds):
    ranks = {kind: kinds.filter(kind=kind).sort("p99_us") for kind in ("small", "large")}
    fastest = {kind: rank["design"][0] for kind, rank in ranks.items()}
    _lines = [
        f"99 % of the {kind} messages complete within {rank['p99_us'][0]:.2f} us with `{rank['design'][0]}`, which is "
        f"the fastest; next is `{rank['design'][1]}` with {rank['p99_us'][1]:.2f} us, and last "
        f"`{rank['design'][-1]}` with {rank['p99_us'][-1]:.2f} us."
        for kind, rank in ranks.items()
    ]
    answer = " ".join(_lines)
    mo.md(f"**Answer.** {answer}")
    return


if __name__ == "__main__":
    app.run()
