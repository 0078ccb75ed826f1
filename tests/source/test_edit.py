"""Edits by position."""

from __future__ import annotations

import ast

import pytest

from pyrometer.source.edit import apply_edits, delete_statement, edit, replace
from pyrometer.source.module import Module


def test_nodes_are_replaced_where_they_stand():
    text = 'x = f("é", a)  # ü\r\ny = f(a)\r\n'
    module = Module.parse("a.py", text)
    calls = list(module.nodes(ast.Call))
    edits = [replace(module, call.args[-1], "(b,\n c)") for call in calls]
    assert apply_edits(text, edits) == 'x = f("é", (b,\r\n c))  # ü\r\ny = f((b,\r\n c))\r\n'


def test_a_byte_order_mark_stays():
    text = "\ufeffx = 1\n"
    module = Module.parse("a.py", text)
    assert apply_edits(text, [replace(module, module.tree.body[0].value, "2")]) == "\ufeffx = 2\n"


DELETED = [
    ("a\nb\nc\n", 1, "a\nc\n"),
    ("a\nb", 1, "a\n"),
    ("a; b; c\n", 1, "a; c\n"),
    ("a; b\n", 1, "a\n"),
    ("a; b\n", 0, "b\n"),
    ("if x:\n    a\n", 1, "if x:\n    pass\n"),
    ("if x:\n    a\n    b\n", 1, "if x:\n    b\n"),
    ("if x: a\nelse:\n    b\n", 2, "if x: a\nelse:\n    pass\n"),
    ("f(\n  1,\n)\nb\n", 0, "b\n"),
    ("@d\ndef f():\n    pass\nb\n", 0, "b\n"),
    ("a  # why\nb\n", 0, "b\n"),
    ("match x:\n    case 1:\n        a\n", 1, "match x:\n    case 1:\n        pass\n"),
    ("try:\n    a\nexcept E:\n    b\n", 2, "try:\n    a\nexcept E:\n    pass\n"),
]


@pytest.mark.parametrize(("text", "which", "left"), DELETED)
def test_statements_are_deleted_with_their_line(text, which, left):
    module = Module.parse("a.py", text)
    statement = module.nodes(ast.stmt)[which]
    changed = apply_edits(text, [delete_statement(module, statement)])
    assert changed == left
    ast.parse(changed)


def test_edits_that_overlap_are_refused():
    with pytest.raises(ValueError, match="overlap at line 1, column 2"):
        apply_edits("abcdef\n", [edit(1, 0, 1, 3, "x"), edit(1, 2, 1, 4, "y")])


def test_the_same_edit_twice_is_one():
    assert apply_edits("abc\n", [edit(1, 0, 1, 1, "x")] * 2) == "xbc\n"


def test_neighbouring_edits_are_no_overlap():
    assert apply_edits("abc\n", [edit(1, 1, 1, 2, "y"), edit(1, 0, 1, 1, "x")]) == "xyc\n"


def test_edits_outside_of_the_text_are_refused():
    with pytest.raises(ValueError, match="line 9"):
        apply_edits("abc\n", [edit(9, 0, 9, 1, "x")])


def test_a_deleted_statement_and_its_neighbour_go_together():
    text = "a\nb\nc\n"
    module = Module.parse("a.py", text)
    edits = [delete_statement(module, statement) for statement in module.tree.body[:2]]
    assert apply_edits(text, edits) == "c\n"
