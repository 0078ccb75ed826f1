"""Once everything was tried: what is undecided is looked at again, and winners that others make needless are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pyrometer.quantity import format_ratio
from pyrometer.tuning.levers.choice import Configuration, LeverChoice, label_of
from pyrometer.tuning.levers.configuration import without_lever

if TYPE_CHECKING:
    from pyrometer.tuning.search.search import Search

WORTH_DECIDING = 0.97
"""Ratio above which a lever is dropped at the first look, undecided: the time goes to those that promise more."""


def look_again(search: Search) -> None:
    """With time left and nothing to confirm, compare what is undecided for longer, the most promising first."""
    promising = [
        each
        for each in search.outcomes
        if each.outcome == "undecided" and each.ratio is not None and each.ratio < WORTH_DECIDING
    ]
    for each in sorted(promising, key=lambda each: each.ratio or 1.0):
        if search.best or not search.has_time:
            return
        search.progress(search.budget.share, f"{each.label} once more")
        choice = LeverChoice(lever=each.name, parameters=each.parameters)
        outcome = search.tried(choice, tuple(each.configuration), longer=True)
        if outcome.outcome == "untried":
            return
        search.journal.add(outcome)
        search.outcomes[search.outcomes.index(each)] = outcome
        if outcome.outcome == "kept":
            search.best = tuple(each.configuration)
            search.reserve()


def leave_out_needless(search: Search) -> None:
    """Leave out winners that bring nothing beside the others, the earliest first: some levers cancel each other."""
    for choice in list(search.best):
        rest = without_lever(search.best, choice.lever)
        added = search.journal.recall(rest, search.best)
        if choice not in search.best or (added is not None and added.outcome == "kept"):
            continue  # the last one was kept against just that
        if not search.has_time:
            return
        search.progress(0.99, f"is {choice.label} still needed?")
        _leave_out(search, choice, rest)


def _leave_out(search: Search, choice: LeverChoice, rest: Configuration) -> None:
    best_peak = None if search.settings.memory_bytes is None else search.best_peak_bytes
    recalled = search.journal.recall(search.best, rest)
    outcome = recalled or search.tried(choice, rest)
    if recalled is None:
        search.journal.add(outcome)
    # Without it as fast: the shorter recipe is the better one, unless it is what keeps memory down.
    if outcome.outcome in {"kept", "no gain"} and not search.is_further(outcome.peak_bytes, best_peak):
        said = f"was kept at first; with {label_of(rest)} it brings nothing more"
        if outcome.ratio is not None and outcome.ci_low is not None and outcome.ci_high is not None:
            said += f" (without it {format_ratio(outcome.ratio, outcome.ci_low, outcome.ci_high)})"
        search.outcomes = [
            replace(each, outcome="no gain", reason=said)
            if each.outcome == "kept" and each.label == choice.label
            else each
            for each in search.outcomes
        ]
        search.best = rest
