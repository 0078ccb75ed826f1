"""Proving a recipe again: on this machine, with these versions, now."""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path

from pyrometer.bench.stage import Progress
from pyrometer.hardware.environment import read_environment
from pyrometer.hardware.fingerprint import differing_fields
from pyrometer.tuning.outcome import RecipeSummary, Tuning
from pyrometer.tuning.ranks.forks import Forks
from pyrometer.tuning.ranks.laboratory import laboratory_for
from pyrometer.tuning.recipe.recipe import Recipe
from pyrometer.tuning.recipe.signature import require_same_model
from pyrometer.tuning.search.confirming import Pairs, confirm
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Limits
from pyrometer.tuning.trials.laboratory import Laboratory, opened
from pyrometer.workload.target import Target

BASELINE_S = 3.0
PAIR_S = 8.0
NUM_PAIRS = 3


def verify(recipe: Recipe, target: Target, settings: TuneSettings, path: Path, progress: Progress) -> Tuning:
    """Apply a recipe to a target and compare it with the target as it is, in fresh processes on fresh inputs.

    Args:
        recipe: what to prove.
        target: what it is applied to; must be the model that it was made for.
        settings: of the numerics.
        path: where the recipe came from.
        progress: told how far it is.

    Raises:
        IncomparableError: the target's model is another one.
        PyrometerError: a lever can no longer be applied.
    """
    begin = time.monotonic()
    limits = Limits(tolerance=max(settings.tolerance, recipe.tolerance), metric_drop=settings.metric_drop)
    with contextlib.ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="pyrometer-verify-", ignore_cleanup_errors=True)
            )
        )
        laboratory = (
            Laboratory(
                protocol.Source(spec=target.spec), folder, limits, metric=settings.metric, cwd=target.spec.cwd
            )
            if recipe.num_ranks is None
            else laboratory_for(
                target, stack.enter_context(contextlib.closing(Forks(recipe.num_ranks))), folder, limits
            )
        )
        with opened(laboratory, ()) as baseline:
            surveyed = laboratory.survey(baseline, [])
            require_same_model(recipe.signature, surveyed.signature)
            measurement = laboratory.measure(baseline, BASELINE_S)
            peak = laboratory.peak_bytes(baseline)
            laboratory.keep_reference(baseline)
        laboratory.find_ready(recipe.configuration, recipe.ready_files())
        verdict = numerics = None
        if recipe.levers:
            pairs = Pairs(NUM_PAIRS * laboratory.more_pairs, PAIR_S)
            verdict, numerics, _ = confirm(laboratory, recipe.configuration, pairs, progress)
    environment = read_environment()
    different = [name for name, _, _ in differing_fields(recipe.environment, environment)]
    elsewhere = [f"proved at first under other conditions: {', '.join(different[:4])}"] if different else []
    wrong = [f"wrong numbers: {numerics.refused}"] if numerics is not None and numerics.refused else []
    return Tuning(
        target=target.text,
        kind=recipe.kind,
        baseline=measurement,
        baseline_peak_bytes=peak,
        recipe=RecipeSummary(path=str(path), levers=list(recipe.configuration), num_ranks=recipe.num_ranks),
        final=verdict,
        numerics=numerics,
        levers=[],
        signature=surveyed.signature,
        environment=environment,
        elapsed_s=time.monotonic() - begin,
        notes=[*surveyed.notes, *wrong, *elsewhere],
    )
