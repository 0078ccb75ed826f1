"""Whether all operators changed alike, as where the machine changed and not the program."""

from __future__ import annotations

from math import log

from pyrometer.trace.difference.record import NamedChange

LEAST_SHARE = 0.02
"""Of the operators' time, from which on an operator counts."""

LEAST_FOLLOWED = 0.5
"""Of the change of a step, as logarithms, that each operator has to follow."""


def changed_alike(operators: list[NamedChange], ratio: float) -> bool:
    """Whether each operator that counts took part in a change of the step; at least two, called as often as before.

    A program that became slower did so somewhere: what was not touched takes as long as before. Neighbours, clock rates and the
    number of threads move all of it.

    Args:
        operators: host time in each operator itself.
        ratio: of the step's time, new over old.
    """
    whole = sum(operator.time.a_ns + operator.time.b_ns for operator in operators)
    large = [
        operator for operator in operators if operator.time.a_ns + operator.time.b_ns >= LEAST_SHARE * whole
    ]
    if len(large) < 2 or ratio == 1:
        return False
    return all(
        operator.calls_a == operator.calls_b
        and operator.time.ratio is not None
        and log(operator.time.ratio) / log(ratio) >= LEAST_FOLLOWED
        for operator in large
    )
