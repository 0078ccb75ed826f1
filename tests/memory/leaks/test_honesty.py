"""Short loops, growth that ends, graphs that only have nodes, and fixes: what a watch says of them, and does not."""

from __future__ import annotations

import ctypes
import mmap

import pytest
import torch
from torch import nn

from pyrometer.memory.leaks.watch import MemoryWatch, watch_memory

STEPS = 36


def leaked(step, **settings):
    report = watch_memory(step, steps=STEPS, **settings)
    assert report.verdict == "leak", report.sentence
    return report, report.sites[0]


def trained(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.slow
@pytest.mark.parametrize("steps", [24, 60, 75, 200])
def test_a_watch_as_it_comes_decides_about_short_loops(steps):
    verdicts = []
    for keep in (lambda tensor: None, [].append):
        with MemoryWatch() as watch:
            for _ in range(steps):
                keep(torch.ones(1000) + 1)
                watch.step()
        verdicts.append((watch.report().verdict, watch.report().bytes_per_step))
    assert verdicts == [("stable", 0), ("leak", 4000)]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"every": 40, "window": 20}, {"every": 30, "window": 3}])
def test_as_many_steps_as_are_promised_decide(settings):
    def run(steps):
        kept = []
        with MemoryWatch(**settings) as watch:
            for _ in range(steps):
                kept.append(torch.ones(9) + 1)
                watch.step()
        return watch.report()

    early = run(20)
    assert early.verdict == "undecided"
    promised = int(early.sentence.replace(",", "").split()[-3])
    assert promised > 20
    assert run(promised).verdict == "leak"


def test_what_windows_cannot_follow_is_left_open():
    state = {"rows": torch.zeros(0, 8)}
    with MemoryWatch() as watch:
        for _ in range(90):
            state["rows"] = torch.cat([state["rows"], torch.ones(1, 8)])
            watch.step()
        report = watch.report()
        state.clear()
        after = watch.report()
    assert report.verdict == "undecided"
    assert "grew by 32 B per step in the first steps" in report.sentence
    assert after.verdict != "undecided"


def test_a_list_that_is_filled_for_two_thirds_of_the_steps_is_no_leak():
    kept = []

    def step():
        value = torch.ones(1024) + 1
        if len(kept) < 40:
            kept.append(value)

    assert watch_memory(step).verdict == "allocator warm-up"


def test_a_ring_that_has_just_become_full_is_no_leak_and_not_open():
    ring, number = {}, iter(range(1000))

    def step():
        ring[next(number) % 40] = torch.ones(1024) + 1

    assert watch_memory(step).verdict == "allocator warm-up"


class Malloc(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t) for name in ["_0", "_1", "_2", "_3", "mapped", "_5", "_6", "used", "_8", "_9"]
    ]


def allocated():
    """Bytes that the C library has handed out."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Malloc
    state = mallinfo()
    return state.used + state.mapped


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the C library does not tell")
def test_the_nodes_of_kept_graphs_count_for_the_time_that_is_left():
    step, history = trained(nn.Linear(16, 16)), []
    report, site = leaked(lambda: history.append(step()), limit_bytes=2**40)
    before = allocated()
    history.extend(step() for _ in range(500))
    grown = (allocated() - before) / 500
    assert site.nodes_per_step >= 3
    assert f"{site.nodes_per_step:.3g} nodes of autograd graphs per step" in report.sentence
    assert grown / 2 < 2**40 / report.eta_steps < 2 * grown
    assert any("estimated at" in note for note in report.notes)


@pytest.mark.slow
def test_a_moving_average_with_a_graph_has_its_line_and_a_fix_that_runs():
    step, average = trained(nn.Linear(16, 4)), {"loss": torch.zeros(())}
    fix = "pass"

    def add():
        average["loss"] = 0.9 * average["loss"] + 0.1 * step()
        exec(fix, {"average": average})

    report, site = leaked(add)
    assert report.verdict == "leak"
    assert site.source == 'average["loss"] = 0.9 * average["loss"] + 0.1 * step()'
    assert not any("in the watched thread" in note for note in report.notes)
    fix = site.fix
    assert watch_memory(add, steps=STEPS).verdict == "stable"


@pytest.mark.parametrize("kind", ["longer", "resized", "attributes"])
def test_a_fix_without_the_right_expression_is_words(kind):
    state, weight, number = {"rows": torch.zeros(0, 64)}, nn.Linear(8, 8).weight, iter(range(1, 1000))
    buffer = torch.zeros(0)

    def step():
        if kind == "longer":
            state["rows"] = torch.cat([state["rows"], torch.ones(1, 64)])
        elif kind == "resized":
            buffer.resize_(next(number) * 1024)
        else:
            setattr(weight, f"_cache_{next(number)}", torch.ones(64) + 1)

    report, site = leaked(step)
    assert report.verdict == "leak"
    assert site.fix.startswith("# ")


def test_growth_of_the_process_that_no_tensor_explains_is_said():
    kept = []

    def step():
        torch.ones(8)
        kept.append(mmap.mmap(-1, 4 << 20))  # which no allocator takes from what it has
        kept[-1].write(b"1" * (4 << 20))

    report = watch_memory(step, steps=STEPS)
    assert report.sentence.startswith("stable: tensors are stable, but the process grew by ")
    assert any("far more than live tensors did" in note for note in report.notes)
