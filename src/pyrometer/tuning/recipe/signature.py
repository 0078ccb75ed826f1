"""Which model a recipe is for: what must be the same before it is applied to another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from pyrometer.errors import IncomparableError
from pyrometer.record import Record, doc

if TYPE_CHECKING:  # signatures are read and shown without torch
    import torch
    from torch import nn

DIGITS = 12
MOST_NAMED = 3


class Signature(Record, frozen=True, kw_only=True):
    """What identifies a model, whatever its weights."""

    model: Annotated[str, doc("class of the model")]
    num_parameters: Annotated[int, doc("numbers in all parameters")]
    parameters: Annotated[str, doc("hash of names, shapes and dtypes of parameters and buffers")]
    modules: Annotated[str, doc("hash of names and classes of all modules")]
    inputs: Annotated[list[str], doc("dtype and shape of each tensor of the inputs; empty for training")] = []


def signature_of(model: nn.Module, inputs: Iterable[torch.Tensor] = ()) -> Signature:
    """The signature of a model as the user has it.

    >>> from torch import nn
    >>> signature_of(nn.Linear(2, 3)).num_parameters
    9
    """
    tensors = [*model.named_parameters(), *model.named_buffers()]
    return Signature(
        model=type(model).__qualname__,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        parameters=_digits(f"{name} {tuple(tensor.shape)} {tensor.dtype}" for name, tensor in tensors),
        modules=_digits(f"{name} {type(module).__qualname__}" for name, module in model.named_modules()),
        inputs=[described(tensor) for tensor in inputs],
    )


def described(tensor: torch.Tensor) -> str:
    """Dtype and shape of a tensor.

    >>> import torch
    >>> described(torch.zeros(2, 3))
    'float32[2, 3]'
    """
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def require_same_model(recipe: Signature, model: Signature) -> None:
    """Refuse a model that the recipe was not made for.

    Raises:
        IncomparableError: names the fields that differ, with both values.
    """
    words = differing_words(recipe, model, ("model", "num_parameters", "parameters", "modules"))
    if not words:
        return
    raise IncomparableError(
        f"the recipe is for another model ({words}, recipe and model); run `pyrometer tune` for this one"
    )


def differing_words(one: Signature, other: Signature, names: Iterable[str]) -> str:
    """The fields in which two signatures differ, with both values; empty where they are the same."""
    different = [name for name in names if getattr(one, name) != getattr(other, name)]
    return "; ".join(
        f"{name}: {getattr(one, name)} and {getattr(other, name)}" for name in different[:MOST_NAMED]
    )


def _digits(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:DIGITS]
