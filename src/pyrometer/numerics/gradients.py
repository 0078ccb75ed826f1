"""Gradients before the optimizer's step: their norm, per step and per layer, and which of them are not finite."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import torch
from torch import nn

from pyrometer.numerics.modules import ModuleWatch
from pyrometer.numerics.report import Gradients, LayerGradient, NonFinite, NonFiniteGradient, Trend

MOST_LAYERS = 400
FEWEST_LAYERS = 5
GREAT = 10.0
"""Factor over all steps from which a change of the norm in one direction is a trend."""


@dataclass
class StepGradients:
    """The norms of one step, by parameter; without the scale of a GradScaler."""

    norms: dict[str, float]
    nans: set[str] = field(default_factory=set)
    skipped: bool = False
    origin: NonFinite | None = None

    @property
    def bad(self) -> list[str]:
        """Parameters whose gradient is not finite."""
        return [name for name, norm in self.norms.items() if not math.isfinite(norm)]

    @property
    def total(self) -> float | None:
        """The norm over all parameters; `None` where it is not finite, or there is none."""
        total = math.sqrt(sum(norm * norm for norm in self.norms.values()))
        return total if self.norms and math.isfinite(total) else None


def read_gradients(parameters: Mapping[str, torch.Tensor], scale: float = 1.0) -> StepGradients:
    """The norm of each parameter's gradient; those without one are left out.

    Args:
        parameters: by name.
        scale: that the gradients were multiplied by.
    """
    held = {name: parameter.grad for name, parameter in parameters.items() if parameter.grad is not None}
    norms = {name: _norm(grad) for name, grad in held.items()}
    found = dict(zip(norms, _read(norms.values()), strict=True))
    nans = {name for name, norm in found.items() if math.isnan(norm) or not math.isfinite(norm)}
    nans = {name for name in nans if bool(_values(held[name]).isnan().any())}
    return StepGradients({name: norm / scale for name, norm in found.items()}, nans)


def summarised(
    steps: Sequence[StepGradients], parameters: Mapping[str, torch.Tensor], modules: ModuleWatch
) -> Gradients | None:
    """All steps in one record; `None` where no gradient was seen."""
    if not any(step.norms for step in steps):
        return None
    norms = [step.total for step in steps]
    trend, growth = _trend(norms)
    wanted = (name for name, parameter in parameters.items() if parameter.requires_grad)
    given = {name: sum(name in step.norms for step in steps) for name in wanted}
    layers = _layers(steps, parameters, modules)
    return Gradients(
        norms=norms,
        weight_norm=_weight_norm(parameters),
        trend=trend,
        growth=growth,
        layers=[layer for layer, _ in layers[:MOST_LAYERS]],
        depth_ratio=_depth_ratio([layer for layer, is_deep in layers if is_deep]),
        non_finite=_non_finite(steps),
        never=[name for name, times in given.items() if not times],
        sometimes=[name for name, times in given.items() if 0 < times < len(steps)],
    )


def _weight_norm(parameters: Mapping[str, torch.Tensor]) -> float | None:
    norms = [_norm(parameter) for parameter in parameters.values() if parameter.requires_grad]
    total = math.sqrt(sum(norm * norm for norm in _read(norms)))
    return total if math.isfinite(total) else None


def _trend(norms: Sequence[float | None]) -> tuple[Trend, float | None]:
    known = [norm for norm in norms if norm is not None]
    if len(known) < 3 or len(known) < len(norms) or not known[0]:
        return "unknown", None
    growth = known[-1] / known[0]
    if growth >= GREAT and all(after > before for before, after in pairwise(known)):
        return "growing", growth
    if growth <= 1 / GREAT and all(after < before for before, after in pairwise(known)):
        return "falling", growth
    return "steady", growth


def _layers(
    steps: Sequence[StepGradients], parameters: Mapping[str, torch.Tensor], modules: ModuleWatch
) -> list[tuple[LayerGradient, bool]]:
    """Each module with parameters of its own, in order; and whether it counts for the gradient over depth."""
    groups: dict[str, list[str]] = {}
    for name in parameters:
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    layers = []
    for path in sorted(groups, key=modules.order):
        matrices = [name for name in groups[path] if parameters[name].dim() >= 2]
        names = matrices or groups[path]
        layer = LayerGradient(
            module=path,
            num_parameters=sum(parameters[name].numel() for name in groups[path]),
            rms=[_rms(step, names, parameters) for step in steps],
        )
        # Most rows of an embedding get no gradient at all, which says nothing of depth.
        sparse = isinstance(modules.module(path), (nn.Embedding, nn.EmbeddingBag))
        layers.append((layer, bool(matrices) and not sparse and any(rms is not None for rms in layer.rms)))
    return layers


def _rms(step: StepGradients, names: Sequence[str], parameters: Mapping[str, torch.Tensor]) -> float | None:
    held = [name for name in names if name in step.norms]
    numel = sum(parameters[name].numel() for name in held)
    square = sum(step.norms[name] ** 2 for name in held)
    return math.sqrt(square / numel) if numel and math.isfinite(square) else None


def _depth_ratio(layers: Sequence[LayerGradient]) -> float | None:
    if len(layers) < FEWEST_LAYERS:
        return None
    part = max(1, len(layers) // 5)
    ratios = []
    for values in zip(*(layer.rms for layer in layers), strict=True):
        first, last = (_mean(ends) for ends in (values[:part], values[-part:]))
        if first and last:
            ratios.append(last / first)
    return statistics.median(ratios) if ratios else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _non_finite(steps: Sequence[StepGradients]) -> list[NonFiniteGradient]:
    gradients: dict[str, NonFiniteGradient] = {}
    for number, step in enumerate(steps):
        for name in reversed(step.bad):  # of the last layers first, as the backward pass goes
            if name in gradients:
                continue
            those = [step_gradients for step_gradients in steps if name in step_gradients.bad]
            kind: Literal["nan", "inf"] = "nan" if name in step.nans else "inf"
            gradients[name] = NonFiniteGradient(
                parameter=name,
                step=number,
                kind=kind,
                num_steps=len(those),
                all_skipped=all(step_gradients.skipped for step_gradients in those),
                origin=step.origin if name == step.bad[-1] else None,
            )
    return list(gradients.values())


def _norm(tensor: torch.Tensor) -> torch.Tensor:
    values = _values(tensor)
    # A complex number counts with its magnitude, which is the norm of its two parts.
    parts = torch.view_as_real(values.resolve_conj()) if values.is_complex() else values
    norm: torch.Tensor = torch.linalg.vector_norm(parts, dtype=_wide(tensor))
    return norm


def _values(grad: torch.Tensor) -> torch.Tensor:
    return grad.detach() if grad.layout == torch.strided else grad.detach().coalesce().values()


def _wide(grad: torch.Tensor) -> torch.dtype:
    return torch.float64 if grad.device.type in {"cpu", "cuda"} else torch.float32


def _read(norms: Iterable[torch.Tensor]) -> list[float]:
    """Norms of any device as numbers, with one copy per device."""
    tensors = list(norms)
    by_device: dict[torch.device, list[int]] = {}
    for index, norm in enumerate(tensors):
        by_device.setdefault(norm.device, []).append(index)
    values = [0.0] * len(tensors)
    for indices in by_device.values():
        read = torch.stack([tensors[index] for index in indices]).tolist()
        for index, value in zip(indices, read, strict=True):
            values[index] = value
    return values
