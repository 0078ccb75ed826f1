"""Frames that were given up: for a break, the recompile limit, an error, or by a rule that leaves them alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pyrometer.compiler.breaks.frames import Compiled
from pyrometer.compiler.breaks.lost_ops import lost_in
from pyrometer.compiler.breaks.occurrence import SOFT_FAILURES, Occurrence
from pyrometer.compiler.breaks.record import SkippedFrame
from pyrometer.compiler.breaks.text import parse_causes
from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.recompile_limit import RAISED_LIMIT
from pyrometer.compiler.user_code import own_stack
from pyrometer.text import one_line

RULES = frozenset({"gb4297", "gb9741"})
"""Somebody decided to leave the frame alone: torch._dynamo.skip_frame(); within a transform of torch.func."""

_LINK = "For more details about this graph break, please visit"

LONGEST_REASON = 300
"""Characters; texts of exceptions may hold whole programs."""


def skipped_frames(
    log: CompileLog, compiled: Mapping[CompileId, Compiled], occurrences: Sequence[Occurrence]
) -> dict[CompileId, list[SkippedFrame]]:
    """By frame (see `CompileId.of_frame`), in the order in which they were given up; the same reason once, with a count."""
    found: dict[CompileId, dict[tuple[str, str], SkippedFrame]] = defaultdict(dict)
    for key, skip in _given_up(log, compiled, occurrences):
        same = (skip.kind, skip.reason)
        known = found[key].get(same)
        found[key][same] = skip if known is None else msgspec.structs.replace(known, count=known.count + 1)
    return {key: list(skips.values()) for key, skips in found.items()}


def _given_up(
    log: CompileLog, compiled: Mapping[CompileId, Compiled], occurrences: Sequence[Occurrence]
) -> Iterator[tuple[CompileId, SkippedFrame]]:
    breaks: dict[CompileId, list[Occurrence]] = defaultdict(list)
    for occurrence in occurrences:
        breaks[occurrence.compiled.compile_id].append(occurrence)
    for compile_id, made in compiled.items():
        if made.failure is not None or made.declined:
            yield compile_id.of_frame, _skip(made, breaks[compile_id], lost_in(made, compiled))
    for entry in log.of("bwd_compilation_metrics"):
        metrics = entry.fields
        forward = compiled.get(entry.compile_id) if entry.compile_id is not None else None
        if metrics.get("fail_type") and forward is not None:
            text = f"backward graph: {metrics['fail_type']}: {metrics.get('fail_reason')}"
            yield (
                forward.compile_id.of_frame,
                _record(forward, "error", one_line(text, LONGEST_REASON), raised=True),
            )


def _skip(compiled: Compiled, breaks: Sequence[Occurrence], lost: int | None) -> SkippedFrame:
    kind, raised = _kind(compiled, breaks)
    reason = breaks[0].cause.reason if kind in {"break", "rule"} and breaks else _reason(compiled)
    skip = _record(compiled, kind, reason, raised=raised)
    num_breaks = len({graph_break.key for graph_break in breaks}) if kind in {"break", "rule"} else 0
    return msgspec.structs.replace(skip, num_breaks=num_breaks, lost_ops=lost)


def _record(compiled: Compiled, kind: str, reason: str, *, raised: bool | None) -> SkippedFrame:
    return SkippedFrame(
        compile_id=compiled.compile_id.text,
        function=compiled.code.function,
        file=compiled.code.file,
        line=compiled.code.line,
        reason=reason,
        kind="raised" if raised else kind,
        called_from=list(own_stack(compiled.called_from)),
        raised=raised,
    )


def _kind(compiled: Compiled, breaks: Sequence[Occurrence]) -> tuple[str, bool | None]:
    """What ended it, and whether that was raised to the caller."""
    if compiled.declined:
        return "rule", False
    if compiled.limit is not None:
        return "recompile_limit", compiled.failure == RAISED_LIMIT
    if compiled.failure in SOFT_FAILURES:
        kind = "rule" if any(graph_break.cause.id in RULES for graph_break in breaks) else "break"
        return kind, _is_raised(compiled, breaks)
    return "error", None if compiled.suppresses_errors is None else not compiled.suppresses_errors


def _is_raised(compiled: Compiled, breaks: Sequence[Occurrence]) -> bool | None:
    """A break without a text of its own was raised; before texts held links, not every function given up had one."""
    if any(graph_break.gives_up for graph_break in breaks):
        return False
    return True if _LINK in compiled.failure_text else None


def _reason(compiled: Compiled) -> str:
    if compiled.declined:
        return "the backend asked to leave the frame alone"
    limit = compiled.limit
    if limit is not None and limit.name and limit.value is not None:
        return f"{limit.name} of {limit.value} exceeded"
    causes = parse_causes(compiled.failure_text)
    if causes:
        return one_line(f"{causes[0].reason}: {causes[0].explanation}", LONGEST_REASON)
    return one_line(f"{compiled.failure}: {compiled.failure_text}", LONGEST_REASON)
