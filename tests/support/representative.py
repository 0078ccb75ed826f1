"""Long lists of cases: a few stand for all in `make test`, and `make test-exhaustive` runs the others too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest


def standing_for_all(cases: Mapping[str, Any], *chosen: str) -> list[Any]:
    """Parameters of all cases, with their names; those that were not chosen are marked as exhaustive."""
    unknown = set(chosen) - set(cases)
    assert not unknown, f"no case is called {unknown}"
    return [
        pytest.param(case, id=name, marks=[] if name in chosen else [pytest.mark.exhaustive])
        for name, case in cases.items()
    ]
