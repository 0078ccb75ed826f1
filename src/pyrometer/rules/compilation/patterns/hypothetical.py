"""Whether a report speaks of the program as it is, or of what compiling it would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyrometer.compiler.report import CompileReport


def is_hypothetical(report: CompileReport) -> bool:
    """Whether the program itself compiles nothing, and was put behind `torch.compile` for this report only.

    What such a report shows is no fault of the program; it is what stands in the way of compiling it.
    """
    return not report.as_written
