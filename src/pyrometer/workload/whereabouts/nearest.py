"""From a running frame to the user's code."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType

from pyrometer.source.ownership import owner_of
from pyrometer.workload.whereabouts.lines import CodePoint

_OBSERVING = f"{Path(__file__).parent}/"
_SESSIONS = f"{Path(__file__).parents[1]}/"


def nearest_point(frame: FrameType | None = None) -> CodePoint | None:
    """The innermost running line that is neither torch's, nor Python's own, nor Pyrometer's; `None` without any.

    The search ends where Pyrometer runs the step: code that only asked for it has computed nothing.

    >>> nearest_point().code.co_name
    '<module>'
    """
    at: FrameType | None = frame if frame is not None else sys._getframe(1)  # noqa: SLF001 - the documented way
    while at is not None and not _runs_the_step(at.f_code.co_filename):
        if is_users(at.f_code):
            return CodePoint(at.f_code, at.f_lasti)
        at = at.f_back
    return None


def is_users(code: CodeType) -> bool:
    """Whether code belongs to the user, or to a library of models: to anybody but torch, Python and Pyrometer."""
    return owner_of(code.co_filename, code.co_name) in {"user", "library"}


def _runs_the_step(file: str) -> bool:
    return file.startswith(_SESSIONS) and not file.startswith(_OBSERVING)
