"""Figures that the user gives: refused in one line where they cannot be meant."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from pyrometer.errors import InputError


def require_count(name: str, given: Any, least: int = 1) -> None:
    """Refuse what is no whole number, or too small.

    >>> require_count("samples", 1.5)
    Traceback (most recent call last):
    pyrometer.errors.InputError: samples: got 1.5; legal are whole numbers from 1 on
    """
    if isinstance(given, bool) or not isinstance(given, Integral) or given < least:
        raise InputError(f"{name}: got {given!r}; legal are whole numbers from {least} on")


def require_positive(name: str, given: Any, example: str) -> None:
    """Refuse what is no number, not above zero, or without an end.

    >>> require_positive("budget_s", "4", "30")
    Traceback (most recent call last):
    pyrometer.errors.InputError: budget_s: got '4'; it must be a number above 0, for example 30
    """
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < math.inf:
        raise InputError(f"{name}: got {given!r}; it must be a number above 0, for example {example}")
