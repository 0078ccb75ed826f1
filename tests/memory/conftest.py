"""Garbage collections that do not look through all that was ever imported."""

from __future__ import annotations

import gc

import pytest

WHOLE_HEAP = {"holders", "leaks", "programs", "scripts", "memory"}
"""Folders whose tests ask who holds a tensor, which may be what was imported, or freeze by themselves."""


@pytest.fixture(scope="module", autouse=True)
def quick_collections(request):
    """Recording a step collects garbage several times, and takes two to three times as long with every import in sight."""
    if request.path.parent.name in WHOLE_HEAP:
        yield
        return
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
