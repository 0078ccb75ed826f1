"""Whether all operators changed alike, as where the machine changed and not the program."""

from __future__ import annotations

from math import log

import numpy as np

from pyrometer.trace.difference.record import NamedChange

LEAST_SHARE = 0.001
"""Of the operators' time, from which on what an operator takes is more than noise."""

FEW = 6
"""Operators, below which all have to follow; of one nothing is said."""

LEAST_FOLLOWED = 0.5
"""Of the change of a step, as logarithms."""

MOST_TIME = 2 / 3
"""Of the operators' time, in those that follow."""


def changed_alike(operators: list[NamedChange], ratio: float) -> bool:
    """Whether operators of all kinds took part in a change of the step: half of them, large and small, with most of the time, or all of a few.

    A program that became slower did so somewhere: calls that were not touched take as long as before, and small operators do so even
    where a larger batch makes all large ones slower. Neighbours, clock rates and caches move all of them, if not by the same factor.

    Args:
        operators: host time in each operator itself.
        ratio: of the step's time, new over old.
    """
    times = np.array([operator.time.a_ns + operator.time.b_ns for operator in operators])
    counts = times >= LEAST_SHARE * times.sum()
    if counts.sum() < 2 or ratio == 1:
        return False
    follows = np.array([_log_ratio(operator) for operator in operators]) / log(ratio) >= LEAST_FOLLOWED
    enough = 0.5 if counts.sum() >= FEW else 1.0
    return bool(follows[counts].mean() >= enough and times[follows].sum() >= MOST_TIME * times.sum())


def _log_ratio(operator: NamedChange) -> float:
    """Of an operator that is called as often as before; 0 of others, as of those that did not change."""
    return log(operator.time.ratio or 1.0) if operator.calls_a == operator.calls_b else 0.0
