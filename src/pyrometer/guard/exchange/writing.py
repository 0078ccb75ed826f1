"""Writing results for services that keep histories: Bencher and CodSpeed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.guard.gate import Gate
from pyrometer.version import __version__

NS = 1e9
STDEV_OUTLIER = 3.0
IQR_OUTLIER = 1.5


def to_bencher_metrics(gates: Iterable[Gate]) -> dict[str, dict[str, dict[str, float]]]:
    """The head's figures in Bencher Metric Format, for `bencher run --adapter json`.

    The median step is Bencher's measure `latency`, in nanoseconds; every other metric is one of its own, in the unit of its name.
    Bounds are those of the ratio, on the base's figure.

    Args:
        gates: what a guard decided; those without a figure of the head are left out.
    """
    metrics: dict[str, dict[str, dict[str, float]]] = {}
    for gate in gates:
        if gate.head is None:
            continue
        measure, scale = (
            ("latency", NS) if gate.metric == "median_s" else (gate.metric.replace("_", "-"), 1.0)
        )
        entry = {"value": gate.head * scale}
        if gate.base is not None and gate.ci_low is not None and gate.ci_high is not None:
            entry |= {
                "lower_value": gate.base * gate.ci_low * scale,
                "upper_value": gate.base * gate.ci_high * scale,
            }
        metrics.setdefault(gate.benchmark, {})[measure] = entry
    return metrics


def to_codspeed(gates: Iterable[Gate]) -> dict[str, Any]:
    """The head's times as CodSpeed's instrument for wall time writes them; a round is the median of one fresh process.

    Args:
        gates: what a guard decided; CodSpeed knows no other metric than time.
    """
    return {
        "creator": {"name": "pyrometer", "version": __version__, "pid": 0},
        "python": {"sysconfig": {}, "dependencies": {}},
        "instrument": {
            "type": "walltime",
            "clock_info": {"implementation": "", "monotonic": True, "adjustable": False, "resolution": 1e-9},
        },
        "benchmarks": [
            _benchmark(gate.benchmark, np.asarray(gate.heads or [gate.head]) * NS)
            for gate in gates
            if gate.metric == "median_s" and gate.head is not None
        ],
    }


def _benchmark(uri: str, rounds_ns: Floats) -> dict[str, Any]:
    q1, middle, q3 = (float(end) for end in np.quantile(rounds_ns, [0.25, 0.5, 0.75]))
    reach = IQR_OUTLIER * (q3 - q1)
    mean, stdev = float(rounds_ns.mean()), float(rounds_ns.std(ddof=1)) if len(rounds_ns) > 1 else 0.0
    return {
        "name": uri.rpartition("::")[2],
        "uri": uri,
        "config": {"warmup_time_ns": 0, "min_round_time_ns": 0, "max_time_ns": 0, "max_rounds": None},
        "stats": {
            "min_ns": float(rounds_ns.min()),
            "max_ns": float(rounds_ns.max()),
            "mean_ns": mean,
            "stdev_ns": stdev,
            "q1_ns": q1,
            "median_ns": middle,
            "q3_ns": q3,
            "rounds": len(rounds_ns),
            "total_time": float(rounds_ns.sum()) / NS,
            "iqr_outlier_rounds": int(((rounds_ns < q1 - reach) | (rounds_ns > q3 + reach)).sum()),
            "stdev_outlier_rounds": int((np.abs(rounds_ns - mean) > STDEV_OUTLIER * stdev).sum()),
            "iter_per_round": 1,
            "warmup_iters": 0,
        },
    }  # fmt: skip
