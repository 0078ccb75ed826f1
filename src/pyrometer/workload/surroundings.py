"""What holds around a workload's steps, and is put back afterwards: torch's global settings and the target's imports.

Several sessions may be open at once, each with its own settings (threads, TF32, default dtype, …) and its own
directory to import from. `Session.activate()` makes them current before a batch of steps. Whatever the order in which
the sessions are closed, each close returns to what the first of them found.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from pyrometer.workload.importing import TargetImports, current_imports, switch_imports

# Precision is also set per backend, and asking for the overall one is an error once that was done.
_PRECISION_BACKENDS = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")


class TorchSettings(NamedTuple):
    """The global settings of torch that change what a step computes or how fast."""

    threads: int
    grad_enabled: bool
    default_dtype: torch.dtype
    default_device: torch.device
    deterministic: bool
    deterministic_warn_only: bool
    cudnn_benchmark: bool
    cudnn_deterministic: bool
    matmul_precision: str | None
    backend_precisions: tuple[str, ...]

    @classmethod
    def current(cls) -> TorchSettings:
        """Read the settings that are in force."""
        return cls(
            threads=torch.get_num_threads(),
            grad_enabled=torch.is_grad_enabled(),
            default_dtype=torch.get_default_dtype(),
            default_device=torch.get_default_device(),
            deterministic=torch.are_deterministic_algorithms_enabled(),
            deterministic_warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
            cudnn_benchmark=torch.backends.cudnn.benchmark,
            cudnn_deterministic=torch.backends.cudnn.deterministic,
            matmul_precision=_matmul_precision(),
            backend_precisions=tuple(_backend(name).fp32_precision for name in _PRECISION_BACKENDS),
        )

    def changes_since(self, earlier: TorchSettings) -> dict[str, Any]:
        """The settings that differ from earlier ones, by name."""
        return {name: value for name, value in self._asdict().items() if value != getattr(earlier, name)}

    def apply(self) -> None:
        """Make these settings current; those that already are stay untouched."""
        now = TorchSettings.current()
        if now == self:
            return
        if now.threads != self.threads:
            torch.set_num_threads(self.threads)
        torch.set_grad_enabled(self.grad_enabled)
        torch.set_default_dtype(self.default_dtype)
        if now.default_device != self.default_device:
            torch.set_default_device(None if self.default_device.type == "cpu" else self.default_device)
        torch.use_deterministic_algorithms(self.deterministic, warn_only=self.deterministic_warn_only)
        torch.backends.cudnn.benchmark = self.cudnn_benchmark
        torch.backends.cudnn.deterministic = self.cudnn_deterministic
        self._apply_precisions()

    def _apply_precisions(self) -> None:
        if self.matmul_precision is not None and _matmul_precision() != self.matmul_precision:
            torch.set_float32_matmul_precision(self.matmul_precision)
        for name, precision in zip(_PRECISION_BACKENDS, self.backend_precisions, strict=True):
            if _backend(name).fp32_precision != precision:
                _backend(name).fp32_precision = precision


def _matmul_precision() -> str | None:
    """The overall precision of float32 products; `None` when it was set per backend."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


def _backend(name: str) -> Any:
    return operator.attrgetter(name)(torch.backends)


@dataclass(frozen=True)
class Surroundings:
    """Settings and imports that belong together."""

    settings: TorchSettings
    imports: TargetImports | None

    @classmethod
    def current(cls) -> Surroundings:
        """What is in force now."""
        return cls(TorchSettings.current(), current_imports())

    def activate(self) -> None:
        """Make these current; nothing to do (and no time to lose between two batches) when they were the last."""
        global _active  # noqa: PLW0603 - the settings are global, and so is whose they are
        if _active is self:
            return
        switch_imports(self.imports)
        self.settings.apply()
        _active = self

    def with_threads(self, threads: int | None) -> Surroundings:
        """The same with another number of intra-op threads; `None` changes nothing."""
        if threads is None:
            return self
        return Surroundings(self.settings._replace(threads=threads), self.imports)


_active: Surroundings | None = None
_found: list[Surroundings] = []


@contextlib.contextmanager
def preserved_surroundings() -> Iterator[Surroundings]:
    """Yield what was in force before any of our changes, and return to it at the end."""
    global _active  # noqa: PLW0603 - see `activate`
    surroundings = _found[0] if _found else Surroundings.current()
    _found.append(surroundings)
    try:
        yield surroundings
    finally:
        _found.pop()
        # Not only when others were activated: a step may have changed settings too.
        _active = None
        surroundings.activate()
