"""All rules together."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pyrometer.memory.advice.advise import RULES, weigh
from pyrometer.memory.advice.lives import Life, Lives
from pyrometer.memory.profile import MemoryProfile
from pyrometer.memory.profiling import profile_memory
from pyrometer.memory.recording.allocation import Allocation, AllocationLog, Origin
from pyrometer.memory.recording.steps import record_steps
from pyrometer.record import from_json, to_json
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference


def test_the_largest_saving_comes_first_and_nothing_of_another_phase(wide, profiled):
    work = wide(foreach=True)
    before = [parameter.clone() for parameter in work.parts.model.parameters()]
    found = weigh(profiled(work), work, time_limit_s=300)
    savings = [advice.saves_bytes for advice in found.advice]
    assert savings == sorted(savings, reverse=True)
    assert all(not advice.gain.measured and "falls in optimizer" in advice.why for advice in found.advice)
    slugs = {advice.slug for advice in found.advice}
    assert {"optimizer-implementation", "optimizer-sgd", "bf16-parameters", "step-in-backward"} <= slugs
    assert not slugs & {"activation-checkpointing", "micro-batching", "bf16-autocast", "in-place"}
    assert any(note.startswith("activation checkpointing would not lower the peak") for note in found.notes)
    assert all(map(torch.equal, before, work.parts.model.parameters()))
    assert not work.parts.optimizer.state


@pytest.mark.slow
def test_no_saving_is_larger_than_the_peak(deep, profiled):
    work = deep()
    profile = profiled(work)
    for advice in weigh(profile, work).advice:
        assert 0 < advice.saves_bytes < profile.peak_bytes
        assert advice.sketch
        assert advice.effect


def test_a_program_without_anything_to_save_gets_no_advice(profiled):
    work = Inference(nn.Linear(64, 64, dtype=torch.bfloat16), torch.randn(4, 64, dtype=torch.bfloat16))
    assert weigh(profiled(work), work).advice == []


def test_work_of_any_kind_is_taken(profiled):
    work = Call(sorted, [3, 1, 2])
    assert weigh(profiled(work), work).advice == []


def test_when_time_is_up_nothing_more_is_tried(deep, profiled):
    work, ticks = deep(), itertools.count(0, 100.0)
    found = weigh(profiled(work), work, time_limit_s=1.0, clock=lambda: next(ticks))
    assert any(note.endswith("was not tried: time was up") for note in found.notes)
    assert not any(advice.slug == "activation-checkpointing" for advice in found.advice)


def test_programs_that_need_values_are_advised_without_figures(deep, profiled):
    class Looking(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            y = self.inner(x)
            return y if y.sum().item() > -1e9 else y * 2

    work = deep()
    model = Looking(work.parts.model)
    work.parts = work.parts._replace(model=model)
    found = weigh(profiled(work), work, time_limit_s=300)
    advice = next(one for one in found.advice if one.slug == "micro-batching")
    assert advice.gain is None
    assert any("could not be predicted" in note for note in found.notes)


def test_every_rule_has_a_name_and_a_docstring():
    assert len({rule.__name__ for rule in RULES}) == len(RULES)
    assert all(rule.__doc__ for rule in RULES)


def test_unchanged_lives_have_the_recorded_peak(deep):
    log = record_steps(deep())
    lives = Lives(log)
    assert lives.peak() == log.peak_bytes
    assert lives.peak({len(log.allocations): [Life(0, len(log.events), 1000)]}) == log.peak_bytes + 1000


@given(
    sizes=st.lists(st.integers(1, 1000), min_size=1, max_size=20),
    order=st.randoms(use_true_random=False),
    cut=st.integers(0, 40),
)
def test_shorter_lives_never_raise_the_peak(sizes, order, cut):
    log = AllocationLog()
    for size in sizes:
        index = log.born(Allocation(size, 0, Origin("", None, None), "uint8"))
        if order.random() < 0.5:
            log.died(index)
    lives = Lives(log)
    changed = {index: [lives.until(index, cut)] for index in range(len(sizes)) if order.random() < 0.5}
    assert lives.peak() == log.peak_bytes
    assert lives.peak(changed) <= log.peak_bytes
    gone = {index: [] for index in range(len(sizes))}
    assert lives.peak(gone) == 0


@pytest.mark.slow
def test_compiled_programs_are_advised_without_their_lines(deep):
    work = deep()
    work.parts = work.parts._replace(model=torch.compile(work.parts.model, backend="eager"))
    slugs = {advice.slug for advice in profile_memory(work, scaling=False, weigh_s=300).advice}
    torch.compiler.reset()
    assert not {"in-place", "let-go-earlier", "offload-saved-tensors"} & slugs
    assert "micro-batching" in slugs


@pytest.mark.slow
def test_a_profile_comes_with_advice(wide):
    profile = profile_memory(wide(foreach=True), scaling=False, weigh_s=300)
    assert {"bf16-parameters", "optimizer-implementation"} <= {advice.slug for advice in profile.advice}
    assert from_json(MemoryProfile, to_json(profile)) == profile
