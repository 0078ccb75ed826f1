"""The compiled module, where it could be built: loops that Python is slow at.

Whatever it does is also done in Python, with the same result; so it may be missing. It is built by an install where a C
compiler is, or by `make native`; `PYROMETER_NATIVE=0` does without.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from types import ModuleType

INTERFACE = 4
"""To be raised with any change of what the functions of the module take or give: one built from other sources is not used."""


@cache
def _module() -> tuple[ModuleType | None, str]:
    try:
        module = importlib.import_module("pyrometer._native")
    except ImportError:
        return None, "not built: no C compiler was at hand on install; pip install again where one is"
    if getattr(module, "INTERFACE", None) != INTERFACE:
        return None, "built from other sources than these; pip install again, or run make native"
    return module, ""


def compiled() -> ModuleType | None:
    """The module, or None where there is none or `PYROMETER_NATIVE` is 0."""
    return None if os.environ.get("PYROMETER_NATIVE") == "0" else _module()[0]


def why_missing() -> str:
    """Why there is none; empty where there is one.

    >>> bool(why_missing()) == (compiled() is None)
    True
    """
    return "PYROMETER_NATIVE is 0" if os.environ.get("PYROMETER_NATIVE") == "0" else _module()[1]
