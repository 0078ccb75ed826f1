"""What grows and may yet be let go by the program's own text is not called a leak."""

from __future__ import annotations

import ast
import textwrap

import pytest
import torch

from pyrometer.memory.leaks.answer import UNDECIDED_GROWTH
from pyrometer.memory.leaks.ends import ends_in
from pyrometer.memory.leaks.watch import watch_memory

LOCAL = """
def main():
    rows = []
    for x in data:
        rows.append(x)
        LINE
"""
ENDING = [
    "if full: rows.clear()",
    "if full: rows.pop(0)",
    "if full: rows = []",
    "rows = rows[-10:]",
    "rows[:] = rows[-10:]",
    "del rows[:-10]",
    "if len(rows) >= 100: flush(rows)",
    "while 100 < len(rows): flush(rows)",
    "heapq.heappushpop(rows, x)",
]
ENDLESS = [
    "print(len(rows))",
    "if len(rows) % 10 == 0: print(x)",
    "heapq.heappush(rows, x)",
    "others.clear()",
    "rows.extend([x])",
]


def lines(code: str, name: str = "rows", **settings: object) -> list[int]:
    return ends_in(ast.parse(textwrap.dedent(code)), name, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("line", ENDING)
def test_a_list_that_is_let_go_may_have_an_end(line: str) -> None:
    assert lines(LOCAL.replace("LINE", line), function="main") == [6]


@pytest.mark.parametrize("line", ENDLESS)
def test_a_list_that_nothing_takes_from_has_none(line: str) -> None:
    assert lines(LOCAL.replace("LINE", line), function="main") == []


def test_a_store_by_index_replaces_in_a_list_and_adds_to_a_dictionary() -> None:
    code = LOCAL.replace("LINE", "rows[i % 100] = x")
    assert lines(code, function="main") == [6]
    assert lines(code, function="main", by_key=True) == []


def test_taking_one_key_out_cleans_up_after_one_step_only() -> None:
    code = LOCAL.replace("LINE", "rows.pop(x)\n        del rows[x]")
    assert lines(code, function="main", by_key=True) == []
    assert lines(code, function="main") == [6, 7]


def test_a_variable_of_the_same_name_elsewhere_says_nothing() -> None:
    other = "def other(rows):\n    rows.clear()\n"
    assert lines(LOCAL.replace("LINE", "pass") + other, function="main") == []
    assert lines("rows = []\ndef f():\n    rows = []\n    rows.clear()") == []
    assert lines("rows = []\ndef f():\n    global rows\n    rows = []\n    rows.clear()") == [5]


def test_a_function_that_a_loop_calls_begins_anew() -> None:
    code = """
    def epoch():
        rows = []
        for x in data:
            rows.append(x)
    """
    assert lines(code, function="epoch") == []
    again = code + "\n    for _ in range(9):\n        epoch()\n"
    assert lines(again, function="epoch") == [3]


def test_an_attribute_that_a_method_replaces_may_have_an_end() -> None:
    code = """
    class Log:
        def __init__(self):
            self.rows = []
    """
    assert lines(code) == []
    assert lines(code + "    def reset(self):\n            self.rows = []\n".replace("    ", "    ")) == [6]


def test_a_buffer_that_is_not_full_yet_is_not_decided() -> None:
    buffer: list[torch.Tensor] = []

    def step() -> None:
        row = torch.ones(256) + 1
        if len(buffer) < 1000:
            buffer.append(row)
        else:
            buffer[0] = row

    report = watch_memory(step, steps=30)
    assert (report.verdict, report.unbounded, report.bytes_per_step) == (UNDECIDED_GROWTH, False, 1024.0)
    assert report.sites[0].kind == "open"
    assert "test_ends.py" in report.sentence


def test_a_view_that_pins_its_storage_is_to_be_cloned() -> None:
    kept: list[torch.Tensor] = []

    def step() -> None:
        rows = torch.ones(256, 64) + 1
        kept.append(rows[:4])

    report = watch_memory(step, steps=30)
    assert report.verdict == "leak"
    assert ".clone()" in (report.sites[0].fix or "")
    assert "needs 1.00 KiB of each 64.0 KiB" in report.sentence


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("class Other:\n    def step(self, x):\n        self.rows[0] = x", []),
        ("class Buffer(Rows):\n    def step(self, x):\n        self.rows.clear()", [3]),
        ("class Trainer:\n    def step(self, x):\n        self.buffer.rows.clear()", [3]),
        ("def trim(buffer):\n    buffer.rows.clear()", [2]),
    ],
)
def test_in_another_file_self_is_the_owner_only_where_a_class_derives_from_it(
    code: str, found: list[int]
) -> None:
    assert lines(code, heirs_of="Rows") == found
