"""PYR105: waiting for the device without measuring anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.finding import Finding

CODE = "PYR105"


@pytest.mark.parametrize(
    "body",
    [
        "torch.cuda.synchronize()  # <-",
        "torch.accelerator.synchronize()  # <-",
        "torch.cuda.current_stream().synchronize()  # <-",
        "event = torch.cuda.Event()\nevent.record()\nevent.synchronize()  # <-",
    ],
)
def test_finds_synchronisation_in_a_loop_over_batches(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "start = time.perf_counter()\ntorch.cuda.synchronize()\ntotal += time.perf_counter() - start",
        "torch.cuda.synchronize()\ntotal += begin.elapsed_time(end)",
        "if step % 100 == 0:\n    torch.cuda.synchronize()",
        "import torch\n\ntorch.cuda.synchronize()",
        "import torch\n\ndef benchmark(model, batches):\n    for step in range(1000):\n        model(batches[step])\n        torch.cuda.synchronize()",
        "stream.wait_stream(torch.cuda.current_stream())",
        # a function that only functions that read a clock call
        (
            "import time\nimport torch\n\ndef wait():\n    torch.cuda.synchronize()\n\ndef took(model, steps):\n"
            "    start = time.perf_counter()\n    for step in range(steps):\n        model(step)\n        wait()\n"
            "    return time.perf_counter() - start"
        ),
    ],
)
def test_is_silent_where_it_belongs_to_timing_or_is_seldom(silent: Any, body: str) -> None:
    silent(CODE, body)


SOURCE = """\
import torch


def step(model, batch):
    loss = model(batch)
    torch.cuda.synchronize()
    return loss
"""


def test_a_device_trace_and_the_source_name_the_call(
    builder: Any, stalling: Any, evidence_of: Any, only: Any
) -> None:
    stalling(builder, None, copy=None, call="cudaDeviceSynchronize")
    finding = only(CODE, evidence_of(builder, "train.py", SOURCE))
    assert finding.where.line == 6
    assert finding.cost.share > 0.4


def test_waiting_that_belongs_to_timing_is_left_alone(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    stalling(builder, None, copy=None, call="cudaDeviceSynchronize")
    timed = SOURCE.replace("import torch\n", "import time, torch").replace(
        "return loss", "return time.time()"
    )
    evidence = evidence_of(builder, "train.py", timed)
    assert findings(CODE, evidence) == []
    assert findings("PYR108", evidence) == []


def test_a_profiler_s_own_waiting_is_nobody_s_fault(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    stalling(
        builder, None, copy=None, call="cudaDeviceSynchronize", frame="tools/profile.py(4): run_profiler"
    )
    evidence = evidence_of(builder)
    assert findings(CODE, evidence) == findings("PYR108", evidence) == []


def test_without_the_call_the_device_stays_busy(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    stalling(builder, None, wait=False)
    assert (
        findings(CODE, evidence_of(builder, "train.py", SOURCE.replace("    torch.cuda.synchronize()\n", "")))
        == []
    )
