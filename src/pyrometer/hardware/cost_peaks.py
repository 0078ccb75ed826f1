"""What it costs to talk to a device, whatever it then does: issuing an operation, waiting for it."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from pyrometer.hardware.peaks import Peak
from pyrometer.hardware.rig import Rig, cost_peak, repeat
from pyrometer.hardware.timing import best_time
from pyrometer.quantity import Seconds

# Fewer than the driver's queue holds (about 1000), so that the host never waits for a free place.
_NUM_LAUNCHES = 200
_NUM_ROUNDS = 10


def launch(rig: Rig, budget_s: Seconds) -> Peak:
    """Host time to issue one tiny operation from Python; on the CPU it is also done by then."""
    add = _tiny(rig.device)
    if rig.device.type == "cpu":
        return cost_peak(repeat(lambda: rig.timer(add), budget_s), "add of one element")
    return cost_peak(repeat(lambda: _enqueue_s(add), budget_s), "add of one element, not waited for")


def small_kernel(rig: Rig, budget_s: Seconds) -> Peak:
    """Device time per tiny kernel when they follow each other; below it no kernel can be seen."""
    add = _tiny(rig.device)
    return cost_peak(repeat(lambda: rig.timer(add), budget_s), "adds of one element in a row")


def synchronize(rig: Rig, budget_s: Seconds) -> Peak:
    """Host time of `torch.cuda.synchronize()` with nothing to wait for."""
    torch.cuda.synchronize(rig.device)
    times = repeat(lambda: best_time(lambda: torch.cuda.synchronize(rig.device)), budget_s)
    return cost_peak(times, "synchronize an idle device")


def round_trip(rig: Rig, budget_s: Seconds) -> Peak:
    """Host time to issue one tiny operation and wait for it: what an `.item()` costs at least."""
    add = _tiny(rig.device)

    def there_and_back() -> None:
        add()
        torch.cuda.synchronize(rig.device)

    return cost_peak(repeat(lambda: best_time(there_and_back), budget_s), "add of one element, waited for")


def _tiny(device: torch.device) -> Callable[[], object]:
    x = torch.zeros(1, dtype=torch.float32, device=device)
    out = torch.zeros_like(x)
    return lambda: torch.add(x, x, out=out)


def _enqueue_s(call: Callable[[], object]) -> Seconds:
    times: list[Seconds] = []
    for _ in range(_NUM_ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(_NUM_LAUNCHES):
            call()
        times.append((time.perf_counter_ns() - start) * 1e-9 / _NUM_LAUNCHES)
    torch.cuda.synchronize()
    return min(times)
