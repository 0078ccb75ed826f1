"""Runs as a measurement leaves them, made without measuring."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pyrometer.store.run import Run, new_run

ENVIRONMENT: dict[str, Any] = {
    "os": "Linux 6.8",
    "python": "3.11.9",
    "pyrometer": "0.1.0",
    "torch": "2.13.0",
    "torch_cuda": None,
    "torch_git": None,
    "cpu": {
        "model": "Xeon",
        "isa": "AVX512",
        "physical_cores": 1,
        "logical_cores": 2,
        "usable_cpus": 2.0,
        "numa_nodes": 1,
    },
    "memory_bytes": 8 << 30,
    "gpus": [],
    "threads": 2,
    "interop_threads": 1,
    "settings": {},
    "fingerprint": "f00d",
}


def measurement(median_s: float) -> dict[str, Any]:
    """Steady, with an interval of one per cent to either side."""
    times = ("mean_s", "min_s", "max_s", "p50_s", "p90_s", "p95_s", "p99_s", "median_s", "first_call_s")
    return {
        **dict.fromkeys(times, median_s),
        "name": "work",
        "clock": "wall",
        "unit": "frames",
        "units_per_step": 1.0,
        "ci_low_s": median_s * 0.99,
        "ci_high_s": median_s * 1.01,
        "stdev_s": 0.0,
        "iqr_s": 0.0,
        "confidence": 0.99,
        "quantiles": [],
        "num_samples": 40,
        "effective_num_samples": 30.0,
        "autocorrelation_time": 1.3,
        "steps_per_sample": 1,
        "compile_s": None,
        "warmup_steps": 3,
        "warmup_s": [median_s] * 3,
        "steady": True,
        "jitter": 1.0,
        "throughput": 1 / median_s,
        "throughput_low": 1 / median_s,
        "throughput_high": 1 / median_s,
        "peak_bytes": 5 << 20,
        "elapsed_s": 1.0,
    }


def measured_run(
    median_s: float | None = 0.002,
    *,
    target: str = "model.py:work",
    kind: str = "bench",
    age_s: float = 0,
    commit: tuple[str | None, bool | None] = ("0123456789abcdef", True),
    environment: dict[str, Any] | None = None,
    document: dict[str, Any] | None = None,
) -> Run:
    """A run that is not stored yet.

    Args:
        median_s: of a step; `None` for a run that timed none.
        target: what was measured.
        kind: the verb.
        age_s: how long ago.
        commit: and whether files differed from it.
        environment: what differs from `ENVIRONMENT`.
        document: the whole of it, instead of one with a measurement.
    """
    taken_on = ENVIRONMENT | (environment or {})
    figures = None if median_s is None else measurement(median_s)
    plain = {
        "schema_version": 2,
        "evidence": {"target": target, "environment": taken_on, "measurement": figures},
        "diagnosis": {"target": target, "findings": [], "reading": []},
    }
    return new_run(
        kind,
        target,
        plain if document is None else document,
        environment=taken_on,
        command=["pyrometer", kind, target],
        commit=commit,
        now=datetime.now(UTC) - timedelta(seconds=age_s),
    )
