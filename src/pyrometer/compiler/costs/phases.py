"""Where compile time went: own time per phase, which adds up to the time that the program waited.

Phases of a thread that compiles beside the program are not part of that; the program sees them as waiting for compile
threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.costs.events import Span
from pyrometer.compiler.costs.phase_names import COMPILATIONS, ORDER, phase_inside, phase_named


def phases_s(spans: Iterable[Span]) -> dict[str, float]:
    """Own seconds of each phase in some trees."""
    total: Counter[str] = Counter()
    for part in phases_of_compilations(spans).values():
        total.update(part)
    return in_seconds(total)


def phases_of_compilations(spans: Iterable[Span]) -> dict[CompileId | None, Counter[str]]:
    """Own nanoseconds of each phase, by the compilation that they belong to.

    What a compilation inside another one takes is its own, so that nothing counts twice.
    """
    counts: dict[CompileId | None, Counter[str]] = {}
    left = [(span, span.compile_id, phase_named(span.name)) for span in spans]
    while left:
        span, compile_id, phase = left.pop()
        counts.setdefault(compile_id, Counter())[phase] += span.own_ns
        for child in span.children:
            own_id = child.compile_id if child.name in COMPILATIONS else compile_id
            left.append((child, own_id, phase_inside(child.name, phase)))
    return counts


def in_seconds(phases_ns: Mapping[str, int]) -> dict[str, float]:
    """Phases in seconds, in the order of compiling."""
    return {phase: phases_ns[phase] / 1e9 for phase in ORDER if phases_ns.get(phase, 0) > 0}
