"""The code that a frame runs: which function each compilation is of."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.stack import frames_of, line_of, own_name, resumed_line


class FrameCode(NamedTuple):
    """A function, or the rest of one behind a break; all empty where nothing tells."""

    name: str = ""
    """As Dynamo calls it: of the rest behind a break torch_dynamo_resume_in_…"""
    file: str = ""
    line: int = 0
    """The one that it begins at."""

    @property
    def function(self) -> str:
        """The user's function."""
        return own_name(self.name)

    @property
    def resumes_at(self) -> int | None:
        """The line behind whose break it goes on; `None` for whole functions."""
        return resumed_line(self.name)


NO_CODE = FrameCode()


def frame_codes(log: CompileLog) -> dict[CompileId, FrameCode]:
    """What each compilation is of: as its metrics say, else the innermost of the stack with which Dynamo begins.

    Refused at the recompile limit, a compilation does not say; earlier ones of its frame do.

    Source: `dynamo_start` and compilation metrics of torch's structured trace.
    """
    codes: dict[CompileId, FrameCode] = {}
    of_frame: dict[CompileId, FrameCode] = {}
    for entry in log.of("dynamo_start", "compilation_metrics"):
        code = _told(entry)
        if entry.compile_id is not None and code.name:
            codes[entry.compile_id] = code
            of_frame.setdefault(entry.compile_id.of_frame, code)
    return {
        compile_id: codes.get(compile_id) or of_frame.get(compile_id.of_frame) or NO_CODE
        for compile_id in log.compile_ids()
    }


def _told(entry: LogEntry) -> FrameCode:
    if entry.kind == "dynamo_start":
        frame: dict[str, Any] = next(reversed(frames_of(entry.fields.get("stack"))), {})
        keys = ("name", "filename", "line")
    else:
        frame, keys = entry.fields, ("co_name", "co_filename", "co_firstlineno")
    name, file, line = (frame.get(key) for key in keys)
    return FrameCode(str(name or ""), str(file or ""), line_of(line))
