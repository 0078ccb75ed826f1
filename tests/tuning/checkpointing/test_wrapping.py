"""Putting modules behind checkpointing and taking them out again."""

from __future__ import annotations

import copy
import functools
import inspect

import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrometer.errors import InputError
from pyrometer.workload.changes.checkpointing import CheckpointedForward, checkpointed

POLICIES = ("full", "keep-matmul", "keep-attention")


def gradients(model, *args, seed=0, **kwargs):
    model.zero_grad(set_to_none=True)
    torch.manual_seed(seed)
    output = model(*args, **kwargs)
    output = output["out"] if isinstance(output, dict) else output
    output.square().mean().backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("policy", POLICIES)
def test_gradients_are_equal_to_the_bit_also_with_dropout(tools, policy):
    model, x = nn.Sequential(tools.Block(32, 4, 0.5), tools.Block(32, 2, 0.5)), torch.randn(2, 8, 32)
    plain = gradients(model, x)
    with checkpointed(model, {"0": policy, "1.mlp": policy}):
        again = gradients(model, x)
    assert all(torch.equal(again[name], plain[name]) for name in plain)


@pytest.mark.parametrize("policy", ["full", "keep-matmul"])
def test_running_statistics_are_updated_once(tools, policy):
    model, x = nn.Sequential(tools.Conv(3, 4), tools.Conv(4, 4)), torch.randn(2, 3, 8, 8)
    other = copy.deepcopy(model)
    plain = gradients(model, x)
    names = ["1.running_mean", "1.running_var", "1.num_batches_tracked"]
    with checkpointed(other, {"0": policy, "1": policy}, {"0": names, "1": names}):
        again = gradients(other, x)
    assert all(torch.equal(again[name], plain[name]) for name in plain)
    own = dict(other.named_buffers())
    assert all(torch.equal(buffer, own[name]) for name, buffer in model.named_buffers())


def test_the_model_is_as_before_when_removed(tools):
    model = nn.Sequential(tools.Block(32, 2))
    parts, keys = list(model.modules()), list(model.state_dict())
    seen = []
    handle = model[0].mlp.register_forward_hook(lambda *_: seen.append(1))
    applied = checkpointed(model, {"0.mlp": "full"})
    assert list(model.state_dict()) == keys
    assert list(model.modules()) == parts
    gradients(model, torch.randn(1, 4, 32))
    assert seen == [1]  # not again with the recomputation
    applied.remove()
    applied.remove()
    handle.remove()
    assert not any("forward" in vars(part) for part in model.modules())


def test_a_forward_that_was_laid_over_before_comes_back():
    block = nn.Linear(4, 4)
    own = block.forward
    vars(block)["forward"] = own
    with checkpointed(nn.Sequential(block), {"0": "full"}):
        assert isinstance(block.forward, CheckpointedForward)
    assert vars(block)["forward"] is own


def test_keywords_dicts_and_other_values_reach_the_module():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, batch, *, debug, context_fn=None, scale=1.0):
            return {"out": self.inner(batch["x"]) * debug * scale, "none": context_fn}

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.named = Named()

        def forward(self, x):
            return self.named({"x": x}, debug=x, scale=2.0)

    model, x = Outer(), torch.randn(3, 4)
    plain = gradients(model, x)
    with checkpointed(model, {"named": "full"}):
        again = gradients(model, x)
        assert list(inspect.signature(model.named.forward).parameters)[:2] == ["batch", "debug"]
    assert all(torch.equal(again[name], plain[name]) for name in plain)


def test_without_gradients_nothing_is_kept_or_computed_twice():
    calls = []

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            calls.append(1)
            return self.inner(x).tanh()

    model = nn.Sequential(Counting()).eval()
    with checkpointed(model, {"0": "full"}):
        with torch.no_grad():
            model(torch.randn(2, 4))
        assert len(calls) == 1
        model(torch.randn(2, 4)).sum().backward()
    assert len(calls) == 3


def test_autocast_is_the_same_in_the_recomputation(tools):
    model, x = nn.Sequential(tools.Block(32, 4)), torch.randn(2, 8, 32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain = gradients(model, x)
        with checkpointed(model, {"0": "full"}):
            again = gradients(model, x)
    assert all(torch.equal(again[name], plain[name]) for name in plain)


def test_a_copy_of_a_wrapped_model_computes_with_its_own_parameters():
    model = nn.Sequential(nn.Linear(4, 4))
    with checkpointed(model, {"0": "full"}):
        other = copy.deepcopy(model)
        nn.init.zeros_(other[0].weight)
        nn.init.zeros_(other[0].bias)
        assert not other(torch.ones(1, 4)).any()
        assert model(torch.ones(1, 4)).any()


def test_copies_are_as_if_nothing_was_laid_over():
    class Own(nn.Linear):
        def __getstate__(self):
            return {**vars(self), "mine": 1}

    model = nn.Sequential(nn.Linear(4, 4), Own(4, 4), nn.Linear(4, 4))
    vars(model[2])["forward"] = functools.partial(functional.relu)
    with checkpointed(model, {"0": "full", "1": "full", "2": "full"}):
        other = copy.deepcopy(model)
    assert "forward" not in vars(other[0]) | vars(other[1])
    assert other[1].mine == 1
    assert type(vars(other[2])["forward"]) is functools.partial
    assert not any("__getstate__" in vars(part) for net in (model, other) for part in net.modules())


def test_a_parametrized_module_is_copied_with_its_own_forward():
    # Its class copies every attribute as it is, and does not ask for the state.
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)))
    with checkpointed(model, {"0": "full"}):
        other = copy.deepcopy(model)
    assert not isinstance(other[0].forward, CheckpointedForward)
    with torch.no_grad():
        other[0].bias += 1
    x = torch.randn(2, 4)
    assert torch.allclose(other(x), model(x) + 1, atol=1e-6)


def test_unknown_modules_and_second_wrappings_are_refused():
    model = nn.Sequential(nn.Linear(4, 4))
    with pytest.raises(InputError, match="no such module in the model; its parts are 0"):
        checkpointed(model, {"blocks.3": "full"})
    with pytest.raises(InputError, match="no such module in the model; it has no parts"):
        checkpointed(nn.Linear(4, 4), {"blocks.3": "full"})
    with (
        checkpointed(model, {"0": "full"}),
        pytest.raises(InputError, match="checkpointed already"),
    ):
        checkpointed(model, {"0": "full"})


def test_paths_are_found_inside_of_data_parallel(tmp_path):
    from torch import distributed

    model, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4)), torch.randn(2, 4)
    plain = gradients(model, x)
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        parallel = nn.parallel.DistributedDataParallel(model)
        with checkpointed(parallel, {"0": "full", "1": "full"}):
            again = gradients(parallel, x)
    finally:
        distributed.destroy_process_group()
    assert all(torch.allclose(again[f"module.{name}"], plain[name]) for name in plain)


def test_an_argument_that_is_given_twice_stays_one_in_the_recomputation():
    # Multi-head attention projects three equal arguments at once, and three different ones apart.
    model, x = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), torch.randn(2, 4, 16)
    plain = gradients(model, x)
    with checkpointed(model, {"self_attn": "full", "linear1": "full"}):
        again = gradients(model, x)
    assert all(torch.equal(again[name], plain[name]) for name in plain)
