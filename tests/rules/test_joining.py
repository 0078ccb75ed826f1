"""Records name files and lines in short; the source knows them in full."""

from __future__ import annotations

from pyrometer.place import Place
from pyrometer.rules.joining import function_at, lines_within, module_of
from pyrometer.source.module import Module

TEXT = """\
import torch


@torch.no_grad()
def outer(x):
    def inner(y):
        return y * 2

    class Local:
        async def method(self):
            return x

    return inner(x)


z = 1
"""


def module(path: str, text: str = TEXT) -> Module:
    return Module.parse(path, text)


def test_the_longest_agreement_of_paths_wins() -> None:
    modules = [module("train.py"), module("src/a/model.py"), module("src/b/model.py")]
    assert module_of("b/model.py", modules) is modules[2]
    assert module_of("/home/me/src/a/model.py", modules) is modules[1]
    assert module_of("somewhere/else/train.py", modules) is modules[0]


def test_files_that_only_share_an_end_are_not_the_same() -> None:
    modules = [module("src/a/model.py")]
    assert module_of("c/model.py", modules) is None
    assert module_of("my_model.py", modules) is None
    assert module_of(None, modules) is None
    assert module_of("model.py", []) is None


def test_a_trace_names_the_first_line_of_a_function_which_may_be_its_decorator() -> None:
    modules = [module("train.py")]
    for line in (4, 5, 13):
        function = function_at(Place(file="train.py", line=line), modules)
        assert function is not None
        assert function[1].name == "outer"


def test_the_innermost_function_is_meant() -> None:
    modules = [module("train.py")]
    names = {}
    for line in (6, 7, 10, 11):
        function = function_at(Place(file="train.py", line=line), modules)
        assert function is not None
        names[line] = function[1].name
    assert names == {6: "inner", 7: "inner", 10: "method", 11: "method"}


def test_outside_of_functions_there_is_none() -> None:
    modules = [module("train.py")]
    assert function_at(Place(file="train.py", line=16), modules) is None
    assert function_at(Place(file="train.py"), modules) is None
    assert function_at(Place(file="other.py", line=5), modules) is None


def test_the_lines_of_a_function_reach_from_its_decorator_to_its_end() -> None:
    modules = [module("train.py")]
    assert list(lines_within(Place(file="train.py", line=5), modules)) == list(range(4, 14))
    assert list(lines_within(Place(file="train.py", line=16), modules)) == []
