"""Once everything was tried: what is undecided is looked at again, and winners that others make needless are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pyrometer.quantity import format_ratio
from pyrometer.tuning.levers.choice import Configuration, LeverChoice, label_of
from pyrometer.tuning.levers.configuration import without_lever
from pyrometer.tuning.search.weighing import WORTH_DECIDING

if TYPE_CHECKING:
    from pyrometer.tuning.search.search import Search


def look_again(search: Search) -> bool:
    """With time left, compare what is undecided and may be worth it for longer, the most promising first; whether one was kept."""
    before = search.best
    undecided = [
        each
        for each in search.outcomes
        if each.outcome == "undecided" and (each.ci_low or 0.0) < WORTH_DECIDING
    ]
    for each in sorted(undecided, key=lambda each: each.ratio or 1.0):
        if not search.weighing.has_time:
            break
        search.progress(search.budget.share, f"{each.label} once more")
        outcome = search.look_at(each)
        if outcome is not None:
            search.outcomes[search.outcomes.index(each)] = outcome
    return search.best != before


def leave_out_needless(search: Search) -> None:
    """Leave out winners that bring nothing beside the others, the earliest first: some levers cancel each other."""
    for choice in list(search.best):
        rest = without_lever(search.best, choice.lever)
        added = search.journal.recall(rest, search.best)
        if choice not in search.best or (added is not None and added.outcome == "kept"):
            continue  # the last one was kept against just that
        if not search.weighing.has_time:
            return
        search.progress(0.99, f"is {choice.label} still needed?")
        _leave_out(search, choice, rest)


def _leave_out(search: Search, choice: LeverChoice, rest: Configuration) -> None:
    best_peak = search.weighing.best_peak_bytes(search.best)
    outcome = search.judged(choice, rest, longer=True)
    # Without it as fast: the shorter recipe is the better one, unless it is what keeps memory down.
    if outcome.outcome in {"kept", "no gain"} and not search.weighing.is_further(
        outcome.peak_bytes, best_peak
    ):
        said = f"was kept at first; with {label_of(rest)} it brings nothing more"
        if outcome.ratio is not None and outcome.ci_low is not None and outcome.ci_high is not None:
            said += f" (without it {format_ratio(outcome.ratio, outcome.ci_low, outcome.ci_high)})"
        search.outcomes = [
            replace(each, outcome="no gain", reason=said)
            if each.outcome == "kept" and each.label == choice.label
            else each
            for each in search.outcomes
        ]
        search.hold(rest)
