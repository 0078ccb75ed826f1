"""What a prediction changes about a program: sizes, dtypes, optimizer, checkpointing, device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from pyrometer.errors import InputError
from pyrometer.memory.prediction.sizes import Dims
from pyrometer.workload.variant import AUTOCAST_DTYPES, DTYPES

OptimizerChoice: TypeAlias = (
    "str | type[torch.optim.Optimizer] | Callable[[list[torch.Tensor]], torch.optim.Optimizer]"
)

DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class Settings:
    """What differs from the program as written; `None` means as written.

    Attributes:
        batch: size of the batch dimension of the inputs; with accumulation, of each micro-batch.
        sequence: size of the sequence dimension.
        dims: which dimensions of which inputs these are, where that cannot be told from the shapes.
        dtype: of parameters, buffers and floating-point inputs.
        optimizer: a name such as "AdamW" or "SGD momentum", a class, or a function of the parameters.
        checkpoint: paths of modules to recompute in the backward pass, or "every 2" for every second block.
        accumulate: micro-batches per optimizer step.
        amp: dtype of autocast, or `False` for none.
        device: whose rules of allocation hold.
        grad: `False` for the forward pass alone; `True` keeps what a backward pass would need.
        steps: how many are rehearsed.
    """

    batch: int | None = None
    sequence: int | None = None
    dims: Dims | None = None
    dtype: str | None = None
    optimizer: OptimizerChoice | None = None
    checkpoint: tuple[str, ...] | str | None = None
    accumulate: int | None = None
    amp: str | bool | None = None
    device: str | None = None
    grad: bool | None = None
    steps: int = field(default=2)

    def __post_init__(self) -> None:
        for name in ("batch", "sequence", "accumulate"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise InputError(f"{name}: got {value!r}; it must be a whole number of at least 1")
        _require("dtype", self.dtype, tuple(DTYPES))
        _require("device", self.device, DEVICES)
        if self.amp is not False:
            _require("amp", self.amp, AUTOCAST_DTYPES)

    @property
    def labels(self) -> dict[str, str]:
        """What was changed, in words."""
        plain = {
            "batch": self.batch,
            "sequence": self.sequence,
            "dtype": self.dtype,
            "optimizer": None if self.optimizer is None else named(self.optimizer),
            "checkpoint": self.checkpoint if isinstance(self.checkpoint, str) else _joined(self.checkpoint),
            "accumulate": self.accumulate,
            "amp": "off" if self.amp is False else self.amp,
            "device": self.device,
            "grad": None if self.grad is None else {True: "kept", False: "none"}[self.grad],
        }
        return {name: str(value) for name, value in plain.items() if value is not None}


def settings_of(
    *,
    dtype: torch.dtype | str | None = None,
    amp: torch.dtype | str | bool | None = None,
    device: torch.device | str | None = None,
    checkpoint: Sequence[str] | str | None = None,
    **others: Any,
) -> Settings:
    """Settings from what a caller may write: torch's dtypes and devices, or their names.

    Raises:
        InputError: an illegal value.

    >>> settings_of(dtype=torch.bfloat16, batch=8).labels
    {'batch': '8', 'dtype': 'bfloat16'}
    """
    return Settings(
        dtype=_dtype_name(dtype),
        amp=amp if isinstance(amp, bool) else _dtype_name(amp),
        device=_device_type(device),
        checkpoint=checkpoint if checkpoint is None or isinstance(checkpoint, str) else tuple(checkpoint),
        **others,
    )


def named(choice: OptimizerChoice) -> str:
    """An optimizer choice in a word or two."""
    return choice if isinstance(choice, str) else str(getattr(choice, "__name__", type(choice).__name__))


def _dtype_name(dtype: Any) -> str | None:
    return str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype


def _device_type(device: torch.device | str | None) -> str | None:
    if isinstance(device, str):
        return device.partition(":")[0]  # torch refuses an unknown one with an error of its own
    return None if device is None else device.type


def _joined(paths: tuple[str, ...] | None) -> str | None:
    return None if paths is None else (", ".join(paths) or "none")


def _require(name: str, value: Any, legal: Sequence[str] | Mapping[str, Any]) -> None:
    if value is not None and value not in legal:
        raise InputError(f"{name}: got {value!r}; legal are {', '.join(legal)}")
