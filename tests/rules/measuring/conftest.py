"""What tests of rules on measuring share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.bench.measurement import Measurement


@pytest.fixture
def measured() -> Callable[..., Measurement]:
    """`measured(padding_ratio=0.4)`: a sound measurement, but for what is given."""

    def build(**fields: Any) -> Measurement:
        times = dict.fromkeys(
            ["median_s", "mean_s", "min_s", "max_s", "p50_s", "p90_s", "p95_s", "p99_s", "first_call_s"], 0.01
        )
        sound: dict[str, Any] = {
            **times,
            "name": "work",
            "clock": "wall",
            "stdev_s": 0.0001,
            "iqr_s": 0.0001,
            "ci_low_s": 0.0099,
            "ci_high_s": 0.0101,
            "confidence": 0.95,
            "quantiles": [],
            "num_samples": 400,
            "effective_num_samples": 300.0,
            "autocorrelation_time": 1.2,
            "steps_per_sample": 1,
            "compile_s": None,
            "warmup_steps": 5,
            "warmup_s": [],
            "steady": True,
            "jitter": 1.0,
            "throughput": 3200.0,
            "throughput_low": 3100.0,
            "throughput_high": 3300.0,
            "unit": "tokens",
            "units_per_step": 32.0,
            "peak_bytes": None,
            "elapsed_s": 5.0,
        }
        return Measurement(**{**sound, **fields})

    return build
