"""Does padding change the result? Held against the model itself, unpadded and uncompiled, on the caller's own inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pyrometer.bench.matrix.cell import OutputError
from pyrometer.bench.matrix.numerics import numeric_error, tolerance_for
from pyrometer.errors import InputError
from pyrometer.quantity import format_percent
from pyrometer.tuning.dropless import Dropless
from pyrometer.tuning.shapes.axes import CallArguments, like_the_tensor
from pyrometer.tuning.shapes.blame import Culprit, Watch, find_culprit, watching
from pyrometer.workload.state import kept_module, preserved_rng


class PaddingError(InputError):
    """Padding changes the result, so that buckets must not be used for this model as it is.

    Attributes:
        culprit: the operation that lets padding in; `None` when it could not be told.
        error: how far the results are apart; `None` where they could not even be compared.
    """

    def __init__(self, text: str, culprit: Culprit | None = None, error: OutputError | None = None) -> None:
        super().__init__(text)
        self.culprit = culprit
        self.error = error


@dataclass(frozen=True)
class Reference:
    """The model as the caller gave it; running it here leaves no trace."""

    model: Callable[..., Any]
    tolerance: float | None = None

    def run(
        self, call: CallArguments, watch: Watch | None = None, *, dropless: Dropless | None = None
    ) -> Any:
        """What the model returns, without gradients and dropout; inputs are copied, since it may write to them."""
        state = kept_module(self.model)
        observing = watching(self.model, watch) if watch is not None else contextlib.nullcontext()
        try:
            with preserved_rng(), torch.no_grad():
                args, kwargs = copied(call)
                with dropless or Dropless(), observing:
                    return pytree.tree_map_only(torch.Tensor, _kept, self.model(*args, **kwargs))
        finally:
            state.restore()

    def is_steady(self, call: CallArguments, expected: Any, error: OutputError) -> bool:
        """Whether an error is larger than what rounding the inputs otherwise would explain."""

        def shaken(tensor: torch.Tensor) -> torch.Tensor:
            if not tensor.is_floating_point() or not torch.finfo(tensor.dtype).bits >= 16:
                return tensor
            return tensor * (1 + 4 * torch.finfo(tensor.dtype).eps)

        with torch.no_grad():
            moved = self.error(self.run(pytree.tree_map_only(torch.Tensor, shaken, call)), expected)
        return moved.mismatch is None and error.max_rel > 10 * moved.max_rel

    def error(self, output: Any, expected: Any) -> OutputError:
        """How far an output is from the expected one."""
        return numeric_error(output, expected, self.legal(expected))

    def legal(self, expected: Any) -> float:
        """The largest legal relative error of such an output."""
        if self.tolerance is not None:
            return self.tolerance
        floats = [
            leaf
            for leaf in pytree.tree_leaves(expected)
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
        ]
        if not floats:
            return tolerance_for("float32", torch.device("cpu"))
        return max(tolerance_for(_computed_in(leaf), leaf.device) for leaf in floats)

    def refusal(
        self,
        what: str,
        error: OutputError,
        *,
        call: CallArguments,
        padded: CallArguments,
        crop: Callable[[Any], Any],
        values: str = "",
    ) -> PaddingError:
        """Why the results differ: padding, the compiler, or chance.

        Args:
            what: what was padded, in words.
            error: of the padded, compiled result.
            call: as the caller made it; with its mask, where there is one.
            padded: the same, padded.
            crop: cuts an output of the padded call back.
            values: with which it was found, where they are not the caller's own.
        """
        plain_run, padded_run = Watch(), Watch()
        expected, again = self.run(call, plain_run), self.run(padded, padded_run)
        how_far = error.mismatch or f"by {format_percent(error.max_rel)} of the largest value"
        if self._by_chance(call, expected):
            return PaddingError(
                f"{what}: cannot be checked, since the model draws random numbers: its result differs from itself; call it in "
                "eval mode first, or pass tolerance=float('inf') to do without the check",
                error=error,
            )
        if self.error(crop(again), expected).within_tolerance:
            return PaddingError(
                f"{what}: the compiled result differs from the eager one ({how_far}), although padding changes nothing: "
                f"torch.compile does; a larger tolerance than {error.tolerance:g} may be legal for this model",
                error=error,
            )
        culprit = find_culprit(plain_run, padded_run, self.legal(expected))
        reason = culprit.text if culprit is not None else "the operation that does so could not be told"
        found_with = f" where the values are {values}" if values else ""
        way_out = "; if such values never come (this call was right), pass hostile_values=False to check with real ones only"
        return PaddingError(
            f"{what} changes the result{found_with} ({how_far}; legal is {format_percent(error.tolerance)}): {reason}; "
            'mask the padding in the model, bucket another dimension, or go on unpadded with on_refusal="dynamic"'
            f"{way_out if values else ''}",
            culprit,
            error,
        )

    def _by_chance(self, call: CallArguments, expected: Any) -> bool:
        with preserved_rng():
            torch.manual_seed(torch.initial_seed() ^ 1)
            return not self.error(self.run(call), expected).within_tolerance


def size_told(found: Any, expected: Any) -> str | None:
    """An output that is no tensor and is another with padding, in words; `None` where there is none.

    >>> size_told((torch.ones(2), 8), (torch.ones(2), 5))
    'output 1 is no tensor but the int 5, and 8 with padding: it depends on the padded size and cannot be cut back'
    """
    pairs = zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=False)
    for number, (ours, theirs) in enumerate(pairs):
        if isinstance(theirs, (int, str)) and type(ours) is type(theirs) and ours != theirs:
            return (
                f"output {number} is no tensor but the {type(theirs).__name__} {theirs!r}, and {ours!r} with padding: it depends "
                "on the padded size and cannot be cut back"
            )
    return None


def copied(call: CallArguments) -> CallArguments:
    """The call with copies of its tensors; the same one twice stays the same one twice."""
    copies: dict[int, torch.Tensor] = {}

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in copies:
            with like_the_tensor(tensor):
                made = tensor.detach().clone()
            copies[id(tensor)] = (
                made.requires_grad_() if tensor.requires_grad and not made.is_inference() else made
            )
        return copies[id(tensor)]

    made_call: CallArguments = pytree.tree_map_only(torch.Tensor, copy, (tuple(call[0]), dict(call[1])))
    return made_call


def _computed_in(leaf: torch.Tensor) -> str:
    kind = leaf.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else leaf.dtype
    return str(dtype).removeprefix("torch.")


def _kept(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()
