"""What records a step or looks for holders goes through all objects, but not those of all that was ever imported."""

from __future__ import annotations

import pytest

WHOLE_HEAP = {"programs", "scripts", "memory"}
"""Folders whose tests freeze by themselves."""


@pytest.fixture(scope="module", autouse=True)
def recording_is_quick(request):
    if request.path.parent.name not in WHOLE_HEAP:
        request.getfixturevalue("quick_collections")
