"""The rules of thumb that users know, with this program's own figures and how far off they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.prediction.lifetimes import Lifetimes, sizes_of
from pyrometer.memory.prediction.rehearsal import Rehearsal, rehearse
from pyrometer.memory.prediction.settings import Settings
from pyrometer.quantity import Bytes, format_bytes, significant
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload

STATES = {
    "SGD": 0,
    "Adam": 2,
    "AdamW": 2,
    "NAdam": 2,
    "RAdam": 2,
    "Adamax": 2,
    "Adadelta": 2,
    "RMSprop": 1,
    "Adagrad": 1,
    "Muon": 1,
}
"""Optimizer → tensors of state as large as the parameter; momentum of SGD and RMSprop is one more."""

MIXED_PRECISION = 2 + 2 + 4 + 4 + 4
"""Bytes per parameter: weights, gradients, master copy, two moments (Rajbhandari et al. 2020, ZeRO, section 3.1)."""


def formulas(work: Workload) -> dict[str, str]:
    """Bytes by the rules of thumb, each beside what this program needs by prediction.

    The rules: bytes per parameter of weights, gradients and optimizer state; 16 of mixed-precision AdamW; inference
    with neither gradients nor state; activations of a transformer by batch, length, width and layers (Korthikanti et
    al. 2022, section 4.1, without the attention scores, which fused attention does not keep).

    Raises:
        InputError: the workload cannot be rehearsed.
        NotPredictableError: the program needs the values of tensors.
        UserProgramError: a step raised.

    >>> import pyrometer as pm
    >>> work = pm.Inference(nn.Linear(256, 256), torch.randn(64, 256))
    >>> formulas(work)["weights"]
    '4 bytes per parameter in float32: 257 KiB by the rule, 257 KiB here (as the rule says)'
    """
    rehearsal = rehearse(work, Settings())
    most = _most(rehearsal)
    model = (
        work.parts.model
        if isinstance(work, Training)
        else work.model
        if isinstance(work, Inference)
        else None
    )
    assert model is not None  # anything else cannot be rehearsed
    parameters = list(model.parameters())
    found = {"weights": _weights(parameters, most)}
    if isinstance(work, Training):
        found |= _training(work, parameters, most)
        found["inference"] = _inference(work, rehearsal)
    shape = _transformer(model)
    if shape is not None and rehearsal.sequence and most["activations"]:
        found["activations"] = _activations(shape, rehearsal, most["activations"], work)
    return found


def _most(rehearsal: Rehearsal) -> dict[str, Bytes]:
    """The most that each category holds at any time."""
    lives, sizes = Lifetimes.of(rehearsal.log, cuda=rehearsal.emulates_cuda), sizes_of(rehearsal.log)
    return {name: int(lives.levels(sizes, name).max(initial=0)) for name in CATEGORIES}


def _weights(parameters: list[nn.Parameter], most: dict[str, Bytes]) -> str:
    dtypes = sorted({str(parameter.dtype).removeprefix("torch.") for parameter in parameters}) or ["no dtype"]
    rule = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    count = sum(parameter.numel() for parameter in parameters)
    each = significant(rule / count) if count else "0"
    return (
        f"{_plain(each)} bytes per parameter in {' and '.join(dtypes)}: {_against(rule, most['parameters'])}"
    )


def _training(work: Training, parameters: list[nn.Parameter], most: dict[str, Bytes]) -> dict[str, str]:
    optimizer = work.parts.optimizer
    trained = [tensor for tensor in work.parts.trained() if tensor.requires_grad]
    count = sum(tensor.numel() for tensor in trained)
    if not count:
        return {}
    kind, states = type(optimizer).__name__, _states(optimizer)
    here = most["parameters"] + most["gradients"] + most["optimizer"] + most["master"]
    training = {}
    if states is not None:
        weights = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
        own = sum(tensor.numel() * tensor.element_size() for tensor in trained)
        each = own / count
        sizes = " + ".join(_plain(significant(part)) for part in (each, each, each * states) if part)
        name = f"{kind} with momentum" if kind == "SGD" and states else kind
        total = _plain(significant(each * (2 + states)))
        training["training"] = (
            f"{total} bytes per parameter with {name} ({sizes}: weights, gradients{', state' if states else ''}): "
            f"{_against(int(weights + own * (1 + states)), here)}"
        )
    rule = MIXED_PRECISION * count
    # Of another optimizer the rule does not speak, so that it can be neither right nor wrong here.
    meant = kind in {"Adam", "AdamW"}
    beside = _against(rule, here) if meant else f"{format_bytes(rule)} by the rule"
    program = "this program" if meant else f"this program, with {kind}"
    training["mixed precision"] = (
        f"{MIXED_PRECISION} bytes per parameter with AdamW (2 + 2 + 4 + 4 + 4: weights, gradients, master copy, two "
        f"moments): {beside}; {program}: {significant(here / count)} bytes"
    )
    return training


def _states(optimizer: torch.optim.Optimizer) -> int | None:
    """Tensors of state per parameter; `None` for an optimizer without a rule."""
    kind = type(optimizer).__name__
    if kind not in STATES:
        return None
    options: dict[str, Any] = optimizer.param_groups[0]
    momentum = kind in {"SGD", "RMSprop"} and bool(options.get("momentum"))
    extra = bool(options.get("amsgrad")) + bool(options.get("centered"))
    return STATES[kind] + momentum + extra


def _inference(work: Training, rehearsal: Rehearsal) -> str:
    forward = rehearse(work, replace(Settings(), grad=False))
    most = _most(forward)
    peaks = [
        Lifetimes.of(one.log, cuda=one.emulates_cuda).peak(sizes_of(one.log)).nbytes
        for one in (forward, rehearsal)
    ]
    return (
        f"neither gradients nor optimizer state: {format_bytes(peaks[0])} for the forward pass alone "
        f"({format_bytes(most['parameters'])} of weights), against {format_bytes(peaks[1])} for training"
    )


@dataclass(frozen=True)
class _Transformer:
    """What the rule needs to know of a transformer."""

    width: int
    layers: int


def _transformer(model: nn.Module) -> _Transformer | None:
    """Width and layers of a model with repeated blocks that attend; `None` for any other."""
    inner = getattr(model, "_orig_mod", model)
    rows: dict[tuple[str, type], list[nn.Module]] = {}
    for path, module in inner.named_modules():
        if path and _attends(module):
            rows.setdefault((path.rpartition(".")[0], type(module)), []).append(module)
    outermost = next(iter(rows.values()), None)  # modules come before what is inside them
    if outermost is None:
        return None
    blocks = max(rows.values(), key=len) if len(outermost) == 1 else outermost
    width = _width(blocks[0])
    return _Transformer(width, len(blocks)) if width else None


def _attends(module: nn.Module) -> bool:
    """Whether something inside a module is attention, by its class or name."""
    return any(
        isinstance(part, nn.MultiheadAttention)
        or "attention" in type(part).__name__.lower()
        or "attn" in name.lower()
        for name, part in module.named_modules()
        if name
    )


def _width(block: nn.Module) -> int | None:
    """The width of the residual stream, by the norms of a block or by its attention."""
    for part in block.modules():
        shape = getattr(part, "normalized_shape", None)
        if shape:
            return int(shape[-1])
        if isinstance(part, nn.MultiheadAttention):
            return int(part.embed_dim)
    weights = [part.weight for part in block.modules() if isinstance(part, nn.Linear)]
    return int(weights[0].shape[1]) if weights else None


def _activations(shape: _Transformer, rehearsal: Rehearsal, here: Bytes, work: Workload) -> str:
    dtype = work.config.autocast or work.config.dtype
    size = 2 if dtype in {"bfloat16", "float16"} else 4
    tokens = (rehearsal.batch or 1) * (rehearsal.sequence or 1)
    each = 16 * size + 2
    numbers = here / (tokens * shape.width * shape.layers)
    return (
        f"{each} bytes · B·T·d·L = {tokens:,} tokens × {shape.width} × {shape.layers} layers: "
        f"{_against(each * tokens * shape.width * shape.layers, here)}; this program: {significant(numbers)} bytes · B·T·d·L, "
        "with embedding, head and loss"
    )


def _against(rule: Bytes, here: Bytes) -> str:
    """A rule's bytes beside the program's."""
    off = rule / here - 1 if here else 0.0
    how = (
        "as the rule says"
        if abs(off) < 0.005
        else f"the rule is {abs(off) * 100:.0f} % too {'high' if off > 0 else 'low'}"
    )
    return f"{format_bytes(rule)} by the rule, {format_bytes(here)} here ({how})"


def _plain(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
