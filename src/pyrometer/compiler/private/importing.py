"""Importing the compiler before it is needed: it takes a second or more, and belongs to no step."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
import warnings

from pyrometer.quantity import Seconds

MODULES = ("torch._dynamo", "torch._inductor.compile_fx")


def import_compiler() -> Seconds | None:
    """Import Dynamo and Inductor.

    Returns:
        How long that took; `None` when both were there already.
    """
    if all(name in sys.modules for name in MODULES):
        return None
    started_s = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch deprecates parts of itself that it still imports
        for name in MODULES:
            if importlib.util.find_spec(name) is not None:
                importlib.import_module(name)
    return time.perf_counter() - started_s
