"""Doubles of a program's objects on tensors without data: nothing of the user's is touched, and no memory is taken."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.memory.prediction.errors import NotPredictableError
from pyrometer.memory.prediction.functions import doubled_function
from pyrometer.memory.private.fake_tensors import copying, without_data
from pyrometer.workload.failure import first_line
from pyrometer.workload.parts import TrainingParts
from pyrometer.workload.state import module_tensors
from pyrometer.workload.variant import Variant


class Doubles:
    """Makes doubles that hang together: what is one object in the program is one here.

    Args:
        mode: torch's mode for tensors without data.
        variant: dtype and memory format of parameters, buffers, inputs, and state of the parameter's dtype.
        device: where the doubles are.
    """

    def __init__(self, mode: Any, variant: Variant, device: torch.device | None = None) -> None:
        self.mode = mode
        self._variant = variant
        self._device = device
        self._memo: dict[int, Any] = {}
        self._kept: list[Any] = []  # ids are only good as long as their objects live

    def module(self, name: str, module: nn.Module) -> nn.Module:
        """A module's double, without `torch.compile` and parallel wrappers.

        Raises:
            InputError: it cannot be copied.
            NotPredictableError: what it allocates cannot be told without its data.
        """
        _require_predictable(name, module)
        for tensor in module_tensors(module, parameters=True):
            self.tensor(tensor, cast=True)
        double: nn.Module = _unwrapped(self.any(name, module))
        for part in double.modules():
            for hooks in (value for key, value in vars(part).items() if key.endswith("hooks") and value):
                for number, hook in hooks.items():
                    hooks[number] = self.function(hook)
        return double

    def parts(self, parts: TrainingParts) -> TrainingParts:
        """What is trained and what trains it; without a scheduler, which changes no memory.

        Raises:
            InputError: a part cannot be copied.
        """
        model = self.module("model", parts.model)
        loss: Any = parts.loss
        loss = self.module("loss", loss) if isinstance(loss, nn.Module) else self.any("loss", loss)
        optimizer = self.optimizer(parts.optimizer)
        return TrainingParts(model, self.function(loss), optimizer, None, None)

    def function(self, function: Any) -> Any:
        """A function that writes to doubles; one that cannot be separated from what it reaches as it is."""
        try:
            return doubled_function(function, lambda value: self.any("function", value))
        except InputError:
            return function

    def optimizer(self, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """An optimizer's double with the state that it has; hooks and attributes of its own class come along."""
        dtypes = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                dtypes[parameter] = parameter.dtype
                self.tensor(parameter, cast=True)
        for parameter, state in optimizer.state.items():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, torch.Tensor) and value.shape == getattr(parameter, "shape", None) != ():
                    self.tensor(value, cast=value.dtype == dtypes.get(parameter))
        own = type(optimizer).__new__(type(optimizer))
        self._memo[id(optimizer)] = own
        # A scheduler lays its own `step` over the instance's, bound to the original.
        attributes = {name: value for name, value in vars(optimizer).items() if name != "step"}
        vars(own).update(self.any("optimizer", attributes))
        return own

    def any(self, name: str, part: Any) -> Any:
        """The double of any object.

        Raises:
            InputError: it cannot be copied.
        """
        try:
            with copying(self.mode, self.tensor):
                return copy.deepcopy(part, self._memo)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{name}: cannot be copied ({type(error).__name__}: {first_line(error)}), which a prediction needs"
            ) from error

    def resized(self, part: Any, shapes: Mapping[int, Sequence[int]], memo: dict[int, Any]) -> Any:
        """The double of a batch with its tensors in other sizes, which are new tensors.

        Args:
            part: the batch.
            shapes: by identity of a tensor, the shape that its double gets.
            memo: doubles by identity of what they stand for; completed, and keeps the originals alive.
        """

        def made(tensor: torch.Tensor) -> torch.Tensor:
            shape = list(shapes.get(id(tensor), tensor.shape))
            same = shape == list(tensor.shape)
            return self._converted(without_data(self.mode, tensor) if same else self._empty(tensor, shape))

        with copying(self.mode, made):
            return copy.deepcopy(part, memo)

    def tensor(self, tensor: torch.Tensor, *, cast: bool = False) -> torch.Tensor:
        """A tensor's double, always the same one."""
        if id(tensor) not in self._memo:
            double = without_data(self.mode, tensor)
            if cast or self._device is not None:
                double = self._recast(tensor, double, cast=cast)
            for name, value in vars(tensor).items():  # marks such as `no_decay`
                if not isinstance(value, torch.Tensor) and name not in vars(double):
                    setattr(double, name, value)
            self._memo[id(tensor)] = double
            self._kept.append(tensor)
        return self._memo[id(tensor)]  # type: ignore[no-any-return]

    def _recast(self, tensor: torch.Tensor, double: torch.Tensor, *, cast: bool) -> torch.Tensor:
        with self.mode, torch.no_grad():
            plain = double.detach()
            new = self._converted(plain, cast=cast)
            if new is plain:
                return double
            if isinstance(tensor, nn.Parameter):
                return nn.Parameter(new, requires_grad=tensor.requires_grad)
            return new.requires_grad_(tensor.requires_grad)

    def _converted(self, double: torch.Tensor, *, cast: bool = True) -> torch.Tensor:
        """The tensor itself where nothing is to be converted."""
        with self.mode, torch.no_grad():
            if cast:
                double = self._variant.apply_to_tensor(double)
            return double.to(self._device) if self._device is not None else double

    def _empty(self, tensor: torch.Tensor, shape: list[int]) -> torch.Tensor:
        layouts = {4: torch.channels_last, 5: torch.channels_last_3d}
        layout = layouts.get(tensor.dim(), torch.contiguous_format)
        if tensor.is_contiguous() or not tensor.is_contiguous(memory_format=layout):
            layout = torch.contiguous_format
        with self.mode:
            return torch.empty(shape, dtype=tensor.dtype, device=tensor.device, memory_format=layout)


def _require_predictable(name: str, module: nn.Module) -> None:
    for path, part in module.named_modules():
        why = None
        if isinstance(part, torch.jit.ScriptModule):
            why = "is compiled by TorchScript, which reaches its own tensors"
        elif isinstance(part, (nn.Embedding, nn.EmbeddingBag)) and part.sparse:
            why = "has sparse gradients, whose size depends on values"
        elif any(nn.parameter.is_lazy(parameter) for parameter in part.parameters(recurse=False)):
            why = "has lazy parameters, whose shapes only the first call tells"
        if why is not None:
            raise NotPredictableError(f"{name}: {path or type(part).__name__} {why}")


def _unwrapped(model: nn.Module) -> nn.Module:
    """A model without what `torch.compile` and data parallelism wrap around it and its parts."""
    parallel = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    inner: Any = getattr(model, "_orig_mod", model)
    inner = inner.module if isinstance(inner, parallel) else inner
    for part in inner.modules():
        vars(part).pop("_compiled_call_impl", None)
        for name, child in list(part.named_children()):
            own = getattr(child, "_orig_mod", None)
            if own is not None:
                setattr(part, name, own)
    return _unwrapped(inner) if inner is not model else inner
