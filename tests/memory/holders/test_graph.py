"""The size of a retained graph, against what saved-tensor hooks see and what freeing gives back."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from pyrometer.memory.holders.find import find_holders
from pyrometer.memory.holders.graph import retained_graph, retained_graphs
from pyrometer.memory.private import autograd_nodes


def linear():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 8))
    return model, lambda: functional.cross_entropy(model(torch.randn(32, 16)), torch.zeros(32).long())


def frozen():
    model, _ = linear()
    model[3].requires_grad_(False)
    return model, lambda: model(torch.randn(32, 16)).square().mean()


def convolutional():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 4)
    )
    return model, lambda: model(torch.randn(2, 3, 16, 16)).sum()


def attention():
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return model, lambda: model(torch.randn(2, 6, 16)).mean()


def recurrent():
    torch.manual_seed(0)
    model = nn.GRU(4, 8, 2)

    def forward():
        outputs, _ = model(torch.randn(5, 2, 4))
        return outputs.sum()

    return model, forward


def seen_by_hooks(model, forward):
    """Bytes that autograd asks to keep, each storage once, without the parameters'."""
    storages, kept = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        storages[storage._cdata] = storage.nbytes()
        kept.append(tensor.detach())
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()
    parameters = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    del result
    return sum(size for key, size in storages.items() if key not in parameters)


@pytest.mark.parametrize("build", [linear, frozen, convolutional, attention, recurrent])
def test_the_bytes_are_those_that_saved_tensor_hooks_see(build):
    model, forward = build()
    truth = seen_by_hooks(model, forward)
    graph = retained_graph(forward())
    assert truth > 0
    assert (graph.state, graph.bytes) == ("alive", truth)


@pytest.mark.parametrize("build", [linear, convolutional, attention])
def test_after_backward_only_a_shell_is_left(build):
    _, forward = build()
    result = forward()
    before = retained_graph(result)
    result.backward()
    after = retained_graph(result)
    assert (after.state, after.bytes, after.nodes) == ("shell", 0, before.nodes)
    assert after.freed_slots > 0
    assert before.freed_slots == 0


def test_without_a_graph_there_is_none():
    assert retained_graph(torch.ones(2)).state == "none"
    assert retained_graph(torch.ones(2, requires_grad=True)).state == "none"
    with torch.no_grad():
        assert retained_graph(torch.ones(2, requires_grad=True) * 2).state == "none"


def test_who_keeps_most_comes_first():
    w = torch.ones(1000, requires_grad=True)
    graph = retained_graph((torch.exp(w)[:10] * torch.randn(10)).sum())
    assert [(site.node, site.bytes, site.count) for site in graph.saved] == [
        ("ExpBackward0", 4000, 1),
        ("MulBackward0", 40, 1),
    ]
    assert graph.created_by == "SumBackward0"


def test_what_graphs_share_is_counted_once():
    w = torch.ones(100, requires_grad=True)
    hidden = torch.exp(w)
    first, second = hidden.sum() * 2, torch.sin(hidden).sum()
    alone = [retained_graph(first).bytes, retained_graph(second).bytes]
    together = [graph.bytes for graph in retained_graphs([first, second])]
    assert together[0] == alone[0]
    assert together[1] == alone[1] - 400


def test_a_function_of_the_users_own_keeps_what_it_saved_and_what_it_put_on_its_context():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x * 2)
            ctx.mask = torch.ones(50)
            ctx.more = {"list": [torch.ones(25)], "itself": ctx.mask}
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g

    graph = retained_graph(Scale.apply(torch.ones(10, requires_grad=True)))
    assert (graph.bytes, graph.saved[0].node) == (40 + 200 + 100, "ScaleBackward")


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpointed_part_keeps_its_inputs_and_is_not_run_again(use_reentrant):
    calls = []
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))

    def block(x):
        calls.append("forward")
        return model(x)

    x = torch.randn(8, 16, requires_grad=True)
    options = {"use_reentrant": use_reentrant, "preserve_rng_state": False}
    graph = retained_graph(checkpoint(block, x * 2, **options).sum())
    scalar = 8 if retained_graph(x * 2).bytes else 0  # the 2 of the product, in a tensor of its own
    assert calls == ["forward"]
    assert graph.bytes - scalar == x.nbytes
    assert graph.state == ("alive" if use_reentrant else "hooked")


def test_offloaded_tensors_are_counted_where_the_hooks_keep_them():
    x = torch.randn(100, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: {"copy": t.clone()}, lambda packed: packed["copy"]
    ):
        graph = retained_graph(torch.exp(x))
    assert (graph.state, graph.bytes, graph.hooked_slots) == ("hooked", 400, 1)


def test_the_users_hooks_are_not_called():
    calls = []

    def unpack(tensor):
        calls.append(tensor)
        return tensor

    x = torch.randn(4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), unpack):
        result = torch.exp(x)
    result.register_hook(calls.append)
    result.grad_fn.register_hook(lambda *_: calls.append(1))
    retained_graph(result)
    assert calls == []


def chain(number):
    x = torch.zeros(1, requires_grad=True)
    for _ in range(number):
        x = x * 1.0
    return x


def test_a_graph_within_reason_is_walked_to_its_end():
    graph = retained_graph(chain(5000))
    assert (graph.nodes, graph.is_cut) == (5001, False)


def test_a_graph_too_deep_to_be_looked_at_safely_is_cut_and_can_still_be_freed():
    deep = chain(100_000)
    graph = retained_graph(deep)
    assert graph.is_cut or graph.nodes == 100_001
    assert graph.nodes >= 8000
    del deep  # overflows the stack where all nodes were looked at


def test_depth_is_that_of_the_longest_chain():
    state, states = torch.zeros(1, requires_grad=True), []
    for _ in range(20_000):
        state = state * 1.0
        states.append(state)
    graph = retained_graph(torch.stack(states).sum())
    limit = autograd_nodes.max_depth()
    assert graph.is_cut is (limit is not None)
    assert graph.nodes == (20_003 if limit is None else 2 * limit)


@pytest.mark.slow
def test_holders_behind_a_deep_graph_are_looked_for_as_safely():
    first = torch.zeros(1, requires_grad=True)
    hidden = torch.exp(first)
    storage, total = hidden.untyped_storage(), hidden
    for _ in range(60_000):
        total = total + 1.0
    del hidden
    history = [total]
    find_holders([storage])
    del total
    history.clear()


@pytest.mark.slow
def test_a_long_list_of_tensors_that_are_chained_can_still_be_freed():
    total, totals = torch.zeros(1, requires_grad=True), []
    for _ in range(60_000):
        total = total + 1.0
        totals.append(total)
    hidden = torch.exp(torch.zeros(4, requires_grad=True))
    storage = weakref.ref(hidden.untyped_storage())
    totals.append(hidden.sum())
    del hidden
    assert find_holders([storage()])[0].path == "totals[…]"
    totals.clear()
    del total


def test_looking_does_not_keep_the_graph():
    x = torch.randn(4, requires_grad=True)
    result = torch.exp(x)
    storage = weakref.ref(result.untyped_storage())
    retained_graph(result.sum())
    del result
    assert storage() is None


def test_a_compiled_function_shows_what_it_keeps():
    def function(x):
        return torch.sin(torch.exp(x)).sum()

    compiled = torch.compile(function, backend="aot_eager")
    x = torch.randn(1000, requires_grad=True)
    try:
        graph = retained_graph(compiled(x))
    finally:
        torch._dynamo.reset()
    assert graph.state == "alive"
    assert graph.bytes >= 4000
    assert graph.created_by == "CompiledFunctionBackward"


def test_sparse_and_wrapped_tensors_are_survived():
    embedding = nn.Embedding(10, 4, sparse=True)
    loss = embedding(torch.tensor([1, 2])).sum()
    loss.backward()
    assert retained_graph(loss).state == "shell"
    weights = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), check_invariants=True)
    x = torch.randn(2, 3, requires_grad=True)
    assert retained_graph(torch.sparse.mm(weights, x)).bytes > 0
