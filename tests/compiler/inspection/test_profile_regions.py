from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from pyrometer.compiler.inspection.runtime import profile_steps
from pyrometer.compiler.private.profile_regions import Range, busy_share, ranges_of, read_regions
from pyrometer.workload.call import Call


def region(name: str, start: float, end: float, thread: int = 1) -> Range:
    return Range(f"Torch-Compiled Region: {name}", start, end, thread)


def graph(key: str, start: float, end: float, thread: int = 1) -> Range:
    return Range(f"## Call CompiledFxGraph {key} ##", start, end, thread)


def test_a_region_inside_another_counts_once():
    regions = read_regions([region("0/0", 0, 100), region("1/0", 20, 50), region("0/0", 200, 210)])

    assert regions.by_id["0/0"].calls == 2
    assert regions.by_id["0/0"].own_s == pytest.approx(80e-6)
    assert regions.by_id["1/0"].own_s == pytest.approx(30e-6)


def test_hiccups_of_the_machine_are_capped():
    starts = [100.0 * number for number in range(9)]
    regular = [region("0/0", start, start + 10) for start in starts]
    regions = read_regions([*regular, region("0/0", 2000, 50_000)])

    assert regions.by_id["0/0"].calls == 10
    assert regions.by_id["0/0"].own_s == pytest.approx((90 + 50) * 1e-6)


def test_regions_of_other_threads_are_not_inside():
    regions = read_regions([region("0/0", 0, 100, thread=1), region("1/0", 20, 50, thread=2)])

    assert regions.by_id["0/0"].own_s == pytest.approx(100e-6)


def test_a_cache_key_belongs_to_the_innermost_region():
    regions = read_regions(
        [region("0/0", 0, 100), graph("fa", 5, 10), region("1/0", 20, 50), graph("fb", 25, 30)]
    )

    assert regions.by_id["0/0"].keys == ["fa"]
    assert regions.by_id["1/0"].keys == ["fb"]


def test_a_backward_is_joined_by_its_sequence_number_and_its_graph_not_counted_twice():
    regions = read_regions(
        [
            region("0/0", 0, 100),
            Range("CompiledFunction", 10, 60, 1, sequence=7),
            Range("CompiledFunctionBackward", 200, 240, 2, sequence=7),
            graph("fback", 210, 230, thread=2),
        ]
    )

    assert regions.by_id["0/0"].backward_s == pytest.approx(40e-6)
    assert regions.backward_by_key == {}


def test_a_backward_whose_forward_was_not_seen_is_told_by_its_key():
    regions = read_regions(
        [Range("CompiledFunctionBackward", 0, 50, 2, sequence=7), graph("fback", 10, 40, thread=2)]
    )

    assert regions.by_id == {}
    assert regions.backward_by_key == {"fback": pytest.approx(30e-6)}


def test_what_was_not_recorded_is_unknown_and_not_zero():
    regions = read_regions([region("0/0", 0, 100)])

    assert regions.lookup_s is None
    assert regions.wrapper_s is None


def profiler_of(*events: tuple[str, float, float]) -> SimpleNamespace:
    from torch.autograd import DeviceType

    made = [
        SimpleNamespace(
            name="event",
            device_type=getattr(DeviceType, device),
            time_range=SimpleNamespace(start=start, end=end),
        )
        for device, start, end in events
    ]
    return SimpleNamespace(events=lambda: made)


def test_overlapping_kernels_keep_the_device_busy_once():
    profiler = profiler_of(("CPU", 0, 100), ("CUDA", 10, 40), ("CUDA", 30, 50), ("CUDA", 90, 100))

    assert busy_share(profiler) == pytest.approx(0.5)
    assert busy_share(profiler_of(("CPU", 0, 100))) is None


def test_other_ranges_are_left_out():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        torch.ones(3).sum()

    assert ranges_of(profiler) == []


def test_this_torch_marks_regions_lookups_wrappers_and_backwards():
    model = torch.compile(nn.Linear(4, 4), backend="aot_eager")
    x = torch.randn(2, 4)

    def step() -> None:
        model(x).sum().backward()

    with Call(step).open() as session:
        step()
        profiled = profile_steps(session, 3)

    found = profiled.regions.by_id["0/0"]
    assert found.calls == 3
    assert found.own_s > 0
    assert found.backward_s > 0
    assert profiled.regions.lookup_s is not None
    assert profiled.regions.wrapper_s is not None
    assert profiled.busy_share is None
