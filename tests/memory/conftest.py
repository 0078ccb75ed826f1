"""Recording a step collects garbage several times, which need not look through all that was ever imported."""

from __future__ import annotations

import pytest

WHOLE_HEAP = {"holders", "leaks", "programs", "scripts", "memory"}
"""Folders whose tests ask who holds a tensor, or freeze by themselves."""


@pytest.fixture(scope="module", autouse=True)
def recording_is_quick(request):
    if request.path.parent.name not in WHOLE_HEAP:
        request.getfixturevalue("quick_collections")
