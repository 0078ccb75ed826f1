"""Which names of a file can be measured, and whether it is a program, from its text."""

from __future__ import annotations

import ast

import pytest

from pyrometer.source.factories import factories, runs_something

WORK = "def work():\n    return net, batch\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (WORK, ["work"]),
        ("def work():\n    return pm.Inference(net, x)\n", ["work"]),
        ("def work(size=3, *, seed=0):\n    return net, size\n", ["work"]),
        ("def tool(size):\n    return net, size\n", []),
        ("def tool(*, size):\n    return net, size\n", []),
        ("def _work():\n    return net, batch\n", []),
        ("def main():\n    work()\n    return 0\n", []),
        ("def batches():\n    yield net, batch\n", []),
        ("def work():\n    def inner():\n        yield 1\n    return net, inner\n", ["work"]),
        ("async def work():\n    return net, batch\n", []),
        ("def build():\n    net = Net()\n    return net\n\n" + WORK, ["work", "build"]),
        ("class Net(nn.Module):\n    def example_inputs(self):\n        return (x,)\n", ["Net"]),
        ("class Net(nn.Module):\n    def __init__(self, n): ...\n    def example_inputs(self): ...\n", []),
        ("class Net(nn.Module):\n    def forward(self, x): ...\n", []),
        ("step = Training(net, optimizer, batches)\nnet = Net()\n", ["step"]),
    ],
)
def test_what_is_offered(text: str, names: list[str]) -> None:
    assert factories(ast.parse(text)) == names


@pytest.mark.parametrize(
    "statement",
    [
        "",
        '"""What it is."""',
        "torch.set_num_threads(1)\nwarnings.filterwarnings('ignore')",
        "SIZE: int = 3\nnet = Net().eval()",
        "try:\n    import apex\nexcept ImportError:\n    apex = None",
        "if TYPE_CHECKING:\n    from torch import Tensor",
        "if torch.cuda.is_available():\n    torch.cuda.set_device(0)",
    ],
)
def test_a_file_that_imports_defines_and_sets_is_no_program(statement: str) -> None:
    assert not runs_something(ast.parse(f"import torch\n{statement}\n{WORK}"))


@pytest.mark.parametrize(
    "statement",
    [
        "work()",
        "result = work()",
        "trainer.fit(net)",
        "fire.Fire(work)",
        "for batch in loader:\n    net(batch)",
        "while True:\n    break",
        "with torch.no_grad():\n    net(batch)",
        "if __name__ == '__main__':\n    work()",
        "try:\n    work()\nfinally:\n    pass",
        "assert net(batch) is not None",
    ],
)
def test_a_file_that_calls_its_own_or_loops_is_a_program(statement: str) -> None:
    assert runs_something(ast.parse(f"import torch\n{WORK}\n{statement}\n"))
