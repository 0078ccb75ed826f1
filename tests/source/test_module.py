"""Parsed files: nodes in order, places, parents, and files that cannot be read."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from pyrometer.errors import InputError
from pyrometer.source.module import Module


def test_files_that_are_not_python_are_refused_with_their_line():
    with pytest.raises(InputError, match=r"bad\.py:2: not valid Python"):
        Module.parse("bad.py", "x = 1\nif:\n")


@pytest.mark.parametrize("text", ["(" * 3000, "x" + ".a" * 200_000, "\0"])
def test_files_that_cannot_be_parsed_are_refused(text):
    with pytest.raises(InputError, match=r"odd\.py:"):
        Module.parse("odd.py", text)


def test_odd_escapes_give_no_warning():
    assert Module.parse("a.py", "x = '\\d'").tree.body


def test_nodes_come_in_the_order_of_the_text(parse):
    module = parse("@deco(a)\ndef f(x=b):\n    return c if d else e\nclass G(h): pass\n")
    assert [node.id for node in module.nodes(ast.Name)] == list("abcdeh") or [
        node.id for node in module.nodes(ast.Name)
    ] == ["deco", "a", "b", "c", "d", "e", "h"]
    assert [type(node).__name__ for node in module.nodes(ast.ClassDef, ast.FunctionDef)] == [
        "FunctionDef",
        "ClassDef",
    ]
    assert len(module.nodes(ast.stmt)) == 4
    assert len(module.nodes(ast.arguments)) == 1


def test_around_a_node(parse):
    module = parse(
        """
        class A:
            def f(self, x=default()):
                for a in b():
                    while c():
                        g = [d() for e in h()]
                    else:
                        i()
                @deco()
                def inner():
                    j()
                k = lambda: m()
        """
    )
    at = {call.func.id: call for call in module.nodes(ast.Call)}
    functions = {
        name: (function.name if (function := module.function_of(call)) else None) for name, call in at.items()
    }
    assert functions == dict.fromkeys("bcdhim", "f") | {"default": None, "deco": "f", "j": "inner"}
    loops = {name: [loop.lineno for loop in module.loops_around(call)] for name, call in at.items()}
    assert loops == {
        "default": [],
        "b": [],
        "c": [5, 4],
        "d": [5, 4],
        "h": [5, 4],
        "i": [4],
        "deco": [],
        "j": [],
        "m": [],
    }
    assert module.class_of(at["j"]).name == "A"
    assert module.statement_of(at["d"]).lineno == 6
    assert isinstance(module.parent(at["b"]), ast.For)
    assert [type(node).__name__ for node in module.ancestors(at["b"])] == [
        "For",
        "FunctionDef",
        "ClassDef",
        "Module",
    ]


def test_the_text_of_nodes_is_right_beside_letters_of_several_bytes(parse):
    module = parse("x = 'äöü', f('→', y)\nz = '''a\nb'''\n")
    assert [module.source(call) for call in module.nodes(ast.Call)] == ["f('→', y)"]
    assert module.span(next(iter(module.nodes(ast.Call))))[:2] == (1, 11)
    assert module.source(module.tree.body[1]) == "z = '''a\nb'''"


def test_form_feeds_and_odd_separators_end_no_line():
    module = Module.parse("a.py", "x = 1\x0c\ny = '\u2028'\r\nz = f(1)\rw = f(2)\n")
    assert [module.source(call) for call in module.nodes(ast.Call)] == ["f(1)", "f(2)"]


def test_keywords(parse):
    module = parse("f(1, a=2, **c)")
    call = module.nodes(ast.Call)[0]
    assert module.literal(module.keyword(call, "a")) == 2
    assert module.keyword(call, "b") is None


IMPORTS = [
    ("import torch", True),
    ("import torch.nn as nn", True),
    ("from torchvision import models", True),
    ("def f():\n    import lightning.pytorch", True),
    ("from transformers.models import x", True),
    ("import torchy", False),
    ("from .torch import x", False),
    ("import numpy", False),
]


@pytest.mark.parametrize(("text", "imports"), IMPORTS)
def test_imports_of_torch(parse, text, imports):
    assert parse(text).imports_torch is imports


def test_reading_source_imports_no_torch():
    code = (
        "import sys; from pyrometer.source.module import Module; from pyrometer.source import edit\n"
        "m = Module.parse('a.py', 'import torch\\nfor x in loader: print(x.item())')\n"
        "import ast; [(m.hot(c), m.is_rare(c), m.region(c), m.value_of(c)) for c in m.nodes(ast.Call)]\n"
        "assert not {'torch', 'numpy'} & set(sys.modules), set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
