"""What shares of the recorded operators' time are of a step, and what a step saves without them."""

from __future__ import annotations

from pyrometer.advice import Gain
from pyrometer.quantity import Ratio
from pyrometer.rules.joining import Located, function_at
from pyrometer.rules.kernels.patterns.operators import on_device, own_share
from pyrometer.rules.rule import Case

OPERATORS = frozenset({"operator", "backward", "allocation"})
"""Kinds of leaves of the host's profile in which operators run."""

METHOD = "time of the operators in steps whose values were followed"
BESIDE = 1.2
"""What goes with an operator, over what it takes itself: memory that need not be had, and what waits for it."""


def of_step(case: Case, share: Ratio) -> Ratio:
    """A share of the operators' time as one of the step: Python, data and waiting are no operators.

    Samples or the trace tell both from the same steps, so that a busy machine lengthens both; recorded operators would be set
    against steps of another minute.
    """
    flow, step_s, trace = case.dataflow, case.step_s, case.trace
    if case.host is not None:
        spent = sum(leaf.seconds_per_step for leaf in case.host.leaves if leaf.kind in OPERATORS)
        return share * case.host.share(spent)
    if trace is not None and trace.top_ops:
        return share * min(1.0, sum(own_share(trace, op) for op in trace.top_ops))
    if flow is None or not step_s:
        return share
    return share * min(1.0, flow.step_operator_s / step_s)


def as_traced(case: Case, share: Ratio, where: Located) -> Ratio:
    """The same share of the operators' time, no more than the trace saw in the function around a place.

    Few steps are recorded, and a call during which another program has the processor looks long in them.
    """
    function = None if case.trace is None else function_at(where, case.modules)
    if case.trace is None or function is None:
        return share
    lines = [line for line in case.trace.top_lines if function_at(line, case.modules) == function]
    most = sum(line.device_share if on_device(case.trace) else line.host_share for line in lines)
    told = of_step(case, share)
    return share * most / told if lines and told > most else share


def left_at_best(share: Ratio) -> Ratio:
    """Of a step's time without operators of this share of it: what goes beside them is at most half of all else.

    >>> [round(left_at_best(share), 2) for share in (0.0, 0.1, 0.7, 0.9, 1.0)]
    [1.0, 0.88, 0.16, 0.05, 0.0]
    """
    return max(1 - BESIDE * share, (1 - share) / 2)


def removed(case: Case, share: Ratio, method: str, *, best: Ratio = 1.0, worst: Ratio = 0.75) -> Gain:
    """What it brings if operators with this share of the recorded time go.

    Args:
        case: with the dataflow.
        share: of the operators' time.
        method: of the prediction.
        best: part of their time that goes at best, before what goes with it.
        worst: part of their time that goes at worst.
    """
    return Gain(
        ratio_low=left_at_best(best * share),
        ratio_high=min(1.0, 1 - worst * of_step(case, share)),
        method=method,
    )
