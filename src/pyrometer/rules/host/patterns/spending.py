"""What the user's lines spend a step's time on, by the profile of the host: one kind of work, summed over all of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyrometer.advice import Gain
from pyrometer.quantity import Ratio, Seconds, format_percent
from pyrometer.rules.finding import Finding
from pyrometer.rules.joining import module_of
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Module, Rule
from pyrometer.rules.untraced import Share

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLeaf, HostLine, HostLoop, HostProfile, LeafKind

INPUT_OUTPUT: frozenset[LeafKind] = frozenset({"logging", "print", "file", "fsync", "process", "network"})
SERIALISATION: frozenset[LeafKind] = frozenset({"torch.save", "pickle", "json", "copy"})
TEXT: frozenset[LeafKind] = frozenset({"regex"})
WAITING: frozenset[LeafKind] = frozenset({"lock", "sleep"})
RANDOM: frozenset[LeafKind] = frozenset({"random"})
MECHANISMS = (INPUT_OUTPUT, SERIALISATION, TEXT, WAITING, RANDOM)
"""Kinds of leaves that have a rule of their own, together."""

MOST_NAMES = 3
MOST_LINES = 5

CERTAINTY = 1.64
"""Standard deviations within which nine of ten samples of a share lie."""

LEAST_CERTAIN = 0.03
"""Share of a step that a place has for certain before anything is said of it."""


class Spending(NamedTuple):
    """One kind of work in a step."""

    line: HostLine
    """With the most of it."""
    link: str
    share: Ratio
    """Of the step, over all lines."""
    names: tuple[tuple[str, Seconds], ...]
    """What is called, the most time first."""
    lines: tuple[str, ...]
    """All lines with it, the most time first, as `file:line`."""
    loop: HostLoop | None
    """The innermost loop around the line."""


def spending(case: Case, kinds: Collection[str], min_share: Ratio) -> Spending | None:
    """What all lines together spend on leaves of these kinds; null where that is less than this share, or no profile."""
    profile = case.host
    if profile is None:
        return None
    spent = [
        (sum(leaf.seconds_per_step for leaf in line.leaves if leaf.kind in kinds), number)
        for number, line in enumerate(profile.lines)
    ]
    dearest = sorted(((seconds, number) for seconds, number in spent if seconds > 0), reverse=True)
    share = profile.share(sum(seconds for seconds, _ in dearest))
    if share < min_share or not is_certain(profile, share):
        return None
    line = profile.lines[dearest[0][1]]
    return Spending(
        line=line,
        link=f"/host/lines/{dearest[0][1]}",
        share=share,
        names=names_of([leaf for line in profile.lines for leaf in line.leaves if leaf.kind in kinds]),
        lines=tuple(profile.lines[number].where.text for _, number in dearest[:MOST_LINES]),
        loop=loop_around(profile, line),
    )


class CostlyLine(NamedTuple):
    """A line of a known file that takes a good part of a step."""

    module: Module
    line: HostLine
    link: str
    share: Ratio


def costly_lines(case: Case, min_share: Ratio, kind: LeafKind | None = None) -> Iterator[CostlyLine]:
    """Lines that take this share of a step for certain, with what they call; or by what is of one kind in the line itself."""
    profile = case.host
    for number, line in enumerate(profile.lines if profile is not None else ()):
        of_kind = sum(leaf.seconds_per_step for leaf in line.leaves if leaf.kind == kind)
        share = profile.share(line.total_s if kind is None else of_kind) if profile is not None else 0.0
        module = module_of(line.where.file, case.modules)
        if module is not None and profile is not None and share >= min_share and is_certain(profile, share):
            yield CostlyLine(module, line, f"/host/lines/{number}", share)


def names_of(leaves: Collection[HostLeaf]) -> tuple[tuple[str, Seconds], ...]:
    """What leaves call, with its time; the most first."""
    totals: dict[str, Seconds] = {}
    for leaf in leaves:
        totals[leaf.name] = totals.get(leaf.name, 0.0) + leaf.seconds_per_step
    return tuple(sorted(totals.items(), key=lambda item: -item[1])[:MOST_NAMES])


def loop_around(profile: HostProfile, line: HostLine) -> HostLoop | None:
    """The innermost loop around a line, where the profile has it."""
    place = line.loop
    return next(
        (
            loop
            for loop in profile.loops
            if place is not None and (loop.where.file, loop.where.line) == (place.file, place.line)
        ),
        None,
    )


def is_certain(profile: HostProfile, share: Ratio) -> bool:
    """Whether enough samples show a share: not one or two of a dozen."""
    return share - 1.5 * _error(share, profile.samples) > LEAST_CERTAIN


def spread(profile: HostProfile, share: Ratio) -> Share:
    """A share as well as its samples tell it, nine times in ten: Wilson's interval, which knows that all of a few is not all.

    A look after a long call counts for all intervals that the call took, and yet it is one look: what it saw may have only begun.
    """
    number = max(profile.samples, 1)
    squared = CERTAINTY**2 / number
    half = CERTAINTY * math.sqrt(share * (1 - share) / number + squared / (4 * number))
    least, most = ((share + squared / 2 + side) / (1 + squared) for side in (-half, half))
    return Share(least=min(max(0.0, least), share), most=max(min(1.0, most), share))


def _error(share: Ratio, number: float) -> Ratio:
    """How far a share may be from what so many samples tell, four times in five."""
    return 1.3 * math.sqrt(share * (1 - share) / max(number, 1.0))


def removal(profile: HostProfile, share: Ratio, *, stays: Ratio) -> Gain:
    """What it brings when work goes that takes a share of the step.

    Args:
        profile: that the share is from.
        share: of the step.
        stays: part of it that is left at worst.
    """
    known = spread(profile, share)
    return Gain(
        ratio_low=1 - known.most,
        ratio_high=1 - known.least * (1 - stays),
        method=f"removal: its share of the host's time, of which {format_percent(stays)} stays at worst",
    )


def rounds_text(loop: HostLoop | None) -> str:
    """A loop within a sentence: what it walks over, and how often per step where that was counted."""
    if loop is None:
        return ""
    often = f", {loop.rounds_per_step:,.0f} rounds per step" if loop.rounds_per_step else ""
    return f", in the loop over `{loop.over}` (line {loop.where.line}{often})"


def spending_finding(
    rule: Rule,
    case: Case,
    spent: Spending,
    *,
    what: str,
    stays: Ratio,
    advice: str,
    **fields: Any,
) -> Finding:
    """A finding about one kind of work, at the line with the most of it.

    Args:
        rule: that speaks.
        case: with the profile.
        spent: the work.
        what: it is, as the subject of a sentence in the singular.
        stays: part of its time that is left at worst.
        advice: what to do.
        fields: others of the finding.
    """
    assert case.host is not None
    place = place_of(case, spent.line.where)
    called = ", ".join(
        f"`{name}` {format_percent(case.host.share(seconds))}" for name, seconds in spent.names
    )
    return rule.finding(
        message=f"{what} takes {format_percent(spent.share)} of the step ({called}), most of it{spoken(place)}"
        f"{rounds_text(spent.loop)}",
        where=place,
        evidence={
            "share": spent.share,
            "lines": list(spent.lines),
            "rounds_per_step": None if spent.loop is None else spent.loop.rounds_per_step,
        },
        links=[spent.link],
        cost=case.cost_of(spent.share, "samples of the host's time in these lines"),
        gain=removal(case.host, spent.share, stays=stays),
        confidence="high",
        advice=advice,
        **fields,
    )
