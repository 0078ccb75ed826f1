"""Which benchmarks of the two sides belong together."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from pyrometer.guard.gate import Missed


def pair_up(
    base: Sequence[str], head: Sequence[str], failures: Sequence[Missed]
) -> tuple[list[str], list[Missed]]:
    """Benchmarks that both sides have, and what is to be said of the others.

    Args:
        base: names of the base.
        head: names of the head.
        failures: files that a side could not read, whose benchmarks are not gone.

    >>> both, missed = pair_up(["perf_a.py::perf_x"], ["perf_a.py::perf_x2"], [])
    >>> both, missed[0].reason
    ([], 'gone from the head; was it renamed to perf_a.py::perf_x2? Then compare once with both names in the head')
    """
    broken = {failure.benchmark for failure in failures if failure.side == "head"}
    new = [name for name in head if name not in base]
    missed = [
        Missed(benchmark=name, side="head", reason=_gone(name, new), failed=False)
        for name in base
        if name not in head and name.partition("::")[0] not in broken
    ]
    missed += [
        Missed(
            benchmark=name, side="base", reason="new: the base has nothing to compare it with", failed=False
        )
        for name in new
    ]
    return [name for name in head if name in base], missed


def _gone(name: str, new: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, new, n=1, cutoff=0.8)
    if not near:
        return "gone from the head: nobody guards it any more"
    return f"gone from the head; was it renamed to {near[0]}? Then compare once with both names in the head"
