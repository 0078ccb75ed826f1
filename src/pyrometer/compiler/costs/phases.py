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
from pyrometer.compiler.costs.spans import behind, inside, read_spans, waited_for
from pyrometer.compiler.log import CompileLog


def read_phases(log: CompileLog) -> dict[str, float]:
    """Own seconds of each phase, in the order of compiling; their sum is `CompileCost.compile_s`.

    Source: begin and end events of torch's structured trace; compilation metrics where those are absent.
    """
    return phases_s(waited_for(read_spans(log)))


def read_own_times(log: CompileLog) -> dict[str, float]:
    """The same by torch's own names, the longest first; their sum is `CompileCost.compile_s` too."""
    found: Counter[str] = Counter()
    for span in inside(waited_for(read_spans(log))):
        found[span.name] += span.own_ns
    return {name: time_ns / 1e9 for name, time_ns in found.most_common()}


def read_background(log: CompileLog) -> dict[str, float]:
    """Own seconds of each phase on threads that compile beside the program, summed over threads.

    In a log from a file, which does not tell threads apart, the time in which any of them compiled.
    """
    return phases_s(behind(read_spans(log)))


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
    found: dict[CompileId | None, Counter[str]] = {}
    left = [(span, span.compile_id, phase_named(span.name)) for span in spans]
    while left:
        span, compile_id, phase = left.pop()
        found.setdefault(compile_id, Counter())[phase] += span.own_ns
        for child in span.children:
            own_id = child.compile_id if child.name in COMPILATIONS else compile_id
            left.append((child, own_id, phase_inside(child.name, phase)))
    return found


def in_seconds(phases_ns: Mapping[str, int]) -> dict[str, float]:
    """Phases in seconds, in the order of compiling."""
    return {phase: phases_ns[phase] / 1e9 for phase in ORDER if phases_ns.get(phase, 0) > 0}
