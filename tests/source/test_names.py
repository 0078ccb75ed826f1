"""What names mean, constants, assignments and uses."""

from __future__ import annotations

import ast

import pytest

from pyrometer.source.module import MISSING


def last_call(module):
    return list(module.nodes(ast.Call))[-1]


RESOLVED = [
    ("import torch\ntorch.relu(x)", "torch.relu"),
    ("import torch.nn.functional as F\nF.relu(x)", "torch.nn.functional.relu"),
    ("import torch.nn.functional\ntorch.nn.functional.relu(x)", "torch.nn.functional.relu"),
    ("from torch import nn\nnn.Linear(1, 2)", "torch.nn.Linear"),
    ("from torch.cuda import synchronize as wait\nwait()", "torch.cuda.synchronize"),
    ("def f():\n    import time as t\n    return t.time()", "time.time"),
    ("print(1)", "print"),
    ("import time\nnow = time.perf_counter\nnow()", "time.perf_counter"),
    ("try:\n    import torch\nexcept ImportError:\n    torch = None\ntorch.rand(1)", "torch.rand"),
    ("from . import functional as F\nF.relu(x)", ".functional.relu"),
    ("from ..modules.module import Module\nModule()", "..modules.module.Module"),
    ("import torch\nclass A:\n    def f(self):\n        return torch.rand(1)", "torch.rand"),
    ("import torch\n[torch.rand(1) for _ in y]", "torch.rand"),
    ("import torch\nclass A:\n    torch = 1\n    def f(self):\n        return torch.rand(1)", "torch.rand"),
]


@pytest.mark.parametrize(("text", "name"), RESOLVED)
def test_names_are_followed_through_imports(parse, text, name):
    module = parse(text)
    assert module.name_of(last_call(module).func) == name


LOCAL = [
    "import torch\ndef f(torch):\n    torch.rand(1)",
    "import torch\ndef f():\n    torch = g\n    torch.rand(1)",
    "from time import time\ntime = other()\ntime()",
    "def print(x): ...\nprint(1)",
    "unknown(1)",
    "import torch\n[torch.rand(1) for torch in y]",
    "import torch\nf = lambda torch: torch.rand(1)",
    "import torch\nclass A:\n    torch = b\n    torch.rand(1)",
    "import torch\nfor torch in y:\n    torch.rand(1)",
    "import torch\nif (torch := g): torch.rand(1)",
    "self.torch.rand(1)",
]


@pytest.mark.parametrize("text", LOCAL)
def test_local_names_hide_imports(parse, text):
    module = parse(text)
    assert module.name_of(last_call(module).func) is None


def test_the_first_iterable_of_a_comprehension_is_looked_up_outside(parse):
    module = parse("import torch\n[torch for torch in torch.rand(3)]")
    assert module.name_of(last_call(module).func) == "torch.rand"


def test_global_and_nonlocal_bind_where_they_say(parse):
    module = parse(
        """
        import time
        def f():
            global time
            time = 1
        def g():
            x = 1
            def h():
                nonlocal x
                x = 2
            return x
        time.time()
        """
    )
    assert module.name_of(last_call(module).func) is None
    x = next(name for name in module.nodes(ast.Name) if name.id == "x" and isinstance(name.ctx, ast.Load))
    assert [module.literal(value) for value in module.assignments("x", x)] == [1, 2]


def test_calls_are_found_by_any_alias(parse):
    module = parse(
        """
        import torch, time
        from torch.cuda import synchronize as wait
        from time import time as now
        clock = time.time
        torch.cuda.synchronize()
        wait()
        now()
        clock()
        self.synchronize()
        def f(now): now()
        """
    )
    assert [call.lineno for call in module.calls("torch.cuda.synchronize")] == [6, 7]
    assert [call.lineno for call in module.calls("time.time", "torch.cuda.synchronize")] == [6, 7, 8, 9]
    assert [call.lineno for call in module.method_calls("synchronize")] == [6, 10]


LITERALS = [
    ("f(3)", 3),
    ("f(None)", None),
    ("f(-2.5)", -2.5),
    ("f(not True)", False),
    ("f((1, 'a'))", (1, "a")),
    ("f([1, [2]])", [1, [2]]),
    ("f({'a': -1})", {"a": -1}),
    ("f({1, 2})", {1, 2}),
    ("f(1024 * 16)", 16384),
    ("N = 8\nf(N)", 8),
    ("N = 8\nM = N * 2\ndef g():\n    f(M)", 16),
    ("f(2 ** 3)", 8),
]


@pytest.mark.parametrize(("text", "value"), LITERALS)
def test_constants_are_known(parse, text, value):
    module = parse(text)
    literal = module.literal(module.nodes(ast.Call)[0].args[0])
    assert (literal, type(literal)) == (value, type(value))


UNCERTAIN = [
    "f(x)",
    "f(g())",
    "f([1, x])",
    "f({**x})",
    "f({[]: 1})",
    "f({[1]})",
    "N = 8\nN = 9\nf(N)",
    "N = 8\nN += 1\nf(N)",
    "for N in y:\n    f(N)",
    "def g(N=3):\n    f(N)",
    "f(2 ** 10 ** 9)",
    "f(1 / 0)",
    "N = N\nf(N)",
    "A = B\nB = A\nf(A)",
    "f(f'{x}')",
    "f(-'a')",
    "N, M = 1, 2\nf(N)",
]


@pytest.mark.parametrize("text", UNCERTAIN)
def test_what_is_not_certain_is_missing(parse, text):
    module = parse(text)
    assert module.literal(module.nodes(ast.Call)[0].args[0]) is MISSING


def test_assignments_and_uses_of_a_name_are_those_of_its_scope(parse):
    module = parse(
        """
        x = 0
        def f(a):
            x = a
            x += 1
            y, (x, z) = 2, (3, 4)
            if (x := 5):
                with open(a) as x:
                    pass
            def g():
                return x
            return x
        print(x)
        """
    )
    inner = list(module.nodes(ast.Return))[-1]
    assert [module.source(value) for value in module.assignments("x", inner)] == [
        "a",
        "1",
        "3",
        "5",
        "open(a)",
    ]
    assert [use.lineno for use in module.uses("x", inner)] == [11, 12]
    assert [module.source(value) for value in module.assignments("x", module.tree.body[-1])] == ["0"]
    assert [use.lineno for use in module.uses("x", module.tree.body[-1])] == [13]
    assert module.assignments("unheard", inner) == ()
    assert [use.lineno for use in module.uses("open", inner)] == [8]


def test_match_patterns_handlers_and_stars_bind_names(parse):
    module = parse(
        """
        import a, b, c, d
        def f(v):
            match v:
                case {"k": a, **b}:
                    pass
                case [c, *rest]:
                    pass
            try:
                pass
            except ValueError as d:
                pass
            a.x(); b.x(); c.x(); d.x(); rest.x()
        """
    )
    assert [module.name_of(call.func) for call in module.method_calls("x")] == [None] * 5
