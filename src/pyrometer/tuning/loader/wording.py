"""What came of tuning, in a sentence and as code. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.utils.data import DataLoader

from pyrometer.loading.settings import LoaderSettings
from pyrometer.quantity import format_percent, format_ratio, format_seconds, significant
from pyrometer.tuning.loader.record import LoaderGain
from pyrometer.tuning.loader.turn import Turn


def sentence_of(
    before: LoaderSettings,
    best: LoaderSettings,
    gain: LoaderGain | None,
    turns: Sequence[Turn],
    untried: LoaderSettings | None = None,
) -> str:
    """The result in one sentence; `untried` is what there was no time to measure, or to prove."""
    if gain is None:
        return _unproved(before, best, turns, untried)
    ratio = format_ratio(gain.ratio, gain.ci_low or 0.0, gain.ci_high or float("inf"))
    if best == before:
        return f"{before.label} stays: {gain.candidate.label} {_why_not(gain, ratio)}"
    if gain.outcome == "faster":
        return f"{best.label}: {ratio} than {before.label}"
    return f"{best.label}: no slower than {before.label}, for less ({ratio})"


def code_to_use(best: LoaderSettings, loader: DataLoader[Any]) -> str:
    """What to write in the call of DataLoader; without workers also what must go with the last of them.

    >>> code_to_use(LoaderSettings(num_workers=2, prefetch_factor=2), DataLoader([1]))
    'DataLoader(..., num_workers=2, prefetch_factor=2)'
    >>> code_to_use(LoaderSettings(), DataLoader([1], num_workers=1, multiprocessing_context="spawn"))
    'DataLoader(..., num_workers=0, prefetch_factor=None, multiprocessing_context=None)'
    """
    given = [best.keywords]
    if loader.persistent_workers and not best.persistent_workers:
        given.append("persistent_workers=False")
    if loader.pin_memory and not best.pin_memory:
        given.append("pin_memory=False")
    if not best.num_workers:
        given += ["prefetch_factor=None"] if loader.prefetch_factor is not None else []
        given += ["multiprocessing_context=None"] if loader.multiprocessing_context is not None else []
        given += ["timeout=0"] if loader.timeout else []
    return f"DataLoader(..., {', '.join(given)})"


def _why_not(gain: LoaderGain, ratio: str) -> str:
    if gain.outcome == "same":
        return "is as fast"
    if gain.outcome == "slower":
        return f"is {ratio}"
    blocks = f"{gain.num_blocks} paired blocks"
    more = f"; about {format_seconds(gain.needed_s)} more may" if gain.needed_s else ""
    return f"took {significant(gain.ratio)}× as long in {blocks}, which decide nothing{more}"


def _unproved(
    before: LoaderSettings, best: LoaderSettings, turns: Sequence[Turn], untried: LoaderSettings | None
) -> str:
    if best != before:
        return f"{best.label}, since {before.label} is not allowed"
    own = next(turn for turn in turns if turn.settings == before)
    waits = f"{format_seconds(own.batch_s)} per batch, {format_percent(own.wait_fraction, 2)} of it waiting"
    if untried is not None:
        return (
            f"undecided, {before.label} stays: no time was left to try or prove {untried.label} ({waits}); "
            "a larger budget_s may decide"
        )
    if len(turns) == 1:
        return f"{before.label} stays: nothing else could be tried ({waits})"
    return f"{before.label} is already best of {len(turns)} settings tried ({waits})"
