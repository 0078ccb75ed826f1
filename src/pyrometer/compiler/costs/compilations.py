"""Every compilation by itself: of which function, how it went, how long, what of it the caches spared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.costs.caches import CacheLook, cache_look
from pyrometer.compiler.costs.events import Span
from pyrometer.compiler.costs.metrics import FORWARD, whole
from pyrometer.compiler.costs.outcome import outcome_of
from pyrometer.compiler.costs.phase_names import COMPILATIONS
from pyrometer.compiler.costs.phases import in_seconds, phases_of_compilations
from pyrometer.compiler.costs.record import Compilation
from pyrometer.compiler.costs.spans import down_to, inside, read_spans, waited_for
from pyrometer.compiler.frame_code import FrameCode, frame_codes
from pyrometer.compiler.log import CompileLog, LogEntry

COMPILED_AUTOGRAD = "compiled autograd"
"""Stands for a function where what is compiled is a graph of the autograd engine."""


class _Times(NamedTuple):
    """When compilations began and what they took, in nanoseconds."""

    began: dict[CompileId, int]
    phases: dict[CompileId | None, Counter[str]]
    backward: Counter[CompileId]


def read_compilations(log: CompileLog) -> list[Compilation]:
    """One record per compile id, in the order in which they were first named; their `total_s` add up to compile time.

    A compilation inside another one counts for itself only.

    Source: `dynamo_start`, compilation metrics and timed events of torch's structured trace.
    """
    times = _times(read_spans(log))
    zero_ns = min([entry.time_ns for entry in log.entries[:1]] + list(times.began.values()), default=0)
    by_id: dict[CompileId, list[LogEntry]] = defaultdict(list)
    for entry in log.entries:
        if entry.compile_id is not None:
            by_id[entry.compile_id].append(entry)
    codes = frame_codes(log)
    compilations = []
    for compile_id, entries in by_id.items():
        code = FrameCode(COMPILED_AUTOGRAD) if compile_id.frame is None else codes[compile_id]
        began_ns = times.began.get(compile_id, entries[0].time_ns)
        compilations.append(_compilation(compile_id, entries, code, times, max(began_ns - zero_ns, 0) / 1e9))
    return compilations


def _compilation(
    compile_id: CompileId,
    entries: Sequence[LogEntry],
    code: FrameCode,
    times: _Times,
    started_s: float,
) -> Compilation:
    metrics = metrics_of(entries)
    outcome, reason = outcome_of(metrics, entries)
    looks = [look for look in map(cache_look, entries) if look is not None]
    phases = times.phases.get(compile_id)
    return Compilation(
        compile_id=compile_id.text,
        function=code.function,
        file=code.file,
        line=code.line,
        outcome=outcome,
        reason=reason,
        started_s=started_s,
        total_s=None if phases is None else phases.total() / 1e9,
        backward_s=times.backward[compile_id] / 1e9 if compile_id in times.backward else None,
        phases_s={} if phases is None else in_seconds(phases),
        num_ops=whole(metrics, "graph_op_count"),
        num_guards=whole(metrics, "guard_count"),
        attempts=1 + max(entry.attempt for entry in entries),
        is_resume=code.resumes_at is not None,
        backend="inductor" if any(map(_is_inductor, entries)) else "",
        mode=_mode(looks),
        cache=_cache(looks),
        rank=next((entry.rank for entry in entries if entry.rank is not None), None),
    )


def metrics_of(entries: Iterable[LogEntry]) -> dict[str, Any]:
    """The compilation metrics among the entries of a compilation; empty if there are none."""
    return next((entry.fields for entry in entries if entry.kind == FORWARD and entry.fields), {})


def _times(spans: Sequence[Span]) -> _Times:
    waits = waited_for(spans)
    began: dict[CompileId, int] = {}
    backward: Counter[CompileId] = Counter()
    for span in inside(waits):
        if span.name not in COMPILATIONS or span.compile_id is None:
            continue
        began[span.compile_id] = min(span.start_ns, began.get(span.compile_id, span.start_ns))
        if span.name == "entire_backward_compile":
            nested = [inner for inner in down_to(span.children, COMPILATIONS) if inner.name in COMPILATIONS]
            backward[span.compile_id] += span.duration_ns - sum(inner.duration_ns for inner in nested)
    return _Times(began, phases_of_compilations(waits), backward)


def _is_inductor(entry: LogEntry) -> bool:
    return entry.kind.startswith(("inductor_", "fx_graph_cache_")) or (
        entry.kind == "chromium_event" and '"inductor_compile"' in entry.payload
    )


def _mode(looks: Sequence[CacheLook]) -> str:
    """The mode of torch.compile that Inductor's settings stand for, as the key of its cache lists them; empty if untold."""
    settings = next((look.key.settings for look in looks if look.key.settings), None)
    if settings is None:
        return ""
    graphs = settings.get("triton.cudagraphs") == "True"
    if settings.get("max_autotune") == "True":
        return "max-autotune" if graphs else "max-autotune-no-cudagraphs"
    return "reduce-overhead" if graphs else "default"


def _cache(looks: Sequence[CacheLook]) -> str:
    outcomes = {look.outcome for look in looks}
    return "unknown" if not outcomes else outcomes.pop() if len(outcomes) == 1 else "mixed"
