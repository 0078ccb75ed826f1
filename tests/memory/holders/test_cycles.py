"""What only a reference cycle keeps: the cycle is drawn, and the collector's own word is the truth."""

from __future__ import annotations

import gc

import pytest
from representative import every


@pytest.fixture(autouse=True)
def collector_off():
    """Cycles wait until someone collects."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


COLLECTABLE = {
    "objects that know each other": (
        """
        import torch
        class Trainer:
            def __init__(self):
                self.callback = Callback(self)
                self.outputs = [watch(torch.randn(2))]
        class Callback:
            def __init__(self, trainer):
                self.trainer = trainer
        def main():
            Trainer()
        main()
        """,
        "Trainer.outputs[…]",
        {"Trainer.callback → Callback.trainer → Trainer", "Callback.trainer → Trainer.callback → Callback"},
    ),
    "a module whose hook knows its owner": (
        """
        import torch
        from torch import nn
        class Probe:
            def __init__(self):
                self.layer = nn.Linear(2, 2)
                self.layer.register_forward_hook(self.save)
                self.seen = []
            def save(self, module, inputs, output):
                self.seen.append(watch(output.detach()))
        def main():
            Probe().layer(torch.randn(1, 2))
        main()
        """,
        "Probe.seen[…]",
        None,
    ),
    "an exception in a variable of its own frame": (
        """
        import torch
        def infer():
            activations = watch(torch.randn(2))
            try:
                raise ValueError
            except ValueError as error:
                failure = error
        infer()
        """,
        "activations in infer()",
        {
            "ValueError.__traceback__ → failure in infer(), kept by ValueError.__traceback__ → ValueError",
            "ValueError.__traceback__ → failure in infer() → ValueError",
        },
    ),
    "a list that contains itself": (
        """
        import torch
        def main():
            rows = [watch(torch.randn(2))]
            rows.append(rows)
        main()
        """,
        "list of 2[…]",
        {"list of 2[…] → list of 2"},
    ),
}


@pytest.mark.parametrize("way", every(2, COLLECTABLE))
def test_a_reference_cycle_is_drawn_and_collecting_frees_it(program, way):
    source, path, cycles = COLLECTABLE[way]
    run = program(source)
    holder = run.holder()
    assert holder.root == "reference cycle"
    assert holder.path.startswith(path)
    if cycles is not None:
        assert holder.path.partition(", in the cycle ")[2] in cycles
    assert run.live_bytes() > 0
    gc.collect()
    assert run.live_bytes() == 0


SELF_HOLDING = {
    "saved-tensor hooks that return what they are given": """
        import torch
        def evaluate(w):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                watch(torch.exp(w))
        evaluate(torch.ones(4, requires_grad=True))
        """,
    "deeper in such a graph": """
        import torch
        def evaluate(w):
            hidden = watch(torch.sin(w))
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                torch.exp(hidden * hidden)
        evaluate(torch.ones(4, requires_grad=True))
        """,
}


@pytest.mark.parametrize("way", every(2, SELF_HOLDING))
def test_an_autograd_graph_that_holds_itself_is_told_apart_from_what_the_collector_frees(program, way):
    run = program(SELF_HOLDING[way])
    gc.collect()
    assert run.live_bytes() > 0
    holder = run.holder()
    assert (holder.root, holder.held_by_graph) == ("reference cycle", True)
    assert "ExpBackward0 (saved result) → Tensor" in holder.path


def test_a_context_that_keeps_its_own_output_is_found(program):
    run = program("""
        import torch
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.out = watch(x * 2)
                return ctx.out
            @staticmethod
            def backward(ctx, g):
                return g
        def main(w):
            Scale.apply(w)
        main(torch.ones(4, requires_grad=True))
        """)
    holder = run.holder()
    assert holder.root == "reference cycle"
    assert "ScaleBackward" in holder.path


def test_a_gradient_with_a_graph_names_the_parameter(program):
    run = program("""
        import warnings
        import torch
        w = torch.ones(4, requires_grad=True)
        def penalty():
            hidden = watch(torch.exp(w))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (hidden ** 2).sum().backward(create_graph=True)
        penalty()
        """)
    holder = run.holder()
    assert (holder.path, holder.held_by_graph) == ("w.grad", True)


def test_what_is_reachable_by_name_is_no_cycle_though_it_is_in_one(program):
    holder = program("""
        import torch
        class Node:
            def __init__(self):
                self.me = self
                self.value = watch(torch.randn(2))
        node = Node()
        """).holder()
    assert (holder.path, holder.root) == ("node.value", "instance attribute")
