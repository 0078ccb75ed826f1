"""The compilations of a log, each with what its guards tell, and the earlier ones of the same frame."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.frame_code import NO_CODE, FrameCode, frame_codes
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.recompile_limit import RecompileLimit, read_limit
from pyrometer.compiler.recompiles.facts import Facts, facts_of
from pyrometer.compiler.recompiles.tree import Guard, read_tree, read_types
from pyrometer.compiler.stack import frames_of


@dataclass(eq=False)
class LoggedCompilation:
    """What the log holds of one compilation that matters here."""

    id: CompileId
    code: FrameCode = NO_CODE
    metrics: dict[str, Any] = field(default_factory=dict)
    stack: tuple[dict[str, Any], ...] = ()
    """Who called, the innermost last; the frame itself is the last. Torch leaves out the two innermost callers."""
    whole_stack: tuple[dict[str, Any], ...] = ()
    """The whole stack, from the program's start into torch; in a file only where a symbolic size was made."""
    guards: list[Guard] | None = None
    """`None` while there are none: it failed, or torch did not tell."""
    facts: Facts = field(default_factory=Facts)
    cold_guards_s: float | None = None
    reasons: list[str] = field(default_factory=list)
    """Why each earlier compilation did not fit, in torch's words."""
    symbols: dict[str, str] = field(default_factory=dict)
    """Value at that call of each open size or number, by source."""
    attempt: int = 0

    @property
    def seconds(self) -> float | None:
        """What the compilation took."""
        for name, scale in (("duration_us", 1e-6), ("entire_frame_compile_time_s", 1.0)):
            metric = self.metrics.get(name)
            if isinstance(metric, (int, float)):
                return metric * scale
        return None

    @property
    def limit(self) -> RecompileLimit | None:
        """The limit that it failed at, where the frame had been compiled too often."""
        return read_limit(
            str(self.metrics.get("fail_type") or ""), str(self.metrics.get("fail_reason") or "")
        )


@dataclass(eq=False)
class FrameHistory:
    """Every compilation of one frame between two resets, in order."""

    compilations: list[LoggedCompilation]

    def before(self, compilation: LoggedCompilation) -> list[LoggedCompilation]:
        """The earlier ones that could have been used again."""
        earlier = self.compilations[: self.compilations.index(compilation)]
        return [logged_compilation for logged_compilation in earlier if logged_compilation.guards is not None]


def frame_histories(log: CompileLog) -> list[FrameHistory]:
    """All frames of a log; after a reset they are new ones."""
    compilations = {
        compile_id: LoggedCompilation(compile_id, code)
        for compile_id, code in frame_codes(log).items()
        if compile_id.frame is not None
    }
    for entry in log.entries:
        if entry.compile_id in compilations:
            _take(compilations[entry.compile_id], entry)
    frames: dict[CompileId, list[LoggedCompilation]] = {}
    for compile_id, compilation in compilations.items():
        frames.setdefault(compile_id.of_frame, []).append(compilation)
    return [FrameHistory(frame) for frame in frames.values()]


def known_files(log: CompileLog) -> frozenset[str]:
    """Full names of the files that the log speaks of."""
    return frozenset(_files(log))


def _take(into: LoggedCompilation, entry: LogEntry) -> None:
    content = entry.fields
    if entry.attempt > into.attempt:  # traced again: what the attempt before it found is void
        into.attempt, into.symbols = entry.attempt, {}
    if entry.kind == "compilation_metrics":
        into.metrics = content
    elif entry.kind == "dynamo_start":
        into.stack = into.stack or frames_of(content.get("stack"))
        into.whole_stack = into.whole_stack or entry.stack
    elif entry.kind == "recompile_reasons":
        into.reasons = reasons_of(entry.payload)
    elif entry.kind == "create_symbol":
        into.symbols[str(content.get("source", ""))] = str(content.get("val", ""))
        into.whole_stack = frames_of(content.get("stack"))
    elif entry.kind == "dynamo_cpp_guards_str":
        into.guards = read_tree(entry.payload)
        into.cold_guards_s = _latency(entry.payload)
        into.facts = facts_of(into.guards, read_types(entry.payload), into.symbols)


def reasons_of(payload: str) -> list[str]:
    """The reasons of a recompilation: a JSON list, or the bare text where there is but one.

    >>> reasons_of('["0/1: a == 2", "0/0: a == 1"]'), reasons_of("0/0: a == 1"), reasons_of("")
    (['0/1: a == 2', '0/0: a == 1'], ['0/0: a == 1'], [])
    """
    try:
        content = json.loads(payload)
    except (json.JSONDecodeError, RecursionError):
        content = payload
    if isinstance(content, list):
        return [str(reason) for reason in content]
    return [str(content)] if payload.strip() else []


def _latency(text: str) -> float | None:
    match = re.search(r"^Guard latency = ([\d.]+) us", text, re.MULTILINE)
    try:
        return None if match is None else float(match[1]) * 1e-6
    except ValueError:
        return None


def _files(log: CompileLog) -> Iterator[str]:
    for entry in log.entries:
        if isinstance(entry.fields.get("co_filename"), str):
            yield entry.fields["co_filename"]
        for stack in (entry.stack, entry.fields.get("stack"), entry.fields.get("user_stack")):
            yield from (str(frame["filename"]) for frame in frames_of(stack) if "filename" in frame)
