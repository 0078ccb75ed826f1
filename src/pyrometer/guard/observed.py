"""What the process of a side has counted; a process that only times knows nothing of it."""

from __future__ import annotations

from typing import Annotated

from pyrometer.bench.matrix.cell import OutputError
from pyrometer.compiler.report import CompileReport
from pyrometer.memory.profile import MemoryProfile
from pyrometer.record import Record, doc


class OperatorCount(Record, frozen=True, kw_only=True):
    """Calls of one operator from one line, per step."""

    op: str
    file: Annotated[str | None, doc("relative to the tree; null outside of it, as in a backward pass")] = None
    line: int | None = None
    calls: int


class Counted(Record, frozen=True, kw_only=True):
    """What is the same in every run of one side, and what explains it."""

    kind: Annotated[str, doc("Inference, Training or Call")]
    counters: Annotated[dict[str, float], doc("by the names of metrics")]
    operators: list[OperatorCount] = []
    compiled: CompileReport | None = None
    memory: MemoryProfile | None = None
    error: Annotated[OutputError | None, doc("of the outputs against the base's, on the head only")] = None
    notes: list[str] = []

    @property
    def inductor(self) -> bool:
        """Whether Inductor wrote code for it; other backends ask nothing of the machine."""
        return self.compiled is not None and bool(self.compiled.code)
