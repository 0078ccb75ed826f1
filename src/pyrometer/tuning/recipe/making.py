"""From a search to the recipe that it hands over."""

from __future__ import annotations

from pathlib import Path

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.quantity import Bytes
from pyrometer.tuning.levers.choice import Configuration
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.outcome import LeverOutcome, figures_of
from pyrometer.tuning.recipe.recipe import Artefact, Dropped, Proof, RecipeLever, artefact_of
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


def proved_levers(
    configuration: Configuration, outcomes: list[LeverOutcome], artefacts: dict[str, list[Artefact]]
) -> list[RecipeLever]:
    """The levers of a configuration, with what was measured of each when it was kept, and what it wrote."""
    kept = {each.label: each for each in reversed(outcomes) if each.outcome == "kept"}
    return [
        RecipeLever(
            lever=choice.lever,
            parameters=choice.parameters,
            fix_class=find_lever(choice.lever).fix_class,
            stage=find_lever(choice.lever).stage,
            **figures_of(kept.get(choice.label)),
            artefacts=artefacts.get(choice.lever, []),
        )
        for choice in configuration
    ]


def dropped_levers(outcomes: list[LeverOutcome]) -> list[Dropped]:
    """The levers that were not kept, and why."""
    return [
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


def kept_files(
    configuration: Configuration, made: dict[str, list[str]], beside: Path
) -> dict[str, list[Artefact]]:
    """Move what the recipe's levers wrote to a folder that lies beside the recipe; the files by lever."""
    kept: dict[str, list[Artefact]] = {}
    wanted = {choice.lever for choice in configuration}
    for lever, files in made.items():
        if lever in wanted:
            room = beside / lever
            room.mkdir(parents=True, exist_ok=True)
            moved = [Path(file).replace(room / Path(file).name) for file in files]
            kept[lever] = [artefact_of(path, beside.parent) for path in moved]
    return kept
