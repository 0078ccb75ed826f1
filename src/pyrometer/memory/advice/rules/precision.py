"""Two bytes per number instead of four."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from pyrometer.advice import Advice
from pyrometer.memory.advice.case import Case
from pyrometer.memory.category import Category
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.workload.inference import Inference
from pyrometer.workload.state import module_tensors
from pyrometer.workload.training import Training

BF16 = "bfloat16"

_FLOATING: tuple[Category, ...] = (
    "parameters",
    "gradients",
    "optimizer",
    "activations",
    "inputs",
    "temporaries",
)


def autocast(case: Case) -> Iterator[Advice]:
    """Activations in bfloat16, weights as they are."""
    work = case.training
    if work is None or work.config.autocast is not None or not _is_float32(work):
        return
    saving = case.tried(
        "autocast to bfloat16", ("activations", "temporaries"), lambda: predict_memory(work, amp=BF16)
    )
    if saving is None:
        return
    yield Advice(
        slug="bf16-autocast",
        fix_class="tolerance",
        lever="autocast_bf16",
        title="run the forward pass under autocast to bfloat16",
        why=f"{case.where}, where {case.holds('activations', 'temporaries')}, in float32",
        sketch=f'with torch.autocast("{_device(case)}", dtype=torch.bfloat16):\n'
        "    loss = loss_fn(model(inputs), targets)\n"
        "loss.backward()",
        effect="weights, gradients and the optimizer stay float32; results of matrix products are rounded to three decimal digits, "
        f"so the loss differs by about 1 % and needs watching for a few hundred steps{_scratch(case)}",
        gain=saving.gain,
    )


def low_precision_parameters(case: Case) -> Iterator[Advice]:
    """Weights, gradients and state in bfloat16."""
    work = case.work
    if not isinstance(work, (Training, Inference)) or work.config.dtype is not None or not _is_float32(work):
        return
    saving = case.tried(
        "bfloat16 parameters",
        _FLOATING,
        lambda: predict_memory(work, dtype=BF16),
    )
    if saving is None:
        return
    training = isinstance(work, Training)
    yield Advice(
        slug="bf16-parameters",
        fix_class="semantic",
        title="keep parameters" + (", gradients and optimizer state" if training else "") + " in bfloat16",
        why=f"{case.where}, where {case.holds(*_FLOATING)}, in float32",
        sketch="model.to(torch.bfloat16)  # before the optimizer is made; floating-point inputs too: x.to(torch.bfloat16)",
        effect=(
            "changes smaller than 1/256 of a weight are rounded away, so training may stall late; keep float32 master weights "
            "or round stochastically where it does"
            if training
            else "results are rounded to about three decimal digits; compare outputs on data that you know"
        )
        + _scratch(case),
        gain=saving.gain,
    )


def _is_float32(work: Training | Inference) -> bool:
    """Whether most of the parameters are float32."""
    modules: list[nn.Module] = work.parts.modules if isinstance(work, Training) else [work.model]
    sizes = [
        (tensor.dtype, tensor.numel())
        for module in modules
        for tensor in module_tensors(module, parameters=True)
        if not nn.parameter.is_lazy(tensor)
    ]
    total = sum(count for _, count in sizes)
    return total > 0 and sum(count for kind, count in sizes if kind == torch.float32) > total / 2


def _scratch(case: Case) -> str:
    """What is not predicted."""
    if _device(case) != "cpu":
        return ""
    return "; products in bfloat16 on the CPU may take scratch memory for a copy of a weight, which is not counted"


def _device(case: Case) -> str:
    return torch.device(case.profile.device).type
