"""Benchmarks as code: what a file of them holds, and what is said of one that cannot be used."""

from __future__ import annotations

import importlib
import sys
import textwrap

import pytest

from pyrometer.errors import InputError, UsageError
from pyrometer.guard.discovery import Itself, benchmark_files, discover
from pyrometer.guard.parameters import cells_of, label_of, parametrize, split
from pyrometer.guard.selecting import selector
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference


@pytest.fixture
def found(tmp_path, monkeypatch):
    """What is discovered in a file of benchmarks; nothing of it stays imported."""
    known = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def find(text, name="perf_some.py", **options):
        (tmp_path / name).write_text(textwrap.dedent(text))
        return discover(tmp_path, [name], options.get("targets", []), options.get("matrix", []))

    yield find
    for name in set(sys.modules) - known:
        if name.startswith("perf_"):
            del sys.modules[name]


def test_what_a_function_returns_is_measured_else_it_is_itself(found):
    discovered = found("""
        import torch
        def perf_pair(): return torch.nn.Linear(4, 2), torch.zeros(3, 4)
        def perf_callable(): return sorted
        def perf_itself(): sum(range(10))
        def helper(): raise AssertionError
        perf_constant = 3
    """)
    works = {each.name.partition("::")[2]: each.make() for each in discovered.benchmarks}
    assert list(works) == ["perf_pair", "perf_callable", "perf_itself"]
    assert isinstance(works["perf_pair"], Inference)
    assert works["perf_callable"].function is sorted
    assert isinstance(works["perf_itself"], Call)
    assert isinstance(works["perf_itself"].function, Itself)


def test_parameters_are_passed_and_the_others_are_settings_of_the_workload(found):
    discovered = found("""
        import torch, pyrometer as pm
        @pm.parametrize(width=[4, 8], dtype=["float32", torch.bfloat16])
        def perf_linear(width): return torch.nn.Linear(width, 2), torch.zeros(3, width)
    """)
    assert [each.name for each in discovered.benchmarks] == [
        f"perf_some.py::perf_linear[width={width},dtype={dtype}]"
        for width in (4, 8)
        for dtype in ("float32", "bfloat16")
    ]
    last = discovered.benchmarks[-1].make()
    assert last.model.in_features == 8
    assert last.config.dtype == "bfloat16"


def test_marks_of_pytest_are_read_too():
    @pytest.mark.parametrize("batch", [1, pytest.param(8, id="big")])
    @pytest.mark.parametrize(("a", "b"), [(1, 2), (3, 4)])
    def perf_x(a, b, batch): ...

    assert cells_of(perf_x)[0] == {"a": 1, "b": 2, "batch": 1}
    assert len(cells_of(perf_x)) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def perf_x(batch): pass", r"nothing says what batch is; give it values: @pm.parametrize\(batch="),
        ("import nothing_of_this_name", "No module named 'nothing_of_this_name'"),
        ("def perf_x(:", "SyntaxError|invalid syntax"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_file_that_cannot_be_used_says_so_and_leaves_the_others(found, text, said):
    discovered = found(text)
    assert discovered.benchmarks == []
    [(file, reason)] = discovered.failures
    assert file == "perf_some.py"
    with pytest.raises(InputError, match=said):
        raise InputError(reason)


def test_targets_are_varied_over_their_matrix(found, tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\ndef work(): return torch.nn.Linear(4, 2), torch.zeros(3, 4)\n"
    )
    for matrix in ("batch=1,2", "batch_size=1,2"):
        discovered = found("", targets=["model.py:work"], matrix=[matrix])
        names = [each.name for each in discovered.benchmarks]
        assert names == ["model.py:work[batch=1]", "model.py:work[batch=2]"]
        assert discovered.benchmarks[1].make().config.batch_size == 2


@pytest.mark.parametrize("name", ["batch", "batch_size"])
def test_the_rows_of_a_batch_have_one_spelling_and_two_names(name):
    @parametrize(**{name: [3]})
    def perf_of_a_workload(): ...

    @parametrize(batch_size=[3])
    def perf_of_its_own(batch_size): ...

    [cell] = cells_of(perf_of_a_workload)
    assert (label_of(cell), split(perf_of_a_workload, cell)) == ("batch=3", ({}, {"batch_size": 3}))
    [cell] = cells_of(perf_of_its_own)
    assert (label_of(cell), split(perf_of_its_own, cell)) == ("batch_size=3", ({"batch_size": 3}, {}))


def test_a_parameter_has_values_once():
    with pytest.raises(InputError, match="batch has no values"):
        parametrize(batch=[])

    @parametrize(batch=[1])
    @parametrize(batch=[2])
    def perf_twice(batch): ...

    with pytest.raises(InputError, match="batch has values twice"):
        cells_of(perf_twice)


def test_only_files_of_benchmarks_are_read():
    assert benchmark_files(["a/perf_x.py", "perf_x.txt", "my_perf_x.py"]) == ["a/perf_x.py"]


def test_a_selection_that_cannot_be_read_is_refused():
    with pytest.raises(UsageError, match="-k: 'and or' cannot be read"):
        selector("and or")
    assert selector(None)("anything")


def test_a_tree_that_is_pyrometer_itself_is_benchmarked_by_its_own_package(tmp_path):
    import pyrometer
    from pyrometer.guard.serving import OwnPackage

    (tmp_path / "pyrometer").mkdir()
    (tmp_path / "pyrometer" / "__init__.py").write_text("theirs = True\n")
    own, ours = OwnPackage([str(tmp_path)]), set(sys.modules)
    sys.path.insert(0, str(tmp_path))
    try:
        for _ in range(2):
            with own.current():
                assert importlib.import_module("pyrometer").theirs
    finally:
        sys.path.remove(str(tmp_path))
    assert sys.modules["pyrometer"] is pyrometer
    assert set(sys.modules) == ours
