"""Folded stacks, the text that flame graph tools read: one line per path, frames from the root, then its weight."""

from __future__ import annotations

from typing import Literal, get_args

from pyrometer.errors import InputError
from pyrometer.trace.analysis.call_tree import call_tree
from pyrometer.trace.trace import RankTrace

Weight = Literal["host", "device"]


def folded_stacks(trace: RankTrace, weight: Weight = "host", *, min_share: float = 0.0) -> str:
    """The call tree as folded stacks: `thread;train.py(3): step;aten::mm 1200`, one line per path.

    Args:
        trace: one rank.
        weight: `host`: nanoseconds in which nothing nested runs, which sum to the time of all threads; `device`:
            nanoseconds of kernels, copies and fills below the call that launched them, which sum to all device work.
        min_share: puts smaller paths together as `(other)`, as in `call_tree`; deep Python stacks make long texts.

    Returns:
        Lines in the order of the call tree. Semicolons and line breaks in names, which the format cannot hold, become
        commas and spaces. Paths without a weight of their own are left out; an empty trace is an empty text.

    Raises:
        InputError: `weight` is neither.
    """
    if weight not in get_args(Weight):
        raise InputError(f"weight={weight!r}: it is one of {', '.join(get_args(Weight))}")
    tree = call_tree(trace, min_share=min_share)
    own = tree["self_ns" if weight == "host" else "device_self_ns"]
    paths: list[str] = []
    lines = []
    for above, name, value in zip(tree["parent"].fill_null(0), map(_escaped, tree["name"]), own, strict=True):
        path = f"{paths[above]};{name}" if above > 0 else name
        paths.append(path)
        if value:
            lines.append(f"{path} {value}\n")
    return "".join(lines)


def _escaped(name: str) -> str:
    return name.replace(";", ",").replace("\n", " ").replace("\r", " ")
