"""What goes at most when the work around a place is replaced: what its function takes itself, with the backward pass of it.

A change seldom takes away only the calls that gave a fault away: the copies of a state go with the arithmetic on the copies, a one-hot
matrix with the casts that made it. A function that drives the step is not counted: most of what it does is something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.rules.joining import function_at

if TYPE_CHECKING:
    from pyrometer.quantity import Ratio
    from pyrometer.rules.case import Case
    from pyrometer.rules.joining import Located

MOST_SHARE = 0.8
"""Of the step: a function with more is the step."""

LEAST_PART = 0.2
"""Of its function that a place takes: below, the function does something else."""

DRIVES = frozenset({"backward", "data"})
"""Kinds of leaves that tell a function that drives the step."""


def replaced_share(case: Case, where: Located, share: Ratio) -> Ratio:
    """What the function around a place takes of a step itself, at least the share of the place; just that where more is not known.

    Args:
        case: with the profile of the host.
        where: the place.
        share: of the step that the place is known to take.
    """
    profile, place = case.host, function_at(where, case.modules)
    if profile is None or place is None:
        return share
    functions = [f for f in profile.functions if function_at(f.where, case.modules) == place]
    lines = [line for line in profile.lines if function_at(line.where, case.modules) == place]
    if any(leaf.kind in DRIVES for line in lines for leaf in line.leaves):
        return share
    own = profile.share(sum(f.own_s for f in functions if f.calls_per_step))
    if own > MOST_SHARE or share < LEAST_PART * own:
        return share
    return max(share, min(1.0, own * (1 + _backward(case, place))))


def _backward(case: Case, place: object) -> Ratio:
    """What the backward pass of a function's operators takes, for each second that they take forward."""
    lines = case.trace.top_lines if case.trace is not None else []
    traced = [line for line in lines if line.forward_ns and function_at(line, case.modules) == place]
    return traced[0].backward_ns / traced[0].forward_ns if traced else 0.0
