"""Storages of results without data are those that the kernels of the CPU really return."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from pyrometer.memory.prediction.corrections import CPU_DTYPES, CPU_STORAGES, PAGE, CpuStorages
from pyrometer.memory.private.fake_tensors import fake_mode, without_data


class Storages(TorchDispatchMode):
    """Bytes of the results of the operators in the tables, and of losses, in order; and their dtypes."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.dtypes = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            known = str(func) in CPU_STORAGES or str(func) in CPU_DTYPES or "loss" in str(func)
            if isinstance(tensor, torch.Tensor) and known:
                self.found.append((str(func), tensor.untyped_storage().nbytes()))
                self.dtypes.append(tensor.dtype)
        return result


def backward(output):
    output.float().sum().backward()


def losses():
    names = {
        "mse_loss": torch.rand(16, 8),
        "smooth_l1_loss": torch.rand(16, 8),
        "binary_cross_entropy": torch.rand(16, 8),
        "soft_margin_loss": torch.rand(16, 8).sign(),
        "l1_loss": torch.rand(16, 8),
        "huber_loss": torch.rand(16, 8),
    }
    for name, target in names.items():
        for reduction in ("mean", "sum", "none"):
            yield (
                f"{name} {reduction}",
                lambda x, y, name=name, how=reduction: backward(
                    getattr(functional, name)(x.sigmoid(), y, reduction=how)
                ),
                (torch.randn(16, 8, requires_grad=True), target),
            )


def first(layer, x):
    """The first of what a new layer returns, and its backward pass."""
    output = layer(x)
    backward(output[0] if isinstance(output, tuple) else output)


def layers():
    for hidden, width, batch, steps in ((16, 16, 4, 8), (20, 12, 10, 6), (100, 50, 7, 33), (64, 64, 16, 16)):
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(steps, batch, width, dtype=dtype)
            yield (
                f"lstm {hidden} {dtype}",
                lambda x, w=width, h=hidden: first(nn.LSTM(w, h, dtype=x.dtype), x),
                (x,),
            )
    sequence = torch.randn(5, 4, 12)
    yield (
        "lstm stacked",
        lambda x: first(nn.LSTM(12, 20, 2, bidirectional=True, batch_first=True), x),
        (sequence,),
    )
    columns = torch.randn(2, 27, 36, requires_grad=True)
    yield "fold", lambda x: first(nn.Fold((8, 8), 3), x), (columns,)
    low = torch.randn(4, 6, 8, dtype=torch.bfloat16, requires_grad=True)
    yield "norm", lambda x: first(nn.LayerNorm(8), x), (low,)
    for dtype in (torch.float32, torch.bfloat16):
        image = torch.randn(2, 8, 6, 6, dtype=dtype, requires_grad=True)
        yield f"group norm {dtype}", lambda x: first(nn.GroupNorm(4, 8), x), (image,)
        yield f"group norm alike {dtype}", lambda x: first(nn.GroupNorm(4, 8, dtype=x.dtype), x), (image,)
    plain = torch.randn(2, 8, 6, 6, dtype=torch.bfloat16, requires_grad=True)
    yield "group norm without weights", lambda x: first(nn.GroupNorm(4, 8, affine=False), x), (plain,)


CASES = [*losses(), *layers()]


@pytest.mark.parametrize(("run", "inputs"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_result_has_the_storage_of_the_real_one(run, inputs):
    with Storages() as real:
        run(*inputs)
    mode = fake_mode()
    doubles = [without_data(mode, one) for one in inputs]
    with mode, CpuStorages(), Storages() as storages:
        run(*doubles)
    assert [name for name, _ in storages.found] == [name for name, _ in real.found]
    assert storages.dtypes == real.dtypes
    # In bfloat16 the LSTM's workspace is met within a page.
    low = inputs[0].dtype == torch.bfloat16 and any("mkldnn" in name for name, _ in storages.found)
    slack = PAGE if low else 0
    for (_, bytes_told), (_, bytes_real) in zip(storages.found, real.found, strict=True):
        assert abs(bytes_told - bytes_real) <= slack


def test_every_row_of_the_table_is_reached_by_a_case():
    reached = set()
    for _, run, inputs in CASES:
        with Storages() as real:
            run(*inputs)
        reached |= {name for name, _ in real.found}
    assert set(CPU_STORAGES) | set(CPU_DTYPES) <= reached
