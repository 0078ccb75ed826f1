"""Long lists of cases: a few stand for all in `make test`, and `make test-exhaustive` runs the others too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def every(nth: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of cases that are much alike: one of so many stands for those that follow, which are marked as exhaustive."""
    return [
        case if number % nth == 0 else pytest.param(case, marks=[pytest.mark.exhaustive])
        for number, case in enumerate(cases)
    ]
