"""A search ends when its budget does, with baseline, trials and confirmation in it; on a clock that is ours."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.errors import UserProgramError
from pyrometer.tuning import tune
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.recipe.signature import Signature
from pyrometer.tuning.search import place
from pyrometer.tuning.search.budget import Budget
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Numerics
from pyrometer.tuning.trials.laboratory import OpenConfiguration

LEVERS = {
    "drop_dropout": 0.9,
    "fold_batchnorm": 0.95,
    "channels_last": 0.8,
    "compile": 0.7,
    "aot_inductor": 1.1,
    "onnxruntime": 0.9,
    "openvino": 1.2,
    "autocast_bf16": 1.4,
    "cast_bf16": 1.3,
    "threads": 1.0,
}


A_STEP_S = 20.0
"""To open two processes and compare them, where starting them takes long."""


class Clock:
    """Stands still until somebody works."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s

    def take(self, seconds):
        self.now_s += seconds


class TimedLaboratory:
    """Everything takes as long as on a machine that others use, too."""

    clock: Clock
    opening_s = 6.0
    step_s = 0.05
    num_steps = 60
    more_pairs, num_blocks = 1, 12
    slowest_lever_s = 70.0
    names = ()

    def __init__(self, source, folder, limits, **_):
        self.source = protocol.Source()
        self.compared_s = []

    def open(self, configuration, *, fresh_seed=None, timeout_s=None):
        applying_s = sum(
            self.slowest_lever_s if find_lever(choice.lever).minutes >= 0.5 else 0.5
            for choice in configuration
        )
        if fresh_seed is not None:  # what was compiled is found ready, and two start at once
            applying_s = 0.2 * applying_s
        took_s = self.opening_s / (2 if fresh_seed is not None else 1) + applying_s
        if timeout_s is not None and took_s > timeout_s:
            self.clock.take(timeout_s)
            raise UserProgramError("took longer and was ended")
        self.clock.take(took_s)
        opened = protocol.Opened(name="m", device="cpu", clock="wall", first_call_s=applying_s)
        return OpenConfiguration(
            configuration, SimpleNamespace(alive=True), opened, took_s, contextlib.ExitStack()
        )

    def measure(self, side, budget_s):
        self.clock.take(budget_s)
        return SimpleNamespace(complete=True, median_s=self.step_s)

    def survey(self, side, levers, *, timeout_s=None):
        if timeout_s is not None:
            self.clock.take(timeout_s)
            raise UserProgramError(f"took longer than {timeout_s:.0f} s and was ended")
        signature = Signature(model="M", num_parameters=1, parameters="a", modules="b")
        choices = {name: [{"num": 1} if name == "threads" else {}] for name in self.names or LEVERS}
        if "compile" in choices:
            choices["compile"] = [{"mode": "default"}, {"mode": "default", "freezing": True}]
        return protocol.Surveyed(refused={}, choices=choices, kind="inference", signature=signature)

    def keep_reference(self, side):
        self.clock.take(1.0)

    def peak_bytes(self, side):
        return 1

    def check(self, side, **_):
        self.clock.take(1.0)
        return Numerics()

    def files_of(self, configuration):
        return {}

    def forget_trials(self):
        pass

    def compare(self, best, candidate, budget_s, rule=None, seed=0, **_):
        self.clock.take(min(budget_s, 24 * self.step_s + 1.0) if rule is None else budget_s)
        self.compared_s.append(budget_s)
        ratio = 1.0
        for side, power in ((candidate, 1), (best, -1)):
            for choice in side.configuration:
                ratio *= LEVERS[choice.lever] ** power
        outcome = "faster" if ratio < 0.98 else "slower" if ratio > 1.02 else "same"
        figures = {"margin": 0.05, "smallest_effect": 0.02, "num_blocks": 8, "elapsed_s": 1.0}
        return Verdict(outcome=outcome, ratio=ratio, ci_low=ratio, ci_high=ratio, confidence=0.95, **figures)


@pytest.fixture
def searched(monkeypatch):
    """Run a whole search on the clock; returns what it found, and how long it took."""

    def run(budget_s, diagnosis=0.0, memory_bytes=None, **machine):
        clock = Clock()
        kind = type("Machine", (TimedLaboratory,), {"clock": clock, **machine})
        monkeypatch.setattr(place, "Laboratory", kind)

        def advised(source, budget, tell):
            clock.take(budget.diagnosis_s * diagnosis)
            return (), None

        monkeypatch.setattr(tune, "_advised", advised)
        monkeypatch.setattr(place, "send", lambda *_: None)
        monkeypatch.setattr(tune, "Recipe", lambda **_: SimpleNamespace(kind="inference", num_ranks=None))
        work = SimpleNamespace(name="work")
        budget = Budget(budget_s, clock)
        found, _ = tune.search_recipe(
            work, TuneSettings(budget_s=budget_s, memory_bytes=memory_bytes), budget=budget
        )
        return found, clock.now_s - 100.0

    return run


@pytest.mark.parametrize("budget_s", [60.0, 90.0, 180.0, 600.0])
@pytest.mark.parametrize("diagnosis", [0.0, 1.0])
def test_a_search_ends_when_its_budget_does(searched, budget_s, diagnosis):
    found, took_s = searched(budget_s, diagnosis)
    assert took_s <= budget_s + A_STEP_S
    assert found.elapsed_s == pytest.approx(took_s)
    assert found.final is not None
    assert found.final.num_processes >= 2


def test_a_plan_that_takes_too_long_is_given_up_and_the_search_goes_on(searched):
    found, took_s = searched(300.0, memory_bytes=2)
    assert took_s <= 300.0
    reasons = {each.name: each.reason for each in found.levers}
    assert reasons["checkpointing"].startswith(
        "whether it fits could not be found out: took longer than 45 s"
    )
    assert found.final is not None


def test_long_steps_and_slow_starts_overrun_by_little(searched):
    _, took_s = searched(300.0, 1.0, opening_s=15.0, step_s=0.5)
    assert took_s <= 300.0 + A_STEP_S


def test_what_is_too_slow_for_the_time_that_is_left_does_not_cost_those_that_fit(searched):
    found, _ = searched(150.0)
    tried = {each.name: each.outcome for each in found.levers}
    assert tried["channels_last"] == "kept"
    assert tried["cast_bf16"] == "slower"
    assert tried["aot_inductor"] == "untried"


def test_with_time_for_all_nothing_is_left_untried_and_the_confirmation_is_whole(searched):
    found, took_s = searched(3000.0)
    assert "untried" not in {each.outcome for each in found.levers}
    assert found.final.num_processes == TuneSettings().num_confirmations
    assert took_s < 2000.0


@pytest.mark.parametrize("opening_s", [3.0, 6.0, 9.0])
def test_with_nothing_to_confirm_little_more_of_the_budget_is_left_than_a_trial_and_its_proof_take(
    searched, monkeypatch, opening_s
):
    for name in LEVERS:
        monkeypatch.setitem(LEVERS, name, 1.3)
    found, took_s = searched(90.0, opening_s=opening_s, slowest_lever_s=1.0)
    assert found.final is None
    left = [each for each in found.levers if each.outcome == "untried"]
    trial_s, pairs_s = 1.25 * opening_s + 4.0, 0.2 * 90.0
    assert not left or took_s >= 90.0 - trial_s - pairs_s
    assert took_s <= 90.0


@pytest.mark.parametrize("late_s", [20.0, 40.0, 60.0])
def test_a_machine_that_gets_busy_is_followed_so_that_the_budget_still_holds(searched, late_s):
    def open_later(self, configuration, **given):
        self.opening_s = 4.0 if self.clock.now_s < 100.0 + late_s else 10.0
        return TimedLaboratory.open(self, configuration, **given)

    _, took_s = searched(90.0, open=open_later, slowest_lever_s=2.0)
    assert took_s <= 90.0 + A_STEP_S


GIVES_BACK = {"opening_s": 2.0, "step_s": 1e-3, "slowest_lever_s": 6.0}


def quick_in_the_end(self, best, candidate, budget_s, rule=None, **given):
    """Comparisons that take long among trials, and little once it is confirmed."""
    self.clock.take(12.0 if rule is None else -budget_s + 0.5)
    return TimedLaboratory.compare(self, best, candidate, budget_s, rule, **given)


@pytest.mark.parametrize("last", [1.0, 0.6])
def test_what_the_confirmation_gives_back_is_spent_on_what_was_not_reached(searched, monkeypatch, last):
    monkeypatch.setitem(LEVERS, "fold_batchnorm", last)
    opened_fresh = []

    def open_noting(self, configuration, *, fresh_seed=None, timeout_s=None):
        if fresh_seed is not None and configuration:
            opened_fresh.append(configuration)
        return TimedLaboratory.open(self, configuration, fresh_seed=fresh_seed, timeout_s=timeout_s)

    machine = GIVES_BACK | {"names": ("channels_last", "fold_batchnorm"), "compare": quick_in_the_end}
    found, took_s = searched(60.0, open=open_noting, **machine)
    tried = {each.name: each.outcome for each in found.levers if each.outcome != "not applicable"}
    assert tried == {"channels_last": "kept", "fold_batchnorm": "kept" if last < 1 else "no gain"}
    assert sum(map(len, opened_fresh[:4])) == 4  # without the later one
    assert (len(opened_fresh) > 4) == (last < 1)
    assert took_s <= 60.0
    names = {choice.lever for choice in found.recipe.levers}
    assert ("fold_batchnorm" in names) == (last < 1)


def test_what_was_proved_is_handed_over_where_what_came_later_is_not(searched, monkeypatch):
    monkeypatch.setitem(LEVERS, "fold_batchnorm", 0.9)

    def worse_in_the_end(self, best, candidate, budget_s, rule=None, **given):
        verdict = quick_in_the_end(self, best, candidate, budget_s, rule, **given)
        later = rule is not None and any(
            choice.lever == "fold_batchnorm" for choice in candidate.configuration
        )
        return replace(verdict, ratio=1.5) if later else verdict

    machine = GIVES_BACK | {"names": ("channels_last", "fold_batchnorm"), "compare": worse_in_the_end}
    found, _ = searched(60.0, **machine)
    assert [choice.lever for choice in found.recipe.levers] == ["channels_last"]
    assert found.final.outcome == "faster"
    assert any("no faster than the baseline" in note for note in found.notes)
