"""A recipe that is applied is checked by its numbers, and one that is proved again by its time, too."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.errors import IncomparableError, NotApplicableError
from pyrometer.hardware.environment import read_environment
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.outcome import LeverOutcome
from pyrometer.tuning.recipe import verifying
from pyrometer.tuning.recipe.making import proved_levers
from pyrometer.tuning.recipe.recipe import Recipe
from pyrometer.tuning.recipe.signature import Signature
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Numerics
from pyrometer.tuning.trials.laboratory import OpenConfiguration

DROP = LeverChoice(lever="drop_dropout")
MODEL = Signature(model="M", num_parameters=1, parameters="a", modules="b")


class FakeLaboratory:
    """Notes what it is asked; steps take half as long with the recipe."""

    more_pairs, num_blocks, step_s = 1, 12, 0.01
    source = protocol.Source()

    def __init__(self, refused=None, not_applied=None):
        self.refused, self.not_applied = refused, not_applied
        self.asked = []

    def open(self, configuration, *, fresh_seed=None):
        self.asked.append("open")
        missing = self.not_applied if configuration else None
        opened = SimpleNamespace(not_applied=missing)
        return OpenConfiguration(configuration, None, opened, 1.0, contextlib.ExitStack())

    def measure(self, side, budget_s):
        return SimpleNamespace(complete=True, median_s=0.005 if side.configuration else 0.01)

    def survey(self, side, levers):
        return protocol.Surveyed(refused={}, choices={}, kind="inference", signature=MODEL)

    def check(self, side):
        return Numerics(refused=self.refused)

    def compare(self, best, candidate, budget_s, rule=None, seed=0):
        self.asked.append("compare")
        figures = {"confidence": 0.95, "margin": 0.05, "smallest_effect": 0.02, "num_blocks": 8}
        return Verdict(
            outcome="faster", ratio=0.5, ci_low=0.49, ci_high=0.51, elapsed_s=1.0, blocks_s=1.0, **figures
        )

    def peak_bytes(self, side):
        return 1

    def keep_reference(self, side):
        pass

    def find_ready(self, configuration, files):
        pass


@pytest.fixture
def verified(monkeypatch):
    """Apply or prove a recipe of one lever in a laboratory."""

    def run(laboratory, signature=MODEL, *, proves, **goals):
        outcomes = [LeverOutcome(name="drop_dropout", outcome="kept", ratio=0.5)]
        recipe = Recipe(
            levers=proved_levers((DROP,), outcomes, {}),
            target="model.py:work",
            kind="inference",
            commit=None,
            signature=signature,
            proof=None,
            tolerance=1e-2,
            environment=read_environment(),
            created="2026-01-01T00:00:00+00:00",
        )
        place = SimpleNamespace(laboratory=laboratory, target="model.py:work")
        monkeypatch.setattr(verifying, "open_place", lambda *_: contextlib.nullcontext(place))
        monkeypatch.setattr(verifying, "Tuning", SimpleNamespace)
        target = SimpleNamespace(text="model.py:work")
        return verifying.verify(
            recipe, target, TuneSettings(**goals), Path("a.toml"), lambda *_: None, proves=proves
        )

    return run


def test_what_is_applied_is_checked_and_timed_by_itself_in_one_process_beside_the_baseline(verified):
    laboratory = FakeLaboratory()
    tuning = verified(laboratory, proves=False)
    assert laboratory.asked == ["open", "open"]
    assert tuning.final is None
    assert tuning.numerics.passes
    assert (tuning.baseline.median_s, tuning.applied.median_s) == (0.01, 0.005)


def test_what_is_proved_is_compared_in_pairs_of_fresh_processes(verified):
    laboratory = FakeLaboratory()
    tuning = verified(laboratory, proves=True)
    assert laboratory.asked.count("compare") == verifying.NUM_PAIRS
    assert tuning.final.outcome == "faster"
    assert tuning.applied is None


@pytest.mark.parametrize(("latency_s", "met"), [(0.006, True), (0.004, False)])
def test_goals_are_held_against_what_was_proved(verified, latency_s, met):
    (goal,) = verified(FakeLaboratory(), proves=True, latency_s=latency_s).targets
    assert goal.reached == pytest.approx(0.005)
    assert goal.met is met


@pytest.mark.parametrize("proves", [False, True])
def test_wrong_numbers_are_told(verified, proves):
    tuning = verified(FakeLaboratory(refused="zeros: off"), proves=proves)
    assert "wrong numbers: zeros: off" in tuning.notes


@pytest.mark.parametrize("proves", [False, True])
def test_a_lever_that_is_not_in_force_here_is_refused(verified, proves):
    with pytest.raises(NotApplicableError, match="drop_dropout: 3 modules"):
        verified(FakeLaboratory(not_applied="drop_dropout: 3 modules are left"), proves=proves)


def test_another_model_is_refused_before_the_recipe_is_applied(verified):
    laboratory = FakeLaboratory()
    with pytest.raises(IncomparableError, match="another model"):
        verified(
            laboratory, Signature(model="N", num_parameters=1, parameters="a", modules="b"), proves=False
        )
    assert laboratory.asked == ["open"]
