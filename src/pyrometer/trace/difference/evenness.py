"""Whether all operators changed alike, as where the machine changed and not the program."""

from __future__ import annotations

from math import log

import numpy as np

from pyrometer.trace.difference.record import NamedChange

LEAST_SHARE = 0.001
"""Of the operators' time, from which on what an operator takes is more than noise."""

LARGE_SHARE = 0.02
"""From which on each operator has to follow; of smaller ones most."""

FEWEST = 3
"""Operators, below which nothing is said."""

LEAST_FOLLOWED = 0.5
"""Of the change of a step, as logarithms."""


def changed_alike(operators: list[NamedChange], ratio: float) -> bool:
    """Whether operators of all kinds took part in a change of the step: each large one, and three quarters of all.

    A program that became slower did so somewhere: calls that were not touched take as long as before, and small operators do so even
    where a larger batch makes all large ones slower. Neighbours, clock rates and caches move all of them.

    Args:
        operators: host time in each operator itself.
        ratio: of the step's time, new over old.
    """
    times = [operator.time.a_ns + operator.time.b_ns for operator in operators]
    followed, large = [], []
    for operator, time in zip(operators, times, strict=True):
        if time < LEAST_SHARE * sum(times) or ratio == 1:
            continue
        own = operator.time.ratio if operator.calls_a == operator.calls_b else None
        followed.append(log(own) / log(ratio) if own else 0.0)
        if time >= LARGE_SHARE * sum(times):
            large.append(followed[-1])
    if len(followed) < FEWEST:
        return False
    return min(large) >= LEAST_FOLLOWED and float(np.quantile(followed, 0.25)) >= LEAST_FOLLOWED
