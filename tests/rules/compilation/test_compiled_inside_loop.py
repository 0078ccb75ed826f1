from __future__ import annotations

import pytest
import torch

FIRING = [
    """
    import torch
    from torch.utils.data import DataLoader

    loader = DataLoader(dataset)
    for batch in loader:
        loss = torch.compile(model)(batch).mean()  # <-
        loss.backward()
    """,
    """
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            f = torch.compile(lambda x: self.layer(x))  # <-
            return f(x)
    """,
    """
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            @torch.compile  # <-
            def f(x):
                return self.layer(x)
            return f(x)
    """,
    """
    import torch

    for n in range(10):
        out = torch.jit.trace(model, example)(x)  # <-
    """,
    """
    import torch

    def serve(frames):
        for frame in frames:
            yield torch.compile(model, mode="reduce-overhead")(frame)  # <-
    """,
]

SILENT = [
    pytest.param(
        """
        import torch

        compiled = torch.compile(model)
        for batch in train_loader:
            compiled(batch).mean().backward()
        """,
        id="before the loop",
    ),
    pytest.param(
        """
        import torch

        for number, block in enumerate(model.blocks):
            model.blocks[number] = torch.compile(block)
        """,
        id="each block",
    ),
    pytest.param(
        """
        import torch

        for mode in ("default", "reduce-overhead"):
            compiled = torch.compile(model, mode=mode)
            measure(compiled)
        """,
        id="each mode",
    ),
    pytest.param(
        """
        import torch

        for _ in range(10):
            torch._dynamo.reset()
            measure(torch.compile(model))
        """,
        id="forgotten on purpose",
    ),
    pytest.param(
        """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                if self.compiled is None:
                    self.compiled = torch.compile(self.layer)
                return self.compiled(x)
        """,
        id="only once",
    ),
    pytest.param(
        """
        import functools
        import torch

        @functools.cache
        def compiled():
            return torch.compile(model)

        for batch in train_loader:
            compiled()(batch).mean().backward()
        """,
        id="kept by a cache",
    ),
    pytest.param(
        """
        import re

        for line in lines:
            re.compile("a").match(line)
        """,
        id="another compile",
    ),
]


@pytest.mark.parametrize("source", FIRING)
def test_compiling_in_each_step(lines, marked, source):
    assert lines("PYR411", source) == marked(source)


@pytest.mark.parametrize("source", SILENT)
def test_near_misses(lines, source):
    assert lines("PYR411", source) == []


def test_tests_and_benchmarks_of_compiling_may(lines):
    assert lines("PYR411", FIRING[3], "tests/test_trace.py") == []


INSIDE = """
import torch

compiled = []


def run():
    outputs = []
    for n in range(6):
        f = torch.compile(lambda x: x * 2, backend=lambda graph, inputs: compiled.append(1) or graph.forward)
        outputs.append(f(torch.full((3,), float(n))))
    return outputs, len(compiled)
"""


def test_compiled_once_before_the_loop_there_is_one_compilation(ran, lines):
    before = INSIDE.replace("        f = torch", "        pass\n    f = torch").replace(
        "    for n in range(6):\n        pass\n", ""
    )
    before = before.replace("        outputs.append(f", "    for n in range(6):\n        outputs.append(f")
    inside, fixed = ran(INSIDE), ran(before)

    assert lines("PYR411", inside.source) == [inside.line_of("torch.compile")]
    assert lines("PYR411", fixed.source) == []
    assert (inside.output[1], fixed.output[1]) == (6, 1)
    assert all(map(torch.equal, inside.output[0], fixed.output[0]))


def test_a_lambda_that_closes_over_the_step_is_advised_to_take_an_argument(matches):
    (match,) = matches("PYR411", FIRING[1])
    assert match.message.startswith("torch.compile of a new function")
    assert "has to become an argument" in match.advice
    assert match.hot is not None


def test_a_step_that_is_called_from_the_loop_is_told_so(matches):
    source = """
    import torch

    def step(model, x):
        return torch.compile(model)(x)

    def train(model, loader, optimizer):
        for x in loader:
            step(model, x).sum().backward()
            optimizer.step()
    """
    (match,) = matches("PYR411", source)
    assert "is called anew each time, called from the loop over loader" in match.message
