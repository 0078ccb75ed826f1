"""Two searches of one model beside each other: what each kept, what that brought, and whether the goals were reached."""

from __future__ import annotations

from typing import Annotated, Any

from pyrometer.errors import IncomparableError
from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc, from_dict
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.outcome import Goal, LeverOutcome, Tuning
from pyrometer.tuning.recipe.signature import Signature, differing_words

FIELDS = Signature.__struct_fields__


class RecipeSide(Record, frozen=True, kw_only=True):
    """What one search handed over."""

    levers: list[LeverChoice]
    ratio: Annotated[Ratio | None, doc("of the recipe as it was confirmed; null without one")] = None
    ci_low: Ratio | None = None
    ci_high: Ratio | None = None
    baseline_s: Annotated[Seconds, doc("median step before, where the recipe was confirmed")]
    max_rel_error: float | None = None
    cosine: float | None = None
    targets: list[Goal] = []
    elapsed_s: Seconds


class LeverPair(Record, frozen=True, kw_only=True):
    """A lever in both searches."""

    lever: Annotated[str, doc("with its parameters")]
    a: Annotated[
        LeverOutcome | None, doc("null where A did not know it or tried it with other parameters")
    ] = None
    b: LeverOutcome | None = None


class RecipeComparison(Record, frozen=True, kw_only=True):
    """Two recipes of one model; each ratio is against its own baseline, so that they are no verdict on each other."""

    a: RecipeSide
    b: RecipeSide
    levers: Annotated[list[LeverPair], doc("that were tried in A or in B")]


def compare_tunings(a: dict[str, Any], b: dict[str, Any]) -> RecipeComparison:
    """Put the documents of two searches beside each other.

    Raises:
        IncomparableError: they are of different models; names the fields that differ.
    """
    one, other = (
        from_dict(Tuning, {name: plain[name] for name in Tuning.__struct_fields__ if name in plain})
        for plain in (a, b)
    )
    if one.signature is not None and other.signature is not None:
        words = differing_words(one.signature, other.signature, FIELDS)
        if words:
            raise IncomparableError(
                f"the recipes are for different models ({words}, A and B); compare two searches of one model"
            )
    outcomes = [_tried(side) for side in (one, other)]
    names = dict.fromkeys(name for tried in outcomes for name in tried)
    return RecipeComparison(
        a=_side(one),
        b=_side(other),
        levers=[LeverPair(lever=name, a=outcomes[0].get(name), b=outcomes[1].get(name)) for name in names],
    )


def _tried(tuning: Tuning) -> dict[str, LeverOutcome]:
    return {each.label: each for each in tuning.levers if each.outcome not in {"not applicable", "untried"}}


def _side(tuning: Tuning) -> RecipeSide:
    verdict = tuning.final if tuning.recipe.levers else None
    numerics = tuning.numerics if tuning.recipe.levers else None
    return RecipeSide(
        levers=tuning.recipe.levers,
        ratio=None if verdict is None else verdict.ratio,
        ci_low=None if verdict is None else verdict.ci_low,
        ci_high=None if verdict is None else verdict.ci_high,
        baseline_s=(None if verdict is None else verdict.baseline_s) or tuning.baseline.median_s,
        max_rel_error=None if numerics is None else numerics.max_rel,
        cosine=None if numerics is None else numerics.cosine,
        targets=tuning.targets,
        elapsed_s=tuning.elapsed_s,
    )
