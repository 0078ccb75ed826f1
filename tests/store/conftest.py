from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pyrometer.store.run import Run, new_run
from pyrometer.store.store import Store

MakeRun = Callable[..., Run]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.fixture
def make_run() -> MakeRun:
    def make(
        *,
        kind: str = "bench",
        target: str = "model.py:work",
        age_s: float = 0,
        document: dict[str, Any] | None = None,
    ) -> Run:
        return new_run(
            kind,
            target,
            {"target": target} if document is None else document,
            environment={"fingerprint": "f00d", "os": "Linux"},
            command=["pyrometer", kind, target],
            commit=("0123456789abcdef", False),
            now=datetime.now(UTC) - timedelta(seconds=age_s),
        )

    return make
