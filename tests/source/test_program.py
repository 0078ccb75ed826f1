"""The files that a program is made of, found by their text and never imported."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pyrometer.source import program as sources
from pyrometer.source.program import program_modules
from pyrometer.workload.target import entries_of, parse_target

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """`write("a/b.py", text)`: a file below an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def put(name: str, text: str = "") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return put


def names(*entries: Path) -> list[str]:
    return [module.path for module in program_modules(entries)[0]]


def test_imports_are_followed_by_their_text_without_running_them(write: Write) -> None:
    entry = write("train.py", "import torch\nimport model\nraise SystemExit('was run')")
    write("model.py", "import layers.block\nraise SystemExit('was run')")
    write("layers/__init__.py", "")
    write("layers/block.py", "raise SystemExit('was run')")
    write("unrelated.py", "")
    program_modules([entry])  # codecs are loaded when first used
    before = set(sys.modules)
    assert names(entry) == ["train.py", "model.py", "layers/block.py"]
    assert set(sys.modules) == before


def test_relative_imports_and_names_that_are_modules_are_followed(write: Write) -> None:
    entry = write("app/main.py", "from . import model\nfrom .nets.cnn import Net\nfrom app import data")
    for name in ("app/__init__.py", "app/model.py", "app/nets/__init__.py", "app/data.py"):
        write(name)
    write("app/nets/cnn.py", "from ..data import load")
    assert set(names(entry)) >= {"app/main.py", "app/model.py", "app/nets/cnn.py", "app/data.py"}


def test_imports_within_functions_count_and_circles_end(write: Write) -> None:
    entry = write("a.py", "def go():\n    import b")
    write("b.py", "import a")
    assert names(entry) == ["a.py", "b.py"]


def test_what_cannot_be_read_is_noted_and_the_rest_stands(write: Write) -> None:
    entry = write("train.py", "import broken, whole, binary")
    write("broken.py", "def (:\n")
    write("whole.py")
    write("binary.py").write_bytes(b"\xff\xfe\x00")
    modules, notes = program_modules([entry])
    assert {module.path for module in modules} == {"train.py", "whole.py"}
    assert len(notes) == 2
    assert any("broken.py" in note for note in notes)
    assert all(note.startswith("source of ") for note in notes)


def test_a_byte_order_mark_is_no_fault(write: Write) -> None:
    entry = write("train.py")
    entry.write_bytes(b"\xef\xbb\xbfx = 1\n")
    assert program_modules([entry])[1] == []


def test_libraries_and_files_of_other_kinds_are_not_read(write: Write) -> None:
    assert names(Path(torch.__file__), write("notebook.ipynb", "{}"), write("missing/x.txt")) == []


def test_a_repository_is_cut_at_the_nearest_files(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_FILES", 3)
    entry = write("m0.py", "import m1")
    for i in range(1, 6):
        write(f"m{i}.py", f"import m{i + 1}")
    assert names(entry) == ["m0.py", "m1.py", "m2.py"]


def test_entries_of_scripts_files_and_modules(write: Write) -> None:
    script = write("train.py")
    inner = write("pack/work.py", "raise SystemExit('was run')")
    write("pack/__init__.py")
    assert [path.resolve() for path in entries_of(parse_target(str(script)))] == [script]
    assert [path.resolve() for path in entries_of(parse_target("train.py:workload"))] == [script]
    assert [path.resolve() for path in entries_of(parse_target("pack.work:make"))] == [inner]
    assert entries_of(parse_target("no_such_module_anywhere:make")) == ()
