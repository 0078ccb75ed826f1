"""The compilations of a log, each with what its guards tell, and the earlier ones of the same frame."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.place import Place
from pyrometer.compiler.recompiles.facts import Facts, facts_of
from pyrometer.compiler.recompiles.tree import Guard, read_tree, read_types

_RESUME = re.compile(r"torch_dynamo_resume_in_(?P<name>.+)_at_\d+$")
_OWN_PACKAGES = frozenset({"torch", "pyrometer"})
LIMIT = "Dynamo recompile limit exceeded"
_LIMIT_TYPE = "FailOnRecompileLimitHit"


@dataclass(eq=False)
class CompilationLog:
    """What the log holds of one compilation that matters here."""

    id: CompileId
    metrics: dict[str, Any] = field(default_factory=dict)
    stack: tuple[dict[str, Any], ...] = ()
    """Who called, the innermost last; the frame itself is the last. Torch leaves out the two innermost callers."""
    framework_stack: tuple[dict[str, Any], ...] = ()
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
    def function(self) -> str:
        """Its name; of a rest behind a break the name of the function that it is the rest of."""
        return plain_name(str(self.metrics.get("co_name") or self._frame().get("name") or ""))

    @property
    def file(self) -> str:
        """The file that the frame is in."""
        return str(self.metrics.get("co_filename") or self._frame().get("filename") or "")

    @property
    def line(self) -> int:
        """The line that it begins at."""
        return _line(self.metrics.get("co_firstlineno") or self._frame().get("line"))

    @property
    def seconds(self) -> float | None:
        """What the compilation took."""
        for name, scale in (("duration_us", 1e-6), ("entire_frame_compile_time_s", 1.0)):
            told = self.metrics.get(name)
            if isinstance(told, (int, float)):
                return told * scale
        return None

    @property
    def hit_limit(self) -> bool:
        """Whether it ended because the frame had been compiled too often."""
        reason = str(self.metrics.get("fail_reason") or "")
        return reason.startswith(LIMIT) or self.metrics.get("fail_type") == _LIMIT_TYPE

    def _frame(self) -> dict[str, Any]:
        return self.stack[-1] if self.stack else {}


@dataclass(eq=False)
class FrameHistory:
    """Every compilation of one frame between two resets, in order."""

    compilations: list[CompilationLog]

    def before(self, compilation: CompilationLog) -> list[CompilationLog]:
        """The earlier ones that could have been used again."""
        earlier = self.compilations[: self.compilations.index(compilation)]
        return [one for one in earlier if one.guards is not None]

    def named(self, attribute: str, compilation: CompilationLog) -> Any:
        """A fact of the frame from the compilation itself, or from another one of the frame."""
        for one in (compilation, *self.compilations):
            if told := getattr(one, attribute):
                return told
        return getattr(compilation, attribute)


def frame_histories(log: CompileLog) -> list[FrameHistory]:
    """All frames of a log; after a reset they are new ones."""
    compilations: dict[CompileId, CompilationLog] = {}
    for entry in log.entries:
        if entry.compile_id is not None and entry.compile_id.frame is not None:
            _take(compilations.setdefault(entry.compile_id, CompilationLog(entry.compile_id)), entry)
    frames: dict[tuple[Any, ...], list[CompilationLog]] = {}
    for compilation in compilations.values():
        key = (compilation.id.epoch, compilation.id.autograd, compilation.id.frame)
        frames.setdefault(key, []).append(compilation)
    return [FrameHistory(found) for found in frames.values()]


def known_files(log: CompileLog) -> frozenset[str]:
    """Full names of the files that the log speaks of."""
    return frozenset(_files(log))


def plain_name(name: str) -> str:
    """The function's own name.

    >>> plain_name("torch_dynamo_resume_in_forward_at_17"), plain_name("forward")
    ('forward', 'forward')
    """
    while (match := _RESUME.match(name)) is not None:
        name = match["name"]
    return name


def is_users(file: str) -> bool:
    """Whether a file is neither torch's nor ours.

    >>> is_users("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"), is_users("/home/me/torch/train.py")
    (False, True)
    """
    parts = PurePath(file).parts
    package = next(
        (
            parts[at + 1]
            for at in range(len(parts) - 1)
            if parts[at] in {"site-packages", "dist-packages", "src"}
        ),
        "",
    )
    return package not in _OWN_PACKAGES and not file.startswith("<frozen")


def places(stack: tuple[dict[str, Any], ...]) -> list[Place]:
    """The user's own frames of a stack, the outermost first."""
    return [
        Place(
            file=str(frame.get("filename", "")),
            line=_line(frame.get("line")),
            function=plain_name(str(frame.get("name") or "")),
            source=str(frame.get("loc") or ""),
        )
        for frame in stack
        if is_users(str(frame.get("filename", "")))
    ]


def frames_of(content: Any) -> tuple[dict[str, Any], ...]:
    """The frames of a stack as the log writes it; none where it is not one."""
    return (
        tuple(frame for frame in content if isinstance(frame, dict))
        if isinstance(content, (list, tuple))
        else ()
    )


def _line(told: Any) -> int:
    return told if isinstance(told, int) else 0


def _take(into: CompilationLog, entry: LogEntry) -> None:
    content = entry.metadata if isinstance(entry.metadata, dict) else {}
    if entry.attempt > into.attempt:  # traced again: what the attempt before it found is void
        into.attempt, into.symbols = entry.attempt, {}
    if entry.kind == "compilation_metrics":
        into.metrics = content
    elif entry.kind == "dynamo_start":
        into.stack = into.stack or frames_of(content.get("stack"))
        into.framework_stack = into.framework_stack or entry.stack
    elif entry.kind == "recompile_reasons":
        into.reasons = reasons_of(entry.payload)
    elif entry.kind == "create_symbol":
        into.symbols[str(content.get("source", ""))] = str(content.get("val", ""))
        into.framework_stack = frames_of(content.get("stack"))
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
        content = entry.metadata if isinstance(entry.metadata, dict) else {}
        if isinstance(content.get("co_filename"), str):
            yield content["co_filename"]
        for stack in (entry.stack, content.get("stack"), content.get("user_stack")):
            yield from (str(frame["filename"]) for frame in frames_of(stack) if "filename" in frame)
