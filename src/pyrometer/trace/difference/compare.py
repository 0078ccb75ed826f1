"""Two traces compared: circumstances, the time of a step, and where it changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import log

import numpy as np
import numpy.typing as npt

from pyrometer.quantity import format_percent, format_ratio, significant
from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.difference.alignment import Pair, align_trees
from pyrometer.trace.difference.call_tree import CallTree, build_call_tree
from pyrometer.trace.difference.change import (
    CONFIDENCE,
    HOST_RUN_MARGIN,
    MIN_STEPS,
    RUN_MARGIN,
    change,
    recurs,
    run_margin,
)
from pyrometer.trace.difference.comparability import compare_circumstances
from pyrometer.trace.difference.evenness import changed_alike
from pyrometer.trace.difference.groups import compare_groups, compare_kernels, compare_operators
from pyrometer.trace.difference.pauses import find_pauses
from pyrometer.trace.difference.record import (
    NodeChange,
    Outcome,
    PartChange,
    TimeChange,
    TraceDiff,
)
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace

SMALLEST_SHARE = 0.001
"""Changes below this share of the step are not listed."""

SAME_TRACE = "no change: both sides are the same trace, event by event"

NOTE = (
    "two traces are two runs, one after the other: this shows what differs between them; "
    "`pyrometer bench A --vs B` proves it"
)


BUSY = "other work has the processor; pyrometer bench A --vs B would resolve it"

PAUSES = f"but only by pauses in places that take no longer otherwise, as where {BUSY}"

ALIKE = (
    "but operators of all kinds changed alike, as where the machine is slower or busier or has other threads; "
    "pyrometer bench A --vs B would resolve it"
)

STOOD_STILL = 0.1
"""Of the time of one side, more than of the other, from which on the machine was too busy for a verdict."""

HIDDEN, MOST_STILL = 3.0, 0.75
"""Times the pauses that are found there may be, and the share of a side's time that they may be at most."""

ALL = sys.maxsize


def diff_traces(a: RankTrace, b: RankTrace, *, top: int = 50, anyway: bool = False) -> TraceDiff:
    """What changed from trace a to trace b; ratios are b/a, below 1 is faster.

    Args:
        a: the baseline.
        b: what is compared to it.
        top: how many changes to list of each sort.
        anyway: describe also how different programs differ, without a verdict.

    Raises:
        IncomparableError: the traces are of different programs, or one is empty.
    """
    differences = compare_circumstances(a, b, anyway=anyway)
    times = _step_times(a), _step_times(b)
    on_device = a.activity.has_device and b.activity.has_device
    step = change(*times)
    margin = run_margin(*times, least=RUN_MARGIN if on_device else HOST_RUN_MARGIN)
    outcome: Outcome
    withheld = next((difference for difference in differences if difference.withholds), None)
    if withheld is not None:
        outcome, sentence = "undecided", f"undecided: {withheld.message} ({withheld.a} against {withheld.b})"
    elif a.tables["events"].drop("rank").equals(b.tables["events"].drop("rank")):
        outcome, sentence = "same", SAME_TRACE
    else:
        outcome, sentence = decide(step, margin, (a.steps.height, b.steps.height))
        if not on_device and outcome in ("faster", "slower"):
            doubt = _doubt(a, b, outcome, step)
            if doubt is not None:
                outcome, sentence = "undecided", f"undecided: {sentence}, {doubt}"
    return TraceDiff(
        outcome=outcome,
        sentence=sentence,
        step=step,
        num_steps_a=a.steps.height,
        num_steps_b=b.steps.height,
        confidence=CONFIDENCE,
        margin=margin,
        differences=differences,
        parts=_parts(a, b, np.mean if any(map(recurs, times)) else np.median),
        nodes=_nodes(a, b, step, top),
        operators=compare_operators(a, b, top),
        kernels=compare_kernels(a, b, top),
        groups=compare_groups(a, b, top),
        note=NOTE,
    )


def _step_times(trace: RankTrace) -> npt.NDArray[np.int64]:
    steps = step_windows(trace)
    if not steps.height:
        return np.array([trace.activity.span_ns])
    lengths: npt.NDArray[np.int64] = (steps["end_ns"] - steps["start_ns"]).to_numpy()
    return lengths


def _doubt(a: RankTrace, b: RankTrace, outcome: Outcome, step: TimeChange) -> str | None:
    """Why a change on the host may be the machine's and not the program's."""
    times, pauses = [_step_times(side) for side in (a, b)], [find_pauses(side) for side in (a, b)]
    moving = [np.maximum(whole - still, 1) for whole, still in zip(times, pauses, strict=True)]
    margin = run_margin(moving[0], moving[1], least=HOST_RUN_MARGIN)
    if decide(change(moving[0], moving[1]), margin, (len(moving[0]), len(moving[1])))[0] != outcome:
        return PAUSES
    shares = [float(still.sum() / whole.sum()) for whole, still in zip(times, pauses, strict=True)]
    slower, quicker = shares if outcome == "faster" else shares[::-1]
    hidden = min(HIDDEN * slower, MOST_STILL)
    explained = abs(log(step.ratio or 1.0)) <= -log(1 - hidden)
    if slower - quicker >= STOOD_STILL and explained:
        # A pause at the same place of most steps looks like work, so that there were more than those which are known.
        return f"but the slower side stood still for {format_percent(slower, 2)} of its time, as where {BUSY}"
    if step.ratio is not None and changed_alike(compare_operators(a, b, ALL), step.ratio):
        return ALIKE
    return None


def decide(step: TimeChange, margin: float, steps: tuple[int, int]) -> tuple[Outcome, str]:
    """The verdict on a change of the step's time, and its sentence.

    Faster or slower is what lies beyond the margin with its whole interval; the same, what lies within `RUN_MARGIN`.
    """
    if step.ratio is None:
        return "undecided", "undecided: a step has no length; mark steps with profiler.step()"
    if step.ci_low is None or step.ci_high is None:
        return "undecided", (
            f"undecided: {significant(step.ratio)}× from {steps[0]} and {steps[1]} steps, which give no interval; record at "
            f"least {MIN_STEPS} a side"
        )
    low, high = step.ci_low, step.ci_high
    if high < 1 / (1 + margin) or low > 1 + margin:
        return "faster" if high < 1 else "slower", format_ratio(step.ratio, low, high)
    if low > 1 / (1 + RUN_MARGIN) and high < 1 + RUN_MARGIN:
        return "same", f"no change (within ±{format_percent(RUN_MARGIN, 1)})"
    return "undecided", (
        f"undecided: {_either_way(step.ratio, low, high)} reaches into the {_margin(margin)} by which two runs of one program may differ here; pyrometer bench A --vs B would resolve it"
    )


def _either_way(ratio: float, low: float, high: float) -> str:
    """A ratio whose interval holds 1, in the direction of its value."""
    if ratio >= 1 or high < 1:
        return format_ratio(ratio, low, high)
    return f"{significant(1 / ratio)}× faster ({significant(1 / high)}–{significant(1 / low)})"


def _margin(margin: float) -> str:
    return f"factor of {significant(1 + margin)}" if margin > 1 else format_percent(margin, 2)


def _parts(a: RankTrace, b: RankTrace, centre: Callable[[list[float]], np.floating]) -> list[PartChange]:
    """As the step counts, so do its parts."""
    sides = []
    for trace in (a, b):
        found = breakdown(trace)
        held = [step_breakdown.parts for step_breakdown in found.by_step] or [found.parts]
        sides.append(
            {
                name: float(centre([getattr(parts, name) for parts in held]))
                for name in held[0].__struct_fields__
            }
        )
    return [PartChange(name=name, a_ns=sides[0][name], b_ns=sides[1][name]) for name in sides[0]]


def _nodes(a: RankTrace, b: RankTrace, step: TimeChange, top: int) -> list[NodeChange]:
    trees = build_call_tree(a), build_call_tree(b)
    pairs = align_trees(*trees)
    below: dict[int, list[Pair]] = {}
    for pair in pairs:
        if pair.a >= 0:
            below.setdefault(int(trees[0].parent[pair.a]), []).append(pair)
    smallest = SMALLEST_SHARE * min(step.a_ns, step.b_ns)
    nodes = [
        node
        for pair in pairs
        for node in [_node(*trees, pair, below.get(pair.a, []))]
        if _size(node) > smallest or (pair.a < 0 and (node.added or node.removed))
    ]
    return sorted(nodes, key=_size, reverse=True)[:top]


def _size(node: NodeChange) -> float:
    return max(abs(node.host.delta_ns), abs(node.device.delta_ns))


def _node(a: CallTree, b: CallTree, pair: Pair, below: list[Pair]) -> NodeChange:
    """A pair's times without those of the pairs directly below it."""
    host, device, calls = [], [], []
    for tree, node, inner in (
        (a, pair.a, [one.a for one in below]),
        (b, pair.b, [one.b for one in below]),
    ):
        roots = tree.children.get(-1, [])
        whole_host = tree.host[roots].sum(0) if node < 0 else tree.host[node]
        whole_device = tree.device[roots].sum(0) if node < 0 else tree.device[node]
        host.append(whole_host - tree.host[inner].sum(0))
        device.append(whole_device - tree.device[inner].sum(0))
        calls.append(1.0 if node < 0 else float(tree.calls[node].mean()))
    renamed = pair.a >= 0 and a.names[pair.a] != b.names[pair.b]
    return NodeChange(
        path=a.path(pair.a),
        status="replaced" if renamed else "common",
        replaced_by=b.names[pair.b] if renamed else None,
        calls_a=calls[0],
        calls_b=calls[1],
        host=change(host[0], host[1]),
        device=change(device[0], device[1]),
        added=[b.names[node] for node in pair.added],
        removed=[a.names[node] for node in pair.removed],
    )
