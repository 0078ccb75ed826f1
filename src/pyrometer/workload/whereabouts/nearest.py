"""From a running frame to the user's code."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import torch

from pyrometer.workload.whereabouts.lines import CodePoint

_PACKAGE = Path(__file__).parents[2]
_OWN = tuple(f"{folder.resolve()}/" for folder in (Path(torch.__file__).parent, _PACKAGE))
_SESSIONS = f"{_PACKAGE / 'workload'}/"
_OBSERVING = f"{Path(__file__).parent}/"
_PYTHON = f"{Path(sysconfig.get_path('stdlib')).resolve()}/"
_INSTALLED = ("/site-packages/", "/dist-packages/")


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


@cache
def is_users(code: CodeType) -> bool:
    """Whether code belongs to the user, or to a library of models: to anybody but torch, Python and Pyrometer."""
    name = code.co_filename
    if name.startswith("<") and not name.startswith("<doctest"):
        return name.startswith(("<ipython", "<stdin", "<string"))
    path = str(Path(name).resolve())
    if path.startswith(_OWN):
        return False
    # Installed packages lie below the standard library, but models are often theirs.
    return not path.startswith(_PYTHON) or any(folder in path for folder in _INSTALLED)


def _runs_the_step(file: str) -> bool:
    return file.startswith(_SESSIONS) and not file.startswith(_OBSERVING)
