"""What passes over the graph took, and what they did to it.

Torch times every pass that goes through its observer of graph transformations; what the pass did to the graph is not in
its log, and comes from our own probe where that was switched on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyrometer.compiler.costs.metrics import number, whole
from pyrometer.compiler.costs.record import PassEffect
from pyrometer.compiler.costs.spans import inside, read_spans
from pyrometer.compiler.log import CompileLog

PROBE = "pyrometer.pass"
"""Entries of our probe, one per pass, made when the pass ends."""

_PREFIX = "pass."


class _Pass(NamedTuple):
    compile_id: str
    subsystem: str
    name: str


def read_passes(log: CompileLog) -> list[PassEffect]:
    """Every pass over every graph, in the order in which they began; those that only the probe saw come last.

    The n-th event and the n-th entry of the probe of one compilation, subsystem and name are the same pass. A pass may run
    inside another, so that their seconds need not add up. On a cache hit no pass runs.

    Source: events `pass.<subsystem>.<name>` of torch's structured trace, and the probe.
    """
    counts: dict[_Pass, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in log.of(PROBE):
        if fields := entry.fields:
            found = _Pass(entry.id_text, str(fields.get("subsystem") or ""), str(fields.get("name") or ""))
            counts[found].append(fields)
    timed = [
        (_named(span.name, span.compile_id.text if span.compile_id else ""), span.duration_ns / 1e9)
        for span in sorted(inside(read_spans(log)), key=lambda span: span.start_ns)
        if span.name.startswith(_PREFIX)
    ]
    effects = [
        _effect(found, seconds, counts[found].pop(0) if counts.get(found) else {}) for found, seconds in timed
    ]
    left = [_effect(found, None, told) for found, entries in counts.items() for told in entries]
    return effects + left


def _named(event: str, compile_id: str) -> _Pass:
    """Of `pass.<subsystem>.<name>`; a pass need not tell its subsystem."""
    subsystem, dot, name = event.removeprefix(_PREFIX).partition(".")
    return _Pass(compile_id, subsystem if dot else "", name if dot else subsystem)


def _effect(found: _Pass, timed_s: float | None, told: Mapping[str, Any]) -> PassEffect:
    probed_s = number(told, "seconds")
    return PassEffect(
        compile_id=found.compile_id,
        subsystem=found.subsystem,
        name=found.name,
        seconds=probed_s if timed_s is None else timed_s,
        **{key: whole(told, key) for key in ("nodes_before", "nodes_after", "created", "erased")},
    )
