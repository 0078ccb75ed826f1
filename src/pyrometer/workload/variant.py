"""How a workload differs from the one that the user wrote."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import Annotated, Any, TypeVar

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.record import Record, doc

MODES: tuple[str, ...] = ("eager", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
AUTOCAST_DTYPES = ("bfloat16", "float16")
MEMORY_FORMATS: dict[str, torch.memory_format] = {
    "contiguous": torch.contiguous_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}
_LAYOUT_DIMS = {"channels_last": 4, "channels_last_3d": 5}

F = TypeVar("F", bound=Callable[..., Any])


class Variant(Record, frozen=True, kw_only=True):
    """Changes to a workload's configuration; `None` means as the user wrote it.

    >>> Variant(dtype="bfloat16", mode="default").label
    'bfloat16, compile default'
    """

    dtype: Annotated[str | None, doc("parameters and floating-point inputs cast to this dtype")] = None
    autocast: Annotated[str | None, doc("dtype of torch.autocast around the forward pass")] = None
    memory_format: Annotated[str | None, doc("contiguous, channels_last or channels_last_3d")] = None
    mode: Annotated[str | None, doc("eager, or a mode of torch.compile")] = None
    threads: Annotated[int | None, doc("intra-op threads on the CPU")] = None
    batch_size: Annotated[
        int | None, doc("leading dimension of the first input, and of all that share it")
    ] = None

    def __post_init__(self) -> None:
        _require("dtype", self.dtype, DTYPES)
        _require("autocast", self.autocast, AUTOCAST_DTYPES)
        _require("memory_format", self.memory_format, MEMORY_FORMATS)
        _require("mode", self.mode, MODES)
        for name in ("threads", "batch_size"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise InputError(f"{name}: got {value!r}; it must be a whole number of at least 1")

    @property
    def label(self) -> str:
        """A short description; `as written` when nothing differs."""
        words = {
            "dtype": "{}",
            "autocast": "autocast {}",
            "memory_format": "{}",
            "mode": "compile {}" if self.mode != "eager" else "{}",
            "threads": "{} thread" if self.threads == 1 else "{} threads",
            "batch_size": "batch {}",
        }
        parts = [
            text.format(getattr(self, name))
            for name, text in words.items()
            if getattr(self, name) is not None
        ]
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
    def changes_parameters(self) -> bool:
        """Whether the model's parameters are cast or laid out anew, so that a copy must be made."""
        return self.dtype is not None or self.memory_format is not None

    def convert(self, model: nn.Module) -> None:
        """Cast and lay out a model's parameters and buffers in place."""
        if self.dtype is not None:
            model.to(dtype=DTYPES[self.dtype])
        if self.memory_format is not None:
            model.to(memory_format=MEMORY_FORMATS[self.memory_format])  # type: ignore[call-overload]

    def compile_model(self, model: nn.Module) -> nn.Module:
        """The model in the mode of this variant; a model that comes compiled is unwrapped first when a mode is given.

        Raises:
            InputError: a mode is given, but the model is compiled in a way that cannot be undone from outside.
        """
        if self.mode is None:
            return model
        inner: nn.Module = getattr(model, "_orig_mod", model)
        compiled_inside = next((name for name, part in inner.named_modules() if is_compiled(part)), None)
        if compiled_inside is not None:
            place = f"its part {compiled_inside!r} is" if compiled_inside else "it is"
            raise InputError(
                f"mode: got {self.mode!r}, but {place} already compiled; "
                "give the plain model, the variant compiles it, or leave the mode as written"
            )
        return inner if self.mode == "eager" else compiled(inner, self.mode)

    def autocast_context(self, device: torch.device) -> contextlib.AbstractContextManager[Any] | None:
        """`torch.autocast` for the forward pass, to be entered again in each step; `None` without."""
        return torch.autocast(device.type, dtype=DTYPES[self.autocast]) if self.autocast else None

    def apply_to_tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        """An input under this variant: cast if floating, and laid out."""
        if self.dtype is not None and tensor.is_floating_point():
            tensor = tensor.to(DTYPES[self.dtype])
        if self.memory_format is not None and tensor.dim() == _LAYOUT_DIMS.get(
            self.memory_format, tensor.dim()
        ):
            tensor = tensor.contiguous(memory_format=MEMORY_FORMATS[self.memory_format])
        return tensor


def compiled(function: F, mode: str) -> F:
    """A module or function behind `torch.compile`; nothing is compiled before the first call."""
    wrapped: F = torch.compile(function, mode=mode)  # type: ignore[assignment]
    return wrapped


def is_compiled(module: nn.Module) -> bool:
    """Whether a module is behind `torch.compile` (as a wrapper or in place), itself and not only parts of it."""
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def _require(name: str, value: Any, legal: Collection[str]) -> None:
    if value is not None and (not isinstance(value, str) or value not in legal):
        raise InputError(f"{name}: got {value!r}; legal are {', '.join(legal)}")


def _name_of(value: Any) -> Any:
    """The name of a torch dtype or memory format; anything else as it is."""
    if isinstance(value, (torch.dtype, torch.memory_format)):
        return str(value).removeprefix("torch.").removesuffix("_format")
    return value
