"""From a running frame to the user's line: which code counts as the user's, and what its line says."""

from __future__ import annotations

import linecache
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import torch

import pyrometer
from pyrometer.memory.recording.allocation import CodePoint

_OWN = tuple(f"{Path(package).resolve().parent}/" for package in (torch.__file__, pyrometer.__file__))
_SESSIONS = str(Path(pyrometer.__file__).parent / "workload")
_PYTHON = f"{Path(sysconfig.get_path('stdlib')).resolve()}/"
_INSTALLED = ("/site-packages/", "/dist-packages/")


class Site(NamedTuple):
    """A line of code."""

    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        """As `file:line`."""
        return f"{self.file}:{self.line}"

    @property
    def source(self) -> str | None:
        """The line's text, where the file can be read."""
        return linecache.getline(self.file, self.line).strip() or None


def nearest_point(frame: FrameType | None = None) -> CodePoint | None:
    """The innermost running line that is neither torch's, nor Python's own, nor Pyrometer's; `None` without any.

    The search ends where Pyrometer runs the step: code that only asked for it has allocated nothing.

    >>> nearest_point().code.co_name
    '<module>'
    """
    found = frame if frame is not None else sys._getframe(1)  # noqa: SLF001 - the documented way to walk frames
    at: FrameType | None = found
    while at is not None and not at.f_code.co_filename.startswith(_SESSIONS):
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


@cache
def site_of(point: CodePoint) -> Site:
    """File, line and function of a place in code."""
    return Site(
        point.code.co_filename, _line_of(point), getattr(point.code, "co_qualname", point.code.co_name)
    )


def _line_of(point: CodePoint) -> int:
    line = point.code.co_firstlineno
    for first, last, number in point.code.co_lines():
        if number is not None and first <= point.instruction < last:
            line = number
    return line
