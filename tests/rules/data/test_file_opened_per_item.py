"""PYR313: the same file opened for every item."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HEAD = """
import h5py
import numpy as np
import pandas as pd
import zipfile
from torch.utils.data import Dataset

PATH = "data.h5"

"""

FIRES = {
    "with": """
class Data(Dataset):
    def __getitem__(self, index):
        with h5py.File(self.path, "r") as file:  # <-
            return file["x"][index]
""",
    "a constant": """
class Data(Dataset[int]):
    def __getitem__(self, i):
        return h5py.File(PATH)["x"][i]  # <-
""",
    "a whole table": """
class Data(Dataset):
    def __getitem__(self, index):
        return pd.read_csv("labels.csv").iloc[index]  # <-
""",
}

SILENT = {
    "opened on first use": """
class Data(Dataset):
    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return self.file["x"][index]
""",
    "a file for each item": """
class Data(Dataset):
    def __getitem__(self, index):
        with h5py.File(self.paths[index], "r") as file:
            return file["x"][:]
""",
    "through a local name": """
class Data(Dataset):
    def __getitem__(self, index):
        path, row = self.rows[index]
        with h5py.File(path, "r") as file:
            return file["x"][row]
""",
    "when it is made": """
class Data(Dataset):
    def __init__(self, path):
        self.length = len(h5py.File(path)["x"])

    def __getitem__(self, index):
        return index
""",
    "no dataset": """
class Table:
    def __getitem__(self, name):
        return h5py.File(self.path)[name][:]
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_opening(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR313", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR313", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR313")


def test_the_replacement_opens_the_file_once(
    run: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(5):
            archive.writestr(str(i), bytes([i] * 3))
    opened = []
    own = zipfile.ZipFile

    class Counted(own):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            opened.append(1)
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    counts, values = [], []
    for heading in ("Example", "Use instead"):
        opened.clear()
        data = run("PYR313", heading)["Archive"](str(path), [str(i) for i in range(5)])
        values.append([data[i].tolist() for i in range(5)])
        counts.append(len(opened))
        if heading == "Use instead":
            data.archive.close()
    assert counts == [5, 1]
    assert values[0] == values[1]
