"""Every graph stands for itself, and goes when its owner goes."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from pyrometer.compiler.private import code_cache, marks
from pyrometer.errors import InputError
from pyrometer.tuning.shapes.isolated import CompileSettings, IsolatedGraph


def test_this_torch_has_what_is_used_of_it():
    assert marks.missing() == []


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
