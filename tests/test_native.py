"""The compiled module gives what the Python beside it gives, refuses what does not fit, and may be missing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer import native
from pyrometer.trace.dependencies import replay
from pyrometer.trace.linking import nearest, tree

ROOT = Path(__file__).parents[1]
TIMES = st.integers(-(10**6), 10**6)


@pytest.fixture(scope="module")
def module() -> ModuleType:
    """The module that is built."""
    found = native.compiled()
    if found is None:
        pytest.skip(native.why_missing())
    return found


def both(monkeypatch: pytest.MonkeyPatch, function: Callable[[], Any]) -> tuple[Any, Any]:
    """What a function gives with the module, and without it."""
    with_module = function()
    monkeypatch.setenv("PYROMETER_NATIVE", "0")
    without = function()
    monkeypatch.delenv("PYROMETER_NATIVE")
    return with_module, without


@st.composite
def graphs(draw: st.DrawFn) -> SimpleNamespace:
    """Nodes that wait for one or two nodes before them."""
    count = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    before = (rng.random((2, count)) * np.maximum(np.arange(count), 1)).astype(np.int64)
    return SimpleNamespace(
        low=draw(TIMES),
        high=10**7,
        source=before,
        weight=rng.integers(-100, 1000, (2, count)),
        stay=rng.integers(0, 50, count),
    )


class Sized(SimpleNamespace):
    """A graph that knows its length."""

    def __len__(self) -> int:
        return len(self.stay)


@given(graph=graphs())
def test_walks_through_a_graph_are_the_same(module: ModuleType, graph: SimpleNamespace) -> None:
    with pytest.MonkeyPatch.context() as patch:
        ends = both(patch, lambda: replay._ends(graph.low, graph.source, graph.weight, graph.stay))
        latest = both(patch, lambda: replay._latest(Sized(**vars(graph)), graph.stay))
    assert ends[0].tolist() == ends[1].tolist()
    assert latest[0].tolist() == latest[1].tolist()


@given(
    spans=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9000), st.integers(0, 9000)), max_size=40),
    wanted=st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_call_trees_are_the_same(
    module: ModuleType, spans: list[tuple[int, int, int]], wanted: list[bool]
) -> None:
    rows = sorted(spans, key=lambda span: (span[1], -span[2]))
    track, start, dur = np.array(rows, np.int64).reshape(-1, 3).T
    with pytest.MonkeyPatch.context() as patch:
        fast, slow = both(patch, lambda: tree.nest(track, start, start + dur))
        assert fast.violations == slow.violations
        for name in ("parent", "depth", "self_ns"):
            assert getattr(fast, name).tolist() == getattr(slow, name).tolist()
        assert [column.tolist() for column in fast.pieces] == [column.tolist() for column in slow.pieces]
        mask = np.array(wanted[: len(rows)], bool)
        fast, slow = both(patch, lambda: nearest.nearest(slow.parent, mask))
    assert fast.tolist() == slow.tolist()


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("replay", (0, numbers(0, 1), numbers(0, 0), numbers(0, 0), numbers(0, 0), numbers(0, 0), numbers(0, 0))),
        ("replay", (0, numbers(0, 0), numbers(0, 0), numbers(0, -9), numbers(0, 0), numbers(0, 0), numbers(0, 0))),
        ("slack", (numbers(0, 5), numbers(0, 0), numbers(0, 0), numbers(0, 0), numbers(0, 0), numbers(0, 0))),
        ("replay", (0, numbers(0), numbers(0), numbers(0, 0), numbers(0), numbers(0), numbers(0))),
        ("nearest", (numbers(2), numbers(0), b"\0")),
        ("nearest", (numbers(1, 0), numbers(0, 0), b"\0\0")),
        ("nearest", (numbers(-1, 0), numbers(0, 0), b"\0")),
        ("nest", (0, *(numbers(0) for _ in range(7)))),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(module: ModuleType, name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError):
        getattr(module, name)(*arguments)


def test_switched_off_or_built_from_other_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYROMETER_NATIVE", "0")
    assert native.compiled() is None
    assert "PYROMETER_NATIVE" in native.why_missing()
    monkeypatch.delenv("PYROMETER_NATIVE")
    monkeypatch.setitem(sys.modules, "pyrometer._native", ModuleType("pyrometer._native"))
    native._module.cache_clear()
    try:
        assert native.compiled() is None
        assert "make native" in native.why_missing()
    finally:
        native._module.cache_clear()


def test_no_compiler_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "CC": str(tmp_path / "no-such-compiler")}
    done = subprocess.run(
        [sys.executable, ROOT / "native" / "build.py", tmp_path / "out.so"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "not compiled" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The build hook, without hatchling."""

    class Plugin:
        def __init__(self, root: Path, target_name: str) -> None:
            self.root, self.target_name = str(root), target_name
            self.app = SimpleNamespace(display_warning=print)

    interface: Any = ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = Plugin
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    found: Any = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_only_wheels_hold_the_module_and_the_tree_is_left_alone(hook: Any, tmp_path: Path) -> None:
    (tmp_path / "native").mkdir()
    compiler = "import sys, pathlib; pathlib.Path(sys.argv[1]).touch()"
    (tmp_path / "native" / "build.py").write_text(compiler, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    for target in ("sdist", "wheel"):
        data: dict[str, Any] = {"force_include": {}}
        plugin = hook.CompiledModule(tmp_path, target)
        plugin.initialize("standard", data)
        assert len(data["force_include"]) == (target == "wheel")
        assert all(Path(path).exists() for path in data["force_include"])
        assert ("tag" in data) == (target == "wheel")
        plugin.finalize("standard", data, "")
        assert not any(Path(path).exists() for path in data["force_include"])
        assert sorted(tmp_path.rglob("*")) == before


def test_without_a_compiler_the_wheel_is_for_any_platform(hook: Any, tmp_path: Path) -> None:
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "build.py").write_text("raise SystemExit(1)", encoding="utf-8")
    data: dict[str, Any] = {"force_include": {}}
    plugin = hook.CompiledModule(tmp_path, "wheel")
    plugin.initialize("standard", data)
    plugin.finalize("standard", data, "")
    assert data == {"force_include": {}}
