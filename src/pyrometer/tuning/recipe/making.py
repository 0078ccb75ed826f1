"""From a search to the recipe that it hands over."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.hardware.record import Environment
from pyrometer.quantity import Bytes
from pyrometer.tuning.levers.choice import Configuration
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.outcome import LeverOutcome, figures_of
from pyrometer.tuning.recipe.recipe import Artefact, Dropped, Proof, Recipe, RecipeLever
from pyrometer.tuning.recipe.signature import Signature
from pyrometer.tuning.trials.gate import Numerics


def proof_of(verdict: Verdict, numerics: Numerics, peak_bytes: Bytes | None) -> Proof:
    """What is kept of the confirmation."""
    return Proof(
        outcome=verdict.outcome,
        ratio=verdict.ratio,
        ci_low=verdict.ci_low,
        ci_high=verdict.ci_high,
        confidence=verdict.confidence,
        num_processes=verdict.num_processes or 0,
        baseline_s=verdict.baseline_s,
        recipe_s=verdict.candidate_s,
        max_abs_error=numerics.max_abs,
        max_rel_error=numerics.max_rel,
        cosine=numerics.cosine,
        peak_bytes=peak_bytes,
    )


def make_recipe(
    configuration: Configuration,
    outcomes: list[LeverOutcome],
    *,
    target: str,
    kind: str,
    commit: str | None,
    signature: Signature,
    proof: Proof | None,
    tolerance: float,
    environment: Environment,
    artefacts: dict[str, list[Artefact]],
    now: dt.datetime,
    num_ranks: int | None = None,
) -> Recipe:
    """The recipe of a configuration, with what was tried beside it."""
    levers = []
    for choice in configuration:
        lever = find_lever(choice.lever)
        proved = next(
            (each for each in outcomes if each.outcome == "kept" and each.label == choice.label), None
        )
        levers.append(
            RecipeLever(
                lever=choice.lever,
                parameters=choice.parameters,
                fix_class=lever.fix_class,
                stage=lever.stage,
                **figures_of(proved),
                artefacts=artefacts.get(choice.lever, []),
            )
        )
    dropped = [
        Dropped(
            lever=each.name,
            parameters=each.parameters,
            outcome=each.outcome,
            **figures_of(each),
            reason=each.reason,
        )
        for each in outcomes
        if each.outcome != "kept"
    ]
    return Recipe(
        target=target,
        kind="training" if kind == "training" else "inference",
        created=now.isoformat(timespec="seconds"),
        commit=commit,
        signature=signature,
        proof=proof,
        levers=levers,
        dropped=dropped,
        tolerance=tolerance,
        environment=environment,
        num_ranks=num_ranks,
    )


def kept_files(
    configuration: Configuration, made: dict[str, list[str]], beside: Path
) -> dict[str, list[Path]]:
    """Move what the recipe's levers wrote to a folder beside the recipe; returns the new places by lever."""
    places: dict[str, list[Path]] = {}
    wanted = {choice.lever for choice in configuration}
    for lever, files in made.items():
        if lever not in wanted:
            continue
        room = beside / lever
        room.mkdir(parents=True, exist_ok=True)
        places[lever] = [Path(file).replace(room / Path(file).name) for file in files]
    return places
