"""Writing results for services that keep histories: Bencher and CodSpeed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pyrometer.bench.measurement import Measurement
from pyrometer.guard.gate import Gate
from pyrometer.quantity import Seconds
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


def to_codspeed(measured: Mapping[str, Measurement], *, pid: int = 0) -> dict[str, Any]:
    """Measurements as CodSpeed's instrument for wall time writes them; times are of one step.

    Args:
        measured: by the name of the benchmark: file, function and parameters.
        pid: of the process that measured.
    """
    return {
        "creator": {"name": "pyrometer", "version": __version__, "pid": pid},
        "python": {"sysconfig": {}, "dependencies": {}},
        "instrument": {
            "type": "walltime",
            "clock_info": {"implementation": "", "monotonic": True, "adjustable": False, "resolution": 1e-9},
        },
        "benchmarks": [_benchmark(uri, one) for uri, one in measured.items()],
    }


def _benchmark(uri: str, one: Measurement) -> dict[str, Any]:
    samples = np.asarray(one.samples_s or [one.median_s])
    q1, q3 = (float(end) for end in np.quantile(samples, [0.25, 0.75]))
    reach = IQR_OUTLIER * (q3 - q1)
    off = np.abs(samples - one.mean_s)
    return {
        "name": uri.rpartition("::")[2],
        "uri": uri,
        "config": {"warmup_time_ns": _ns(sum(one.warmup_s)), "min_round_time_ns": 0, "max_time_ns": _ns(one.elapsed_s), "max_rounds": None},
        "stats": {
            "min_ns": one.min_s * NS,
            "max_ns": one.max_s * NS,
            "mean_ns": one.mean_s * NS,
            "stdev_ns": one.stdev_s * NS,
            "q1_ns": q1 * NS,
            "median_ns": one.median_s * NS,
            "q3_ns": q3 * NS,
            "rounds": one.num_samples,
            "total_time": one.mean_s * one.num_samples * one.steps_per_sample,
            "iqr_outlier_rounds": int(((samples < q1 - reach) | (samples > q3 + reach)).sum()),
            "stdev_outlier_rounds": int((off > STDEV_OUTLIER * one.stdev_s).sum()) if one.stdev_s else 0,
            "iter_per_round": one.steps_per_sample,
            "warmup_iters": one.warmup_steps,
        },
    }  # fmt: skip


def _ns(duration_s: Seconds) -> int:
    return round(duration_s * NS)
