"""Reproduce a figure: EDM's Table 1 and Figure 5, against a formula."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Reproduce a figure")

with app.setup:
    import altair
    import marimo as mo
    import polars
    import rackweave


@app.cell
def _():
    mo.md(r"""
    # Reproduce a figure

    **Question.** EDM's paper (ASPLOS 2025) prints the latency of an unloaded access to remote memory
    in Table 1, and where its time goes in Figure 5. Does the simulator give these numbers, and do
    they follow from the parts of the path?
    """)
    return


@app.cell
def _():
    reproduction = rackweave.reproduce("edm/table1", "edm/fig5", progress=False)
    mo.ui.table(
        polars.DataFrame(
            [
                {name: claim[name] for name in ("id", "paper", "ours", "verdict")}
                for claim in reproduction.claims
                if claim["ours"] is not None
            ]
        ),
        selection=None,
    )
    return (reproduction,)


@app.cell
def _():
    mo.md(r"""
    ## A formula

    The testbed has 25 Gb/s, where logic counts in cycles of 2.56 ns. An access crosses eight
    transceivers of 19 ns and four fibres of 10 ns. A read takes 42 cycles, a write 41 (Table 1:
    107.52 and 104.96 ns). Serialization is added to that, and is left out here as in the paper.
    """)
    return


@app.cell
def _(reproduction):
    cycle_ns, transceiver_ns, fibre_ns = 2.56, 19.0, 10.0
    formula_ns = {
        operation: cycles * cycle_ns + 8 * transceiver_ns + 4 * fibre_ns
        for operation, cycles in {"read": 42, "write": 41}.items()
    }
    measured_ns = {}
    for _point in reproduction.points("edm/fig5"):
        _operation = _point.summary["labels"]["operation"]
        _spans = _point.summary["span_mean_ns"][_operation]
        measured_ns[_operation] = _point.summary["latency_ns"][_operation]["mean"] - _spans["serialization"]
    return formula_ns, measured_ns


@app.cell
def _():
    mo.md(r"""
    ## The figure

    These are the figure of the page, and our value of each claim relative to the paper's.
    """)
    return


@app.cell
def _(reproduction):
    figure = reproduction.plots()["edm-fig5-figure-1"]
    figure
    return


@app.cell
def _(reproduction):
    compared = polars.DataFrame(
        [
            {"claim": claim["id"], "verdict": claim["verdict"], "ratio": claim["ours"] / claim["paper"]}
            for claim in reproduction.claims
            if claim["ours"] is not None and claim["id"].startswith("edm.table1.")
        ]
    )
    altair.Chart(compared).mark_point(filled=True, size=80).encode(
        x=altair.X("ratio:Q", title="our value / the paper's", scale=altair.Scale(zero=False)),
        y=altair.Y("claim:N", title=None),
        color="verdict:N",
    )
    return (compared,)


@app.cell
def _(compared, formula_ns, measured_ns):
    agreeing = compared.filter(verdict="agrees").height
    farthest = compared.sort((polars.col("ratio") - 1).abs()).row(-1, named=True)
    answer = (
        f"{agreeing} of {compared.height} claims of Table 1 agree. The farthest is `{farthest['claim']}`, "
        f"{100 * (farthest['ratio'] - 1):+.2f} % from the paper. A read takes {measured_ns['read']:.2f} ns, "
        f"a write {measured_ns['write']:.2f} ns; the formula gives {formula_ns['read']:.2f} and "
        f"{formula_ns['write']:.2f} ns."
    )
    mo.md(f"**Answer.** {answer}")
    return


if __name__ == "__main__":
    app.run()
