#!/usr/bin/env python3
"""Reads the records of a sweep in DuckDB, Polars and pandas, and prints what each makes of them.

    tests/records/readers.py DIR [--series]

DIR is what `rackweave sweep` left. Each reader prints one line a group: design, label, seed, rows,
mean latency in nanoseconds; all three have to print the same. With --series, DIR has time series too,
and each reader sums the payload that they say was delivered. The queries are those of
docs/reference/records.md. Exit status: 0 fine, 2 a package is missing.
"""

import sys

try:
    import duckdb
    import pandas
    import polars
    import pyarrow  # noqa: F401  (what pandas reads Parquet with)
except ImportError as missing:
    print(f"no package {missing.name}", file=sys.stderr)
    sys.exit(2)

SERIES = "points/*/seed-*/series/*.parquet"
GROUP = ["design", "label_workload_load", "seed"]


def with_duckdb(folder):
    return duckdb.sql(f"""
        SELECT design, label_workload_load, seed, count(*), avg(latency_ps) / 1000
        FROM '{folder}/points/*/seed-*/records/*.parquet' WHERE measured AND outcome = 'finished'
        GROUP BY ALL ORDER BY ALL
    """).fetchall()


def with_polars(folder):
    rows = polars.scan_parquet(f"{folder}/points/*/seed-*/records/*.parquet")
    rows = rows.filter(polars.col("measured") & (polars.col("outcome") == "finished"))
    mean = polars.col("latency_ps").mean() / 1000
    return rows.group_by(GROUP).agg(polars.len(), mean).sort(GROUP).collect().rows()


def with_pandas(folder):
    import glob

    parts = sorted(glob.glob(f"{folder}/points/*/seed-*/records/*.parquet"))
    rows = pandas.concat(pandas.read_parquet(part) for part in parts)
    rows = rows[rows.measured & (rows.outcome == "finished")]
    groups = rows.groupby(GROUP).latency_ps.agg(["size", "mean"]).reset_index()
    groups["mean"] /= 1000
    return [tuple(row) for row in groups.itertuples(index=False)]


# The sum of the payload that was delivered, by point and seed, from the samples.
def delivered_with_duckdb(folder):
    return duckdb.sql(f"""
        SELECT design, label_workload_load, seed, count(*), sum(value)
        FROM '{folder}/{SERIES}' WHERE metric = 'finished_bytes' AND place = 'total'
        GROUP BY ALL ORDER BY ALL
    """).fetchall()


def delivered_with_polars(folder):
    rows = polars.scan_parquet(f"{folder}/{SERIES}")
    rows = rows.filter((polars.col("metric") == "finished_bytes") & (polars.col("place") == "total"))
    return rows.group_by(GROUP).agg(polars.len(), polars.col("value").sum()).sort(GROUP).collect().rows()


def delivered_with_pandas(folder):
    import glob

    rows = pandas.concat(pandas.read_parquet(part) for part in sorted(glob.glob(f"{folder}/{SERIES}")))
    rows = rows[(rows.metric == "finished_bytes") & (rows.place == "total")]
    groups = rows.groupby(GROUP).value.agg(["size", "sum"]).reset_index()
    return [tuple(row) for row in groups.itertuples(index=False)]


def main():
    readers = [with_duckdb, with_polars, with_pandas]
    if "--series" in sys.argv[2:]:
        readers += [delivered_with_duckdb, delivered_with_polars, delivered_with_pandas]
    found = {read.__name__: read(sys.argv[1]) for read in readers}
    for name, groups in found.items():
        for design, load, seed, rows, mean in groups:
            # Numbers, and no texts of digits.
            print(f"{name} {design} {float(load) + 0:g} {int(seed) + 0} {rows} {mean:.3f}")
        if any(isinstance(group[1], str) or isinstance(group[2], str) for group in groups):
            sys.exit(f"{name}: labels are texts")


main()
