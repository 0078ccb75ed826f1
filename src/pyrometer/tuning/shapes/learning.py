"""From observed sizes to a plan for all axes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from pyrometer.errors import InputError
from pyrometer.record import from_json
from pyrometer.tuning.shapes.axes import Axes, Sizes
from pyrometer.tuning.shapes.grid import plan_grid
from pyrometer.tuning.shapes.planning import plan_edges
from pyrometer.tuning.shapes.policy import BucketPolicy
from pyrometer.tuning.shapes.record import AxisPlan, BucketPlan
from pyrometer.tuning.shapes.sample import Shapes, read_sample, sizes_in


def first_plan(
    axes: Axes,
    policy: BucketPolicy,
    sample: str | Path | Iterable[Shapes] | None = None,
    plan: BucketPlan | str | Path | None = None,
) -> tuple[BucketPlan | None, Counter[Sizes]]:
    """The plan that is given, learned from a sample, or made of edges given by hand; None where calls are to be learned from.

    Returns:
        The plan, and how often each combination of sizes is in the sample.

    Raises:
        InputError: more than one of these, a plan of other sizes, or a file that cannot be read.
    """
    if plan is not None and axes.edges:
        raise InputError("plan: the edges are given in dims already; give one of them")
    if sample is not None and plan is not None:
        raise InputError("sample and plan: give one of them; a plan is what is learned from a sample")
    if plan is not None:
        known = plan if isinstance(plan, BucketPlan) else _read_plan(plan)
        names = tuple(axis.name for axis in known.axes)
        if names != axes.names:
            raise InputError(f"plan: is for {', '.join(names)}, but dims declare {', '.join(axes.names)}")
        return known, Counter()
    if sample is None:
        return given_plan(axes, {}) if axes.edges else None, Counter()
    seen = sizes_in(axes, read_sample(sample) if isinstance(sample, (str, Path)) else sample)
    return given_plan(axes, seen) if axes.edges else learn_plan(axes, seen, policy), seen


def _read_plan(path: str | Path) -> BucketPlan:
    try:
        return from_json(BucketPlan, Path(path).read_bytes())
    except OSError as error:
        raise InputError(
            f"plan {path}: cannot be read ({error}); legal is a file that save() wrote"
        ) from error


def learn_plan(axes: Axes, seen: Mapping[Sizes, int], policy: BucketPolicy) -> BucketPlan:
    """The cheapest edges for the sizes that were seen.

    One size is planned exactly, several as a grid.

    Raises:
        InputError: nothing was seen.

    >>> axes = Axes(("length",), {"x": {1: "length"}}, {})
    >>> learn_plan(axes, {(10,): 3, (60,): 1}, BucketPolicy(max_graphs=2)).axes[0].edges
    [10, 60]
    """
    if not seen:
        raise InputError("sizes: none were seen; a plan needs at least one call")
    largest = tuple(
        max(policy.cover.get(name, 0), *(sizes[place] for sizes in seen))
        for place, name in enumerate(axes.names)
    )
    edges = _edges(axes, seen, policy, largest)
    plan = plan_of(axes.names, edges, seen)
    furthest = [own[-1] for own in edges]
    if not policy.cover or furthest in plan.cells:
        return plan
    return msgspec.structs.replace(plan, cells=[*plan.cells, furthest])


def given_plan(axes: Axes, seen: Mapping[Sizes, int]) -> BucketPlan:
    """The plan of edges that are given by hand; without a sample any combination of them may be needed.

    >>> given_plan(Axes(("n",), {"x": {1: "n"}}, {}, edges={"n": [8, 16]}), {}).cells
    [[8], [16]]
    """
    edges = [axes.edges[name] for name in axes.names]
    plan = plan_of(axes.names, edges, seen)
    return plan if seen else msgspec.structs.replace(plan, cells=list(map(list, itertools.product(*edges))))


def plan_of(names: Iterable[str], edges: Iterable[list[int]], seen: Mapping[Sizes, int]) -> BucketPlan:
    """The plan of some edges, with the combinations that some sizes need, the most frequent first, and their padding."""
    axes = [AxisPlan(name=name, edges=own) for name, own in zip(names, edges, strict=True)]
    plan = BucketPlan(axes=axes, num_samples=sum(seen.values()))
    used = calls_by_cell(plan, seen)
    real = sum(count * math.prod(sizes) for sizes, count in seen.items() if plan.edges(sizes) is not None)
    padded = sum(count * math.prod(cell) for cell, count in used.items())
    return msgspec.structs.replace(
        plan,
        cells=[list(cell) for cell, _ in used.most_common()],
        padding_share=1 - real / padded if padded else None,
    )


def calls_by_cell(plan: BucketPlan, seen: Mapping[Sizes, int]) -> Counter[Sizes]:
    """How many calls of a sample each combination of edges serves; those beyond the last edge are left out."""
    calls = Counter[Sizes]()
    for sizes, count in seen.items():
        cell = plan.edges(sizes)
        if cell is not None:
            calls[cell] += count
    return calls


def _edges(axes: Axes, seen: Mapping[Sizes, int], policy: BucketPolicy, largest: Sizes) -> list[list[int]]:
    align = tuple(policy.alignment(name) for name in axes.names)
    if len(align) > 1:
        covered = {**seen, largest: seen.get(largest, 1)}
        return plan_grid(covered, policy.max_graphs, policy.cost, align)
    plan = plan_edges(
        {sizes[0]: count for sizes, count in seen.items()},
        policy.max_graphs,
        step_cost=policy.step_cost,
        align=align[0],
        cover=largest[0],
        compile_cost=policy.compile_cost,
        expected_calls=policy.expected_calls,
    )
    return [plan.edges]
