"""Prints the points of a sweep, a line each: python3 points.py OUT/points.json [METRIC...]"""

import json
import sys

for point in json.load(open(sys.argv[1])):
    labels = ", ".join(f"{key.split('.')[-1]}={value}" for key, value in point["labels"].items())
    latency = point["latency_ns"]["all"]
    line = f"{labels:44} {point['load']['requests_per_second'] / 1e3:6.0f} k/s"
    line += f"  p50 {latency['p50'] / 1e3:6.1f}  p90 {latency['p90'] / 1e3:6.1f}  p99 {latency['p99'] / 1e3:7.1f} us"
    print(line, *(f" {name} {point['metrics'][name]:.3g}" for name in sys.argv[2:] if name in point["metrics"]))
