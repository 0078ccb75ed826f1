"""What became of every frame: graphs, none, or given up.

A frame is a function that Dynamo looked at, or what is left of it behind a break. Each of its compilations ends with
compilation metrics that name the failure, if there was one. A compilation may be begun anew; graphs of its last attempt
count, and only if it did not fail after that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.frame_code import NO_CODE, FrameCode, frame_codes
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.recompile_limit import RecompileLimit, read_limit
from pyrometer.compiler.stack import frames_of, line_of, logged_stack
from pyrometer.place import Place

KINDS = ("dynamo_start", "dynamo_output_graph", "compilation_metrics", "dynamo_error")

_ASSIGNED = re.compile(r'^\s+\w+(?::\s*"[^"]*")? = (?P<value>[^;\n]+)', re.MULTILINE)
_NO_CALL = re.compile(r"^[\w.]+$")


@dataclass(frozen=True)
class Compiled:
    """One compilation of one frame."""

    compile_id: CompileId
    code: FrameCode = NO_CODE
    called_from: tuple[Place, ...] = ()
    """The stack above it, the outermost first."""
    graphs: tuple[str, ...] = ()
    """Those of the last attempt, as printed."""
    failure: str | None = None
    """Name of the exception."""
    failure_text: str = ""
    failure_place: Place | None = None
    error_text: str = ""
    """The exception as it was printed, with the user's stack at the end."""
    suppresses_errors: bool | None = None
    declined: bool = False
    """The backend asked to leave the frame alone."""

    @property
    def limit(self) -> RecompileLimit | None:
        """The limit that it failed at, where there were too many compilations of its frame."""
        return read_limit(self.failure, self.failure_text)

    @property
    def num_graphs(self) -> int:
        """Graphs that are in use."""
        return 0 if self.failure is not None or self.declined else len(self.graphs)

    @property
    def num_ops(self) -> int:
        """Of all of its graphs, in use or not."""
        return sum(num_calls(graph) for graph in self.graphs)


class FrameCounts(NamedTuple):
    """How many graphs came out of how many frames, and how many frames were given up."""

    graphs: int
    frames: int
    skipped: int


class Functions:
    """Functions that were frames, told apart by their first lines: `forward` may stand in a file many times."""

    def __init__(self, compiled: Iterable[Compiled]) -> None:
        self._starts: dict[tuple[str, str], set[int]] = defaultdict(set)
        for made in compiled:
            if made.code.resumes_at is None:
                self._starts[made.code.file, made.code.name].add(made.code.line)

    def of(self, file: str, function: str, line: int) -> tuple[str, str, int]:
        """The function that a line is in, by file, name and first line; 0 for one that was no frame as a whole."""
        starts = self._starts.get((file, function), ())
        return file, function, max((start for start in starts if start <= line), default=0)

    def of_frame(self, compiled: Compiled) -> tuple[str, str, int]:
        """The function that a frame is, or is the rest of."""
        return self.of(compiled.code.file, compiled.code.function, compiled.code.line)


def compiled_frames(log: CompileLog) -> dict[CompileId, Compiled]:
    """Every compilation of a frame, in the order in which they began; those of backward graphs alone are none."""
    entries: dict[CompileId, list[LogEntry]] = defaultdict(list)
    for entry in log.of(*KINDS):
        if entry.compile_id is not None and entry.compile_id.frame is not None:
            entries[entry.compile_id].append(entry)
    codes = frame_codes(log)
    return {
        compile_id: _compiled(compile_id, codes[compile_id], log_entries)
        for compile_id, log_entries in entries.items()
    }


def num_calls(code: str) -> int:
    r"""How many nodes of a printed graph compute; inputs and attributes do not.

    >>> num_calls("    def forward(self, L_x_: 'f32[3]'):\n        l_x_ = L_x_\n        y = l_x_.sin();  l_x_ = None\n")
    1
    """
    values = (match["value"].strip() for match in _ASSIGNED.finditer(code))
    return sum(not _NO_CALL.match(value) for value in values)


def _compiled(compile_id: CompileId, code: FrameCode, entries: Sequence[LogEntry]) -> Compiled:
    metrics = _fields(entries, "compilation_metrics")
    stack = frames_of(_fields(entries, "dynamo_start").get("stack"))
    last = max(entry.attempt for entry in entries)
    graphs = [entry for entry in entries if entry.kind == "dynamo_output_graph" and entry.attempt == last]
    failure = metrics.get("fail_type")
    return Compiled(
        compile_id=compile_id,
        code=code,
        called_from=logged_stack(stack[:-1]),
        graphs=tuple(entry.payload for entry in graphs),
        failure=None if failure is None else str(failure),
        failure_text=str(metrics.get("fail_reason") or ""),
        failure_place=_failure_place(metrics),
        error_text="".join(entry.payload for entry in entries if entry.kind == "dynamo_error"),
        suppresses_errors=metrics.get("config_suppress_errors"),
        # Metrics of a compilation that nothing came of name no operators.
        declined=failure is None and bool(graphs) and metrics.get("graph_op_count", 0) is None,
    )


def _fields(entries: Iterable[LogEntry], kind: str) -> dict[str, Any]:
    """Of the last entry of a kind; empty when there is none."""
    found = [entry.fields for entry in entries if entry.kind == kind and entry.fields]
    return found[-1] if found else {}


def _failure_place(metrics: Mapping[str, Any]) -> Place | None:
    file = metrics.get("fail_user_frame_filename")
    return Place(file=str(file), line=line_of(metrics.get("fail_user_frame_lineno"))) if file else None
