"""How a workload differs from the one that the user wrote."""

from __future__ import annotations

import copy
from typing import Annotated, Any, Literal

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.record import Record, doc

Mode = Literal["eager", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]
MODES: tuple[str, ...] = ("eager", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "float64": torch.float64}
MEMORY_FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


class Variant(Record, frozen=True, kw_only=True):
    """Changes to a workload's configuration; `None` means as the user wrote it.

    >>> Variant(dtype="bfloat16", mode="default").label
    'bfloat16, compile default'
    """

    dtype: Annotated[str | None, doc("parameters and floating-point inputs cast to this dtype")] = None
    autocast: Annotated[str | None, doc("dtype of torch.autocast around the forward pass")] = None
    memory_format: Annotated[str | None, doc("contiguous or channels_last")] = None
    mode: Annotated[str | None, doc("eager, or a mode of torch.compile")] = None
    threads: Annotated[int | None, doc("intra-op threads on the CPU")] = None
    batch_size: Annotated[int | None, doc("leading dimension of every input")] = None

    def __post_init__(self) -> None:
        _require("dtype", self.dtype, DTYPES)
        _require("autocast", self.autocast, DTYPES)
        _require("memory_format", self.memory_format, MEMORY_FORMATS)
        _require("mode", self.mode, MODES)
        for name in ("threads", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name}: got {value}; it must be at least 1")

    @property
    def label(self) -> str:
        """A short description; `as written` when nothing differs."""
        words = {
            "dtype": "{}",
            "autocast": "autocast {}",
            "memory_format": "{}",
            "mode": "compile {}" if self.mode != "eager" else "{}",
            "threads": "{} threads",
            "batch_size": "batch {}",
        }
        parts = [text.format(getattr(self, name)) for name, text in words.items() if getattr(self, name) is not None]
        return ", ".join(parts) or "as written"

    def merged(self, changes: dict[str, Any]) -> Variant:
        """This variant with `changes` on top; dtypes and memory formats may be torch objects or names."""
        known = set(self.__struct_fields__)
        unknown = sorted(set(changes) - known)
        if unknown:
            raise InputError(f"variant: unknown setting {unknown[0]!r}; legal are {', '.join(sorted(known))}")
        values = {name: getattr(self, name) for name in known}
        return Variant(**values | {name: _name_of(value) for name, value in changes.items()})

    @property
    def is_compiled(self) -> bool:
        """Whether `torch.compile` is part of this variant."""
        return self.mode not in {None, "eager"}

    def apply_to_model(self, model: nn.Module) -> nn.Module:
        """The model under this variant: a copy if its parameters must change, the very model otherwise."""
        if self.dtype is not None or self.memory_format is not None:
            model = copy.deepcopy(model)
        if self.dtype is not None:
            model = model.to(dtype=DTYPES[self.dtype])
        if self.memory_format is not None:
            model = model.to(memory_format=MEMORY_FORMATS[self.memory_format])  # type: ignore[call-overload]
        return self.compile_model(model)

    def compile_model(self, model: nn.Module) -> nn.Module:
        """The model behind `torch.compile` when this variant asks for it."""
        if not self.is_compiled:
            return model
        compiled: nn.Module = torch.compile(model, mode=self.mode)  # type: ignore[assignment]
        return compiled

    def apply_to_tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        """An input under this variant: cast if floating, laid out, and repeated or cut to the batch size."""
        if self.batch_size is not None:
            tensor = _resize_batch(tensor, self.batch_size)
        if self.dtype is not None and tensor.is_floating_point():
            tensor = tensor.to(DTYPES[self.dtype])
        if self.memory_format is not None and tensor.dim() == 4:
            tensor = tensor.contiguous(memory_format=MEMORY_FORMATS[self.memory_format])
        return tensor


def _require(name: str, value: str | None, legal: Any) -> None:
    if value is not None and value not in legal:
        raise InputError(f"{name}: got {value!r}; legal are {', '.join(legal)}")


def _name_of(value: Any) -> Any:
    """The name of a torch dtype or memory format; anything else as it is."""
    if isinstance(value, (torch.dtype, torch.memory_format)):
        return str(value).removeprefix("torch.").removesuffix("_format")
    return value


def _resize_batch(tensor: torch.Tensor, batch_size: int) -> torch.Tensor:
    if tensor.dim() == 0 or tensor.shape[0] == batch_size:
        return tensor
    repeats = -(-batch_size // tensor.shape[0])
    return tensor.repeat(repeats, *[1] * (tensor.dim() - 1))[:batch_size].contiguous()
