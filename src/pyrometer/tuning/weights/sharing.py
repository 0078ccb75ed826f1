"""Parameters that hold the same values, and could be one."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import torch
from torch import nn

from pyrometer.quantity import Bytes


class SharedWeights(NamedTuple):
    """Parameters of equal values.

    Attributes:
        names: where they are, each as `model.get_parameter` takes it.
        tied: whether they are one tensor already.
        saved_bytes: what tying them would save; 0 where they are tied.
    """

    names: tuple[str, ...]
    tied: bool
    saved_bytes: Bytes


def find_shared_weights(model: nn.Module) -> list[SharedWeights]:
    """Groups of parameters with equal values, the largest saving first.

    Parameters that are one value throughout, such as the zeros of fresh biases, say nothing and are left out.
    """
    groups: dict[tuple[object, ...], list[tuple[str, nn.Parameter]]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.numel() > 1 and not bool((parameter == parameter.flatten()[0]).all()):
            groups.setdefault(_key(parameter), []).append((name, parameter))
    found = [_shared(group) for group in groups.values() if len(group) > 1]
    return sorted(found, key=lambda group: (-group.saved_bytes, group.names))


def _shared(group: list[tuple[str, nn.Parameter]]) -> SharedWeights:
    places = {parameter.untyped_storage().data_ptr() for _, parameter in group}
    saved = (len(places) - 1) * group[0][1].nbytes
    return SharedWeights(tuple(name for name, _ in group), len(places) == 1, saved)


def _key(parameter: nn.Parameter) -> tuple[object, ...]:
    values = parameter.detach().contiguous().cpu().flatten().view(torch.uint8).numpy()
    return (*parameter.shape, parameter.dtype, hashlib.sha256(values.tobytes()).hexdigest())
