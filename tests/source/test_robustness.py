"""Every file is answered, whatever is in it."""

from __future__ import annotations

import ast
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from representative import standing_for_all

from pyrometer.errors import InputError
from pyrometer.source.module import Module


def answer_everything(module: Module) -> None:
    """Ask all that can be asked of every node."""
    for expression in module.nodes(ast.expr):
        module.value_of(expression)
        module.name_of(expression)
        module.literal(expression)
    for call in module.nodes(ast.Call):
        module.hot(call)
        module.is_rare(call)
        module.region(call)
        module.source(call)
    for statement in module.nodes(ast.stmt):
        module.loops_around(statement)
        module.function_of(statement)
    for name in module.nodes(ast.Name):
        module.assignments(name.id, name)


SYNTAX = """
import torch
from typing import TypeVar
async def f(a, /, b, *args, c=1, **kwargs):
    async with torch.no_grad() as g, h():
        async for x in y():
            await x.item()
    return [z async for z in w if z], {**a}, [*b], (yield)
def g():
    global u, v
    u = 1
    def h():
        nonlocal_ = u
        del nonlocal_
    try:
        yield from h()
    except (A, B) as e:
        raise C from e
    else:
        pass
    finally:
        print(f"{e!r:>{10}}")
    x[1:2, ..., None] = x.y = (a, *b) = 3
    lambda *a, **k: (a, k, (q := 1))
    match x:
        case [1, *rest] | {"a": 2, **more} if rest:
            pass
        case Point(x=0, y=0) as p:
            pass
        case None | True | -1 | 1 + 2j | "a" | a.b:
            pass
        case _:
            pass
    for i, in x:
        break
    else:
        continue_ = 1
    while (n := n - 1):
        continue
class K(A, metaclass=M, **kw):
    a: int
    b: "list[int]" = 3
    def __class_getitem__(cls, item): ...
    @property
    def p(self): return self.p
    @staticmethod
    def s(): ...
x = y = z = 1
print(*a, **b, sep="")
"""


def test_every_kind_of_syntax_is_answered():
    answer_everything(Module.parse("a.py", SYNTAX))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
def test_type_parameters_are_answered():
    answer_everything(
        Module.parse(
            "a.py", "def f[T: int, *Ts, **P](x: T) -> T: ...\nclass A[T]: ...\ntype X[T] = list[T]\n"
        )
    )


def test_exception_groups_are_answered():
    answer_everything(Module.parse("a.py", "try:\n    f()\nexcept* ValueError as e:\n    g(e)\n"))


DEEP = {
    "sum": "x = " + " + ".join(["y"] * 400),
    "not": "x = " + "not " * 800 + "y",
    "attributes": "x = y" + ".a" * 800,
    "calls": "x = y" + ".a()" * 400,
    "brackets": "x = " + "[" * 80 + "]" * 80,
    "elif": "if a:\n    b()\n" + "".join(f"elif c{i}:\n    b()\n" for i in range(300)),
    "blocks": "\n".join(" " * i + "if a:" for i in range(90)) + "\n" + " " * 90 + "b()",
    "lambdas": "x = " + "lambda: " * 80 + "f()",
    "comprehensions": "x = " + "[" * 60 + "f()" + " for a in b]" * 60,
    "functions": "\n".join(" " * i + f"def f{i}():" for i in range(80)) + "\n" + " " * 80 + "return f1()",
    "calls of calls": "".join(f"def f{i}(x):\n    return f{i + 1}(x).a()\n" for i in range(300)) + "f0(1)",
    "attributes of attributes": "\n".join(
        f"class A{i}:\n    def __init__(self):\n        self.x = A{i + 1}().x" for i in range(300)
    ),
    "aliases": "".join(f"a{i} = a{i + 1}\n" for i in range(400)) + "a0()",
    "bases": "".join(f"class A{i}(A{i + 1}): ...\n" for i in range(400)),
    "values": "x = 1\n" + "x = {'a': [x, (x, x)]}\n" * 200,
    "conditions": "for a in loader:\n    if " + "(a and " * 60 + "a" + ")" * 60 + ":\n        f()",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_programs_are_answered_or_refused(text):
    try:
        module = Module.parse("a.py", "import torch\n" + text)
    except InputError:
        return
    answer_everything(module)


names = st.sampled_from(["x", "y", "self", "torch", "loader", "model", "f", "loss"])
atoms = st.one_of(
    names,
    st.sampled_from(
        ["1", "None", "'a'", "torch.zeros(2)", "model(x)", "nn.Linear(1, 1)", "[]", "{}", "self.a"]
    ),
)
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: f"({two[0]} + {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}, {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} if x else {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"[{two[0]} for x, y in {two[1]}]"),
        inner.map(lambda one: f"({one}).detach()"),
        inner.map(lambda one: f"f({one})"),
        inner.map(lambda one: f"({one})[0]"),
        inner.map(lambda one: f"(lambda x: {one})"),
        inner.map(lambda one: f"(y := {one})"),
    ),
    max_leaves=6,
)


def indented(body: list[str]) -> str:
    return "\n".join("    " + line for statement in body for line in statement.splitlines())


def blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map(indented)
    heads = st.sampled_from(
        [
            "for x in loader:",
            "while x:",
            "if loss:",
            "with torch.no_grad():",
            "def f(x, model=None):",
            "class self(torch.nn.Module):",
            "for epoch in range(3):",
        ]
    )
    plain = st.tuples(heads, body).map("\n".join)
    return plain | body.map(lambda text: f"try:\n{text}\nexcept E as y:\n{text}")


statements = st.recursive(
    st.one_of(
        st.tuples(names, expressions).map(" = ".join),
        st.tuples(names, expressions).map(" += ".join),
        expressions,
        expressions.map(lambda text: f"x, (y, *loss) = {text}"),
        st.sampled_from(
            ["pass", "loss.backward()", "del x", "return x", "global y", "import torch", "x.append(y)"]
        ),
    ),
    blocks,
    max_leaves=8,
)


@given(st.lists(statements, min_size=1, max_size=6))
def test_generated_programs_are_answered(body):
    text = "\n".join(body)
    try:
        module = Module.parse("a.py", f"import torch\ndef around():\n{indented(body)}\n{text}\n")
    except InputError:
        return
    answer_everything(module)


@pytest.mark.slow
@pytest.mark.parametrize(
    "package",
    standing_for_all(
        {
            "stdlib": "",
            "torch": "site-packages/torch",
            "numpy": "site-packages/numpy",
            "scipy": "site-packages/scipy",
        },
    ),
)
def test_installed_files_are_answered(package):
    folder = (
        Path(sysconfig.get_path("stdlib"))
        if not package
        else Path(sysconfig.get_path("purelib"), package[14:])
    )
    files = sorted(path for path in folder.rglob("*.py") if package or "site-packages" not in path.parts)
    assert len(files) > 100
    for path in files[:: max(1, len(files) // 120)]:
        try:
            module = Module.parse(str(path), path.read_text(encoding="utf-8", errors="replace"))
        except InputError:
            continue
        answer_everything(module)
