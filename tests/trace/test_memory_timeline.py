"""Memory: peaks and who holds them, churn and its line; on traces with a known truth and on a recorded one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.memory import MAX_POINTS, _telling, memory
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.records.memory import Memory

US = 1000
MAIN = 100


class Blocks:
    """Writes allocations and frees as the profiler does, with the totals of each device."""

    def __init__(self, builder: Any, *, totals: bool = True) -> None:
        self.builder = builder
        self.totals: dict[int, int] | None = {} if totals else None

    def change(
        self, ts: float, size: int, addr: int | None, *, tid: Any = MAIN, device_type: int = 1
    ) -> None:
        args: dict[str, Any] = {
            "Bytes": size,
            "Device Type": device_type,
            "Device Id": 0 if device_type else -1,
        }
        if addr is not None:
            args["Addr"] = addr
        if self.totals is not None:
            self.totals[device_type] = self.totals.get(device_type, 1000) + size
            args |= {
                "Total Allocated": self.totals[device_type],
                "Total Reserved": 4096 if device_type else 0,
            }
        self.builder.events.append(
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "s": "t",
                "name": "[memory]",
                "pid": 100,
                "tid": tid,
                "ts": ts,
                "args": args,
            }
        )


def training_step(builder: Any, blocks: Blocks, at: float) -> None:
    """Input, an activation, a temporary of one operator, a gradient; all but the gradient are freed."""
    addr = int(at)
    builder.annotate(f"ProfilerStep#{addr // 1000}", at, 900)
    builder.annotate("enumerate(DataLoader)#_Iter.__next__", at + 10, 80)
    builder.op("aten::stack", at + 20, 20)
    blocks.change(at + 30, 64, addr + 1)
    builder.python("net.py(5): forward", at + 100, 200)
    builder.python("nn.Module: Net_0", at + 105, 190)
    builder.op("aten::linear", at + 110, 100, **{"Sequence number": 1})
    builder.op("aten::empty", at + 120, 10)
    blocks.change(at + 125, 256, addr + 2)
    builder.op("aten::addmm", at + 140, 50)
    blocks.change(at + 150, 512, addr + 3)
    blocks.change(at + 160, -512, addr + 3)
    builder.op("autograd::engine::evaluate_function: AddmmBackward0", at + 400, 100, **{"Fwd thread id": 1})
    blocks.change(at + 410, 128, addr + 4)
    blocks.change(at + 450, -256, addr + 2)
    builder.annotate("Optimizer.zero_grad#SGD.zero_grad", at + 600, 50)
    blocks.change(at + 620, -128, addr + 4)
    blocks.change(at + 700, -64, addr + 1)


def test_figures_of_one_device(builder):
    blocks = Blocks(builder)
    for at in (0, 1000):
        training_step(builder, blocks, at)
    found = memory(builder.read())
    assert found.num_steps == 2
    (device,) = found.devices
    assert (device.device, device.is_relative, device.num_allocations, device.num_frees) == (
        "cuda:0",
        False,
        8,
        8,
    )
    assert (device.allocated_bytes, device.freed_bytes, device.net_bytes) == (1920, 1920, 0)
    assert (device.peak_bytes, device.peak_step, device.peak_reserved_bytes) == (
        1000 + 64 + 256 + 512,
        0,
        4096,
    )
    assert device.peak_where.op == "aten::addmm"
    assert (device.peak_where.line, device.peak_where.module) == (5, "Net_0")
    assert device.at_peak_bytes == {"activation": 256, "input": 64, "temporary": 512, "before_trace": 1000}
    assert [(held_memory.where.op, held_memory.held_bytes) for held_memory in device.held_at_peak] == [
        ("aten::addmm", 512),
        ("aten::linear", 256),  # aten::empty allocated on its behalf
        ("aten::stack", 64),
    ]
    assert (device.num_allocations_per_step, device.churn_bytes_per_step) == (4, 960)
    assert device.turnover == pytest.approx(960 / 1832)


def test_categories_that_are_certain(builder):
    blocks = Blocks(builder)
    training_step(builder, blocks, 0)
    builder.annotate("Optimizer.step#Adam.step", 920, 40)
    blocks.change(930, 2048, 77)
    device = memory(builder.read()).devices[0]
    assert device.at_peak_bytes == {"optimizer_state": 2048, "before_trace": 1000}


def test_operators_and_steps(builder):
    blocks = Blocks(builder)
    for at in (0, 1000):
        training_step(builder, blocks, at)
    blocks.change(1800, 32, 99)  # outside of any operator, and never freed
    found = memory(builder.read())
    ops = {op.op: op for op in found.ops}
    addmm = ops["aten::addmm"]
    assert (addmm.num_allocations, addmm.allocated_bytes, addmm.freed_bytes) == (2, 1024, 1024)
    assert (addmm.temporary_bytes, addmm.churn_bytes, addmm.kept_bytes) == (1024, 1024, 0)
    assert (ops["aten::linear"].temporary_bytes, ops["aten::linear"].churn_bytes) == (0, 512)
    assert (ops[None].kept_bytes, ops[None].freed_bytes) == (32, 2 * (128 + 64))
    first, second = found.steps
    assert (first.name, first.num_allocations, first.allocated_bytes, first.net_bytes) == (
        "ProfilerStep#0",
        4,
        960,
        0,
    )
    assert (second.net_bytes, second.churn_bytes, second.peak_bytes) == (32, 960, 1832)


def test_churn_shows_at_its_line(builder):
    """A buffer that is grown by copying: each step allocates it anew ten times."""
    blocks = Blocks(builder)
    for step in range(3):
        at = 10_000 * step
        builder.annotate(f"ProfilerStep#{step}", at, 9000)
        builder.python("replay.py(14): grow", at + 10, 8000)
        held = None
        for i in range(10):
            ts = at + 100 + 100 * i
            builder.op("aten::cat", ts, 50)
            blocks.change(ts + 10, 1 << 20, 1 + i % 2)
            if held is not None:
                blocks.change(ts + 60, -(1 << 20), held)
            held = 1 + i % 2
        blocks.change(at + 5000, -(1 << 20), held)
    found = memory(builder.read())
    site = found.sites[0]
    assert (site.where.file, site.where.line, site.where.op) == ("replay.py", 14, "aten::cat")
    assert (site.num_allocations_per_step, site.churn_bytes_per_step) == (10, 10 << 20)
    assert site.turnover == pytest.approx(5, rel=1e-3)  # at most two blocks are held at once


def test_devices_are_apart(builder):
    blocks = Blocks(builder)
    builder.op("aten::to", 0, 100)
    blocks.change(10, 64, 1, device_type=0)
    blocks.change(20, 64, 1, device_type=1)
    blocks.change(30, -64, 1, device_type=0)
    device_memories = {device.device: device for device in memory(builder.read()).devices}
    assert {name: device_memory.net_bytes for name, device_memory in device_memories.items()} == {
        "cpu": 0,
        "cuda:0": 64,
    }
    assert device_memories["cpu"].peak_reserved_bytes is None
    assert device_memories["cpu"].timeline.reserved_bytes == []
    assert device_memories["cuda:0"].timeline.reserved_bytes == [4096]


def test_old_files_hold_neither_totals_nor_addresses_and_spell_threads_differently(builder):
    blocks = Blocks(builder, totals=False)
    builder.add("Operator", "aten::mm", 0, 100, tid="100")
    blocks.change(10, 64, None)
    blocks.change(20, 32, None)
    blocks.change(90, -64, None)
    found = memory(builder.read())
    (device,) = found.devices
    assert (device.is_relative, device.peak_bytes, device.peak_where.op) == (True, 96, "aten::mm")
    assert device.timeline.allocated_bytes == [64, 96, 32]
    assert (device.churn_bytes_per_step, device.at_peak_bytes, device.held_at_peak) == (0, {}, [])


def test_a_block_that_was_there_before_is_not_taken_for_another(builder):
    blocks = Blocks(builder)
    builder.op("aten::mm", 0, 100)
    blocks.change(10, -64, 5)
    blocks.change(20, 128, 5)
    blocks.change(30, -128, 5)
    (device,) = memory(builder.read()).devices
    assert device.churn_bytes_per_step == 128
    assert device.at_peak_bytes == {"temporary": 128, "before_trace": 936}


def test_frees_count_for_the_step_in_which_they_happen(builder):
    blocks = Blocks(builder)
    for step in range(2):
        builder.annotate(f"ProfilerStep#{step}", 100 * step, 100)
    blocks.change(50, 64, 1)
    blocks.change(150, -64, 1)
    found = memory(builder.read())
    assert [(step_memory.net_bytes, step_memory.churn_bytes) for step_memory in found.steps] == [
        (64, 0),
        (-64, 0),
    ]


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=6000))
def test_peaks_survive_leaving_points_out(values):
    level = np.array(values * (1 + 3000 // len(values)))
    kept = _telling(level)
    assert len(kept) <= MAX_POINTS
    assert (np.diff(kept) > 0).all()
    assert (kept[0], kept[-1]) == (0, len(level) - 1)
    assert (level[kept].min(), level[kept].max()) == (level.min(), level.max())


def test_a_record_survives_json(builder):
    training_step(builder, Blocks(builder), 0)
    found = memory(builder.read())
    assert from_json(Memory, to_json(found)) == found


def test_a_recorded_loop_that_grows_a_buffer(tmp_path):
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    def grow() -> torch.Tensor:
        buffer = torch.empty(0, 1000)
        for _ in range(10):
            buffer = torch.cat([buffer, torch.ones(1, 1000)])
        return buffer

    path = tmp_path / "trace.json"
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        profile_memory=True,
        with_stack=True,
        on_trace_ready=lambda run: run.export_chrome_trace(str(path)),
    ) as run:
        for _ in range(3):
            grow()
            run.step()
    found = memory(read_trace(path).ranks[0])
    site = found.sites[0]
    assert (site.device, site.where.op, site.where.function) == ("cpu", "aten::cat", "grow")
    assert site.num_allocations_per_step == 10
    assert site.churn_bytes_per_step == sum(4000 * rows for rows in range(1, 11))
    assert {device.device for device in found.devices} == {"cpu"}
