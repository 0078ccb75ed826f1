"""Applying a recipe to a target, and proving it again: on this machine, with these versions, now."""

from __future__ import annotations

import time
from pathlib import Path

from msgspec.structs import replace

from pyrometer.bench.measurement import Measurement
from pyrometer.bench.stage import Progress
from pyrometer.errors import NotApplicableError
from pyrometer.hardware.fingerprint import differing_fields
from pyrometer.quantity import Seconds
from pyrometer.tuning.levers.choice import Configuration
from pyrometer.tuning.outcome import Goal, RecipeSummary, Tuning
from pyrometer.tuning.recipe.recipe import Recipe
from pyrometer.tuning.recipe.signature import require_same_model
from pyrometer.tuning.search.baseline import Baseline
from pyrometer.tuning.search.budget import Budget
from pyrometer.tuning.search.confirming import Confirmation, Pairs, confirm
from pyrometer.tuning.search.goals import goals_of
from pyrometer.tuning.search.place import open_place
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.search.spread import UNKNOWN, Spread
from pyrometer.tuning.trials.gate import Numerics
from pyrometer.tuning.trials.laboratory import Laboratory
from pyrometer.workload.target import Target

VERIFYING_S: Seconds = 60.0
APPLIED_S: Seconds = 3.0
PAIR_S: Seconds = 8.0
NUM_PAIRS = 3


def verify(
    recipe: Recipe,
    target: Target,
    settings: TuneSettings,
    path: Path,
    progress: Progress,
    *,
    proves: bool = True,
    spread: Spread = UNKNOWN,
) -> Tuning:
    """Apply a recipe to a target, and compare it with the target as it is, in fresh processes on fresh inputs.

    Args:
        recipe: what is applied.
        target: to what.
        settings: limits of the check of numbers.
        path: of the recipe.
        progress: told how far it is.
        proves: compare it; otherwise its steps are timed by themselves.
        spread: what is known of pairs of processes on this machine.

    Raises:
        IncomparableError: the target's model is another one.
        PyrometerError: a lever can no longer be applied.
    """
    begin = time.monotonic()
    settings = replace(settings, tolerance=max(settings.tolerance, recipe.tolerance))
    with open_place(target, settings, None, recipe.num_ranks) as place:
        laboratory = place.laboratory
        with laboratory.open(()) as side:
            base = Baseline.of(place, side, (), Budget(VERIFYING_S))
        require_same_model(recipe.signature, base.surveyed.signature)
        laboratory.find_ready(recipe.configuration, recipe.ready_files())
        verdict = numerics = applied = None
        goals: list[Goal] = []
        if recipe.levers and not proves:
            progress(0.5, "the recipe")
            numerics, applied = _applied(laboratory, recipe.configuration)
        elif recipe.levers:
            pairs = Pairs(NUM_PAIRS * laboratory.more_pairs, PAIR_S, spread=spread)
            verdict, numerics, peak_bytes = confirm(laboratory, recipe.configuration, pairs, progress)
            proof = Confirmation(recipe.configuration, verdict, numerics, peak_bytes)
            goals = list(goals_of(laboratory.source, settings, base, proof, VERIFYING_S))
    different = [name for name, _, _ in differing_fields(recipe.environment, base.environment)]
    elsewhere = [f"proved at first under other conditions: {', '.join(different[:4])}"] if different else []
    wrong = [f"wrong numbers: {numerics.refused}"] if numerics is not None and numerics.refused else []
    return Tuning(
        target=target.text,
        kind=recipe.kind,
        baseline=base.measurement,
        baseline_peak_bytes=base.peak_bytes,
        recipe=RecipeSummary(path=str(path), levers=list(recipe.configuration), num_ranks=recipe.num_ranks),
        final=verdict,
        applied=applied,
        numerics=numerics,
        levers=[],
        targets=goals,
        signature=base.surveyed.signature,
        environment=base.environment,
        elapsed_s=time.monotonic() - begin,
        notes=[*base.surveyed.notes, *wrong, *elsewhere],
    )


def _applied(laboratory: Laboratory, configuration: Configuration) -> tuple[Numerics, Measurement]:
    with laboratory.open(configuration) as side:
        if side.opened.not_applied is not None:
            raise NotApplicableError(side.opened.not_applied)
        return laboratory.check(side), laboratory.measure(side, APPLIED_S)
