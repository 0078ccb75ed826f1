"""Which computations that lose in low precision are done in low precision."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

import torch

from pyrometer.numerics.nonfinite import Made
from pyrometer.numerics.operators import Seen
from pyrometer.numerics.report import PrecisionUse
from pyrometer.workload.whereabouts.lines import Site

LOW = (torch.float16, torch.bfloat16)

LOSSES = frozenset(
    {
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "cosine_embedding_loss",
        "cross_entropy_loss",
        "hinge_embedding_loss",
        "huber_loss",
        "kl_div",
        "l1_loss",
        "mse_loss",
        "multi_margin_loss",
        "multilabel_margin_loss_forward",
        "nll_loss",
        "nll_loss2d_forward",
        "nll_loss_forward",
        "poisson_nll_loss",
        "smooth_l1_loss",
        "soft_margin_loss",
        "_ctc_loss",
    }
)
SOFTMAXES = frozenset({"_softmax", "_log_softmax", "softmax", "log_softmax", "logsumexp"})
BATCH_NORMS = frozenset(
    {
        "batch_norm",
        "native_batch_norm",
        "cudnn_batch_norm",
        "miopen_batch_norm",
        "_native_batch_norm_legit",
        "_batch_norm_with_update",
    }
)
NORMALISATIONS = BATCH_NORMS | {
    "native_layer_norm",
    "layer_norm",
    "native_group_norm",
    "group_norm",
    "rms_norm",
    "_fused_rms_norm",
    "instance_norm",
}
SQUARES = frozenset({"pow", "square"})
MEANS = frozenset({"mean", "sum"})
ROOTS = frozenset({"rsqrt", "sqrt"})
_RUNNING_MEAN, _TRAINING = 3, 5  # arguments of every batch normalisation

Key = tuple[str, torch.dtype, str | None, Site | None]
Function = tuple[str | None, CodeType | None]


class PrecisionWatch:
    """Counts such computations, by kind and place."""

    def __init__(self) -> None:
        self._calls: dict[Key, tuple[Made, int]] = {}
        self._written: dict[Function, tuple[str, ...]] = {}  # squares and means seen, by module and function

    def saw(self, seen: Seen) -> None:
        """An operator ran."""
        if seen.phase != "forward":
            return
        dtype = _low_dtype(seen.leaves)
        if seen.op in BATCH_NORMS:
            self._statistics(seen)
        if dtype is None:
            return
        kind = self._kind(seen)
        if kind is not None:
            self._count(kind, dtype, seen)

    def found(self, num_steps: int) -> list[PrecisionUse]:
        """Every use, most calls first; calls per step, at least one."""
        uses = [
            PrecisionUse(
                kind=key[0],  # type: ignore[arg-type] # one of the kinds of `_kind`
                dtype=str(key[1]).removeprefix("torch."),
                calls=max(1, round(calls / max(num_steps, 1))),
                where=made.place,
            )
            for key, (made, calls) in self._calls.items()
        ]
        return sorted(uses, key=lambda use: -use.calls)

    def _kind(self, seen: Seen) -> str | None:
        if seen.op in LOSSES:
            return "loss"
        if seen.op in SOFTMAXES:
            return "softmax"
        if seen.op in NORMALISATIONS:
            return "normalisation"
        return "hand-written normalisation" if self._completes(seen) else None

    def _completes(self, seen: Seen) -> bool:
        """Whether a root follows a mean of squares in the same function of the same module."""
        here = (seen.module, seen.point.code if seen.point else None)
        if seen.op in SQUARES:
            self._written[here] = ("square",)
        elif seen.op in MEANS and self._written.get(here) == ("square",):
            self._written[here] = ("square", "mean")
        elif seen.op in ROOTS:
            return self._written.pop(here, ()) == ("square", "mean")
        return False

    def _statistics(self, seen: Seen) -> None:
        running = seen.arguments[_RUNNING_MEAN] if len(seen.arguments) > _TRAINING else None
        if isinstance(running, torch.Tensor) and running.dtype in LOW and seen.arguments[_TRAINING]:
            self._count("statistics", running.dtype, seen)

    def _count(self, kind: str, dtype: torch.dtype, seen: Seen) -> None:
        key = kind, dtype, seen.module, seen.site
        made, calls = self._calls.get(key) or (seen.made, 0)
        self._calls[key] = made, calls + 1


def _low_dtype(leaves: Sequence[Any]) -> torch.dtype | None:
    """The dtype of the first floating-point argument, where that is a low one."""
    first = next(
        (leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()), None
    )
    return first.dtype if first is not None and first.dtype in LOW else None
