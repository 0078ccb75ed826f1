"""Benchmarks that were renamed belong together by what they do; what could be two of them is not guessed."""

from __future__ import annotations

import importlib.util

from pyrometer.guard.gate import Missed
from pyrometer.guard.pairing import body_of, pair_up


def bodies(tmp_path, name, text):
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    own = {key: value for key, value in vars(module).items() if key.startswith("perf_")}
    return {key: body_of(function) for key, function in own.items()}


def test_a_body_is_known_whatever_its_name_docstring_comments_and_layout(tmp_path):
    text = """
def perf_a():
    x = sum(range(3))
    return x

def perf_b():
    '''The same.'''
    x = sum(
        range(3)
    )  # as above
    return x

def perf_c():
    x = sum(range(4))
    return x

def perf_d(n=3):
    x = sum(range(3))
    return x
"""
    found = bodies(tmp_path, "perf_bodies", text)
    assert found["perf_a"] == found["perf_b"]
    assert len(set(found.values())) == 3


def test_two_that_say_the_same_of_other_things_differ(tmp_path):
    text = "from {} import loads\ndef perf_x():\n    return loads\n"
    first, second = (
        bodies(tmp_path, f"perf_{name}", text.format(name))["perf_x"] for name in ("json", "pickle")
    )
    assert first != second


def test_what_a_file_of_benchmarks_defines_itself_moves_with_it(tmp_path):
    text = "SIZE = {}\ndef made(): return SIZE\ndef perf_x(): return made()\n"
    first, second = (bodies(tmp_path, f"perf_{size}", text.format(size))["perf_x"] for size in (1, 2))
    assert first == second


def test_a_function_without_source_has_no_body():
    made = {}
    exec("def perf_x(): pass", made)
    assert body_of(made["perf_x"]) is None
    assert body_of(lambda: None) is None


def test_of_one_name_and_of_one_body_belong_together():
    paired = pair_up({"f::a": "1", "f::b": "2"}, {"g::c": "2", "f::a": "9"}, [])
    assert paired.shared == ["g::c", "f::a"]
    assert paired.renamed == {"g::c": "f::b"}
    assert paired.missed == []


def test_what_could_be_two_is_not_guessed():
    for base, head in (
        ({"f::a": "1"}, {"f::b": "1", "f::c": "1"}),
        ({"f::a": "1", "f::b": "1"}, {"f::c": "1"}),
        ({"f::a": None}, {"f::b": None}),
    ):
        paired = pair_up(base, head, [])
        assert paired.shared == []
        assert paired.renamed == {}
        assert {one.benchmark for one in paired.missed} == {*base, *head}


def test_one_whose_body_changed_too_is_named_with_what_it_may_have_become():
    paired = pair_up({"f.py::perf_old_name": "1"}, {"f.py::perf_new_name": "2"}, [])
    assert paired.shared == []
    assert {one.side: one.reason for one in paired.missed}["head"].startswith(
        "gone from the head; was it renamed to f.py::perf_new_name?"
    )


def test_benchmarks_of_a_file_that_the_head_cannot_read_are_not_gone():
    broken = Missed(benchmark="f.py", side="head", reason="SyntaxError", failed=True)
    paired = pair_up({"f.py::perf_x": "1"}, {"g.py::perf_y": "1"}, [broken])
    assert [(one.benchmark, one.side) for one in paired.missed] == [("g.py::perf_y", "base")]
