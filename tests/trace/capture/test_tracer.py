"""Which steps of a script are recorded, decided while it runs."""

from __future__ import annotations

import pytest
import torch

OWN_PROFILER = """
from torch.profiler import ProfilerActivity, profile, schedule
for _ in range(6):
    step()
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2)) as own:
    for _ in range(4):
        step()
        own.step()
assert sum(event.count for event in own.key_averages() if event.key == "aten::linear") == 2
"""
OWN_PROFILER_AROUND = """
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU]) as own:
    for _ in range(NUM): step()
assert sum(event.count for event in own.key_averages() if event.key == "aten::linear") == NUM
for _ in range(10): step()
"""
LEGACY_PROFILER = """
for _ in range(6):
    step()
with torch.autograd.profiler.profile() as own:
    step()
assert sum(event.count for event in own.key_averages() if event.key == "aten::linear") == 1
"""


def test_the_steps_after_those_that_are_skipped(trace_here, count):
    done = trace_here("for _ in range(12): step()", steps=4)
    assert done.troubles == []
    assert done.num_steps == done.trace.steps.height == 4
    for name in ("phase:forward", "phase:backward", "phase:optimizer", "module:Sequential", "module:1"):
        assert count(done.trace, name) == 4


def test_accumulated_batches_and_optimizers_that_take_turns(trace_here, count):
    done = trace_here(
        """
other = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(30):
    model(torch.randn(4, 6)).sum().backward()
    if i % 3 == 2:
        optimizer.step()
        other.step()
""",
        steps=2,
    )
    assert done.trace.steps.height == 2
    assert count(done.trace, "phase:forward") == 6
    assert count(done.trace, "phase:optimizer") == 4


@pytest.mark.parametrize("skip", [0, 1, 3])
def test_calls_of_the_outermost_module(trace_here, skip, count):
    code = "loss = nn.L1Loss()\nfor _ in range(12): loss(model(torch.randn(4, 6)), torch.ones(4, 6))"
    done = trace_here(code, steps=3, skip=skip)
    assert done.trace.steps.height == 3
    assert count(done.trace, "phase:forward") == 6
    # The call with which the recording begins is not known by name.
    assert count(done.trace, "module:Sequential") == (2 if skip == 0 else 3)
    assert count(done.trace, "module:L1Loss") == 3


def test_iterations_of_a_loader(trace_here, count):
    done = trace_here(
        """
for x in torch.utils.data.DataLoader(torch.randn(48, 6), batch_size=4):
    model(x)
    model(x)
""",
        steps=3,
    )
    assert done.trace.steps.height == 3
    assert count(done.trace, "phase:data") == 3
    assert count(done.trace, "phase:forward") == 6


def test_a_better_sign_of_steps_throws_away_what_was_recorded_by_a_poorer_one(trace_here, count):
    done = trace_here("for _ in range(5): model(torch.randn(4, 6))\nfor _ in range(9): step()", steps=4)
    assert done.trace.steps.height == 4
    assert count(done.trace, "phase:optimizer") == 4


def test_an_optimizer_that_is_not_torchs(trace_here):
    code = """
for _ in range(110):
    model(torch.randn(4, 6)).sum().backward()
"""
    assert trace_here(code, steps=2).trace.steps.height == 2


def test_the_first_step_is_there_when_none_is_skipped(trace_here, count):
    done = trace_here("for _ in range(3): step()", steps=2, skip=0)
    assert done.trace.steps.height == 2
    assert count(done.trace, "phase:forward") == 2


def test_fewer_steps_than_asked_for(trace_here):
    done = trace_here("for _ in range(7): step()", steps=5)
    assert done.num_steps == 3
    assert done.troubles == ["cut off"]


@pytest.mark.parametrize("num", [0, 1, 3, 4])
def test_too_few_steps_for_any(trace_here, num):
    done = trace_here(f"for _ in range({num}): step()")
    assert done.trace is None
    assert done.troubles == ["too few steps"]


@pytest.mark.parametrize("code", [OWN_PROFILER, LEGACY_PROFILER])
def test_a_profiler_of_the_scripts_own_has_precedence(trace_here, code):
    start = torch.profiler.profile.start
    done = trace_here(code, steps=5)
    assert done.troubles == ["gave way"]
    assert done.num_steps == 2
    assert torch.profiler.profile.start is start


def test_a_profiler_of_the_scripts_own_is_waited_for(trace_here):
    done = trace_here(OWN_PROFILER_AROUND.replace("NUM", "6"), steps=3)
    assert set(done.troubles) == {"profiled by itself"}
    assert done.trace.steps.height == 3


def test_a_compiled_script_is_not_compiled_anew(trace_here, count):
    code = """
torch._dynamo.reset()
fast = torch.compile(model, backend="eager")
for _ in range(9): fast(torch.randn(4, 6))
"""
    done = trace_here(code, steps=2)
    assert done.trace.steps.height == 2
    assert not done.trace.events["name"].str.contains("dynamo_timed").any()
    assert count(done.trace, "module:Sequential") == 2
    assert count(done.trace, "module:0") == 0


def test_a_trace_that_cannot_be_written_is_no_trouble_of_the_script(trace_here, monkeypatch):
    def fail(*_):
        raise RuntimeError("no room")

    monkeypatch.setattr(torch.profiler.profile, "export_chrome_trace", fail)
    done = trace_here("for _ in range(12): step()\nassert True", steps=2)
    assert done.trace is None
    assert "failed" in done.troubles


def test_what_was_written_by_a_poorer_mark_gives_way_to_the_steps_of_an_optimizer(trace_here, count):
    rollout = "with torch.no_grad():\n    for _ in range(20): model(torch.randn(4, 6))\n"
    done = trace_here(f"{rollout}for _ in range(12): step()", steps=3)
    assert done.troubles == []
    assert done.trace.steps.height == 3
    assert count(done.trace, "phase:optimizer") == 3


def test_what_was_written_stays_where_the_better_mark_comes_too_seldom(trace_here, count):
    done = trace_here("for _ in range(20): model(torch.randn(4, 6))\nstep()", steps=3)
    assert done.trace.steps.height == 3
    assert count(done.trace, "phase:optimizer") == 0
