"""Every graph stands for itself, and goes when its owner goes."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

from pyrometer.compiler.private import code_cache, guard_filter
from pyrometer.errors import InputError
from pyrometer.tuning.shapes.isolated import CompileSettings, IsolatedGraph

ACTIVATION = torch.relu
"""Of the program under test, which binds it anew."""


def test_this_torch_has_what_is_used_of_it():
    assert guard_filter.missing() == []


def test_what_was_compiled_is_freed_with_its_owner():
    modules = []

    def backend(graph, _inputs):
        modules.append(weakref.ref(graph))
        return graph.forward

    graph = IsolatedGraph(lambda x: x * 2, CompileSettings(backend))
    assert graph.call(torch.ones(3)).tolist() == [2, 2, 2]
    assert modules[0]() is not None
    del graph
    gc.collect()
    assert modules[0]() is None


def test_graphs_of_one_function_do_not_see_one_another():
    compiled = []

    def backend(graph, inputs):
        compiled.append([tuple(x.shape) for x in inputs])
        return graph.forward

    def double(x):
        return x * 2

    graphs = [IsolatedGraph(double, CompileSettings(backend)) for _ in range(12)]
    for _ in range(2):
        for size, graph in enumerate(graphs, start=2):
            assert graph.call(torch.ones(size)).shape == (size,)
    assert compiled == [[(size,)] for size in range(2, 14)]


def test_graphs_that_a_call_compiles_are_counted():
    def breaking(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1

    output, num_graphs = IsolatedGraph(breaking, CompileSettings("eager")).call_counted(torch.ones(2))
    assert output.tolist() == [3, 3]
    assert num_graphs == 2


def test_forgetting_what_was_never_compiled_does_nothing():
    code_cache.forget((lambda: None).__code__)


def test_a_mode_and_options_exclude_each_other():
    with pytest.raises(InputError, match="mode and options"):
        CompileSettings(mode="max-autotune", options={"epilogue_fusion": True})


def test_torchs_own_names_are_not_guarded_but_all_else_is(monkeypatch):
    class Scaled(nn.Module):
        scale = 2.0

        def forward(self, x):
            return ACTIVATION(nn.functional.relu(x)) * self.scale

    seen = []

    def watched(entries):
        kept = guard_filter.of_the_program(entries)
        seen.extend((entry.name, keep) for entry, keep in zip(entries, kept, strict=True))
        return kept

    model = Scaled()
    graph = IsolatedGraph(model, CompileSettings("eager", options={"guard_filter_fn": watched}))
    usual = IsolatedGraph(model, CompileSettings("eager"))
    x = torch.tensor([-1.0, 1.0])
    assert graph.call(x).tolist() == usual.call(x).tolist() == [0.0, 2.0]
    left_out = [name for name, keep in seen if not keep]
    assert any(name.endswith("nn.functional.relu") for name in left_out)
    assert not any("ACTIVATION" in name or "function" in name.split(".")[0] for name in left_out)
    # What the program binds, and what the model holds, may change.
    model.scale = 3.0
    assert graph.call(x).tolist() == usual.call(x).tolist() == [0.0, 3.0]
    monkeypatch.setitem(globals(), "ACTIVATION", torch.neg)
    assert graph.call(x).tolist() == usual.call(x).tolist() == [0.0, -3.0]


def test_options_of_the_caller_stay_as_they_are():
    options = {"epilogue_fusion": True}
    settings = CompileSettings(options=options)
    assert settings.with_few_guards()["options"].keys() == {"epilogue_fusion", "guard_filter_fn"}
    assert options == {"epilogue_fusion": True}
    assert "options" not in CompileSettings(mode="max-autotune").with_few_guards()
