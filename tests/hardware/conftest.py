"""Machines as folders: what `/proc` and `/sys` hold on some of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Machine = Callable[[dict[str, str]], Path]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Write files below a folder that stands in for `/`."""

    def build(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return build
