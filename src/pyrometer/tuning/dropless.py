"""Running a model in training mode without its dropout, with nothing changed about the model.

Calls of dropout are answered by `torch.overrides.TorchFunctionMode`, which holds in the calling thread alone: other threads
may use the model meanwhile. Dropout within a single operation of torch's own (`torch.lstm`) stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode

NAMES = {
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
    "feature_dropout",
}
INNER = {"scaled_dot_product_attention": 4, "multi_head_attention_forward": 10}
"""Functions with a `dropout_p`, and at which place they take it."""


class Dropless(TorchFunctionMode):
    """Within it dropout does nothing.

    Attributes:
        met: whether there was any to leave out.

    >>> import torch
    >>> with Dropless() as mode:
    ...     torch.nn.functional.dropout(torch.ones(2), 0.5).tolist(), mode.met
    ([1.0, 1.0], True)
    """

    def __init__(self) -> None:
        super().__init__()
        self.met = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Answer dropout; everything else runs as it is."""
        named = dict(kwargs or {})
        name = getattr(func, "__name__", "").rstrip("_")
        if name in NAMES:
            trains = named.get("train", named.get("training", args[2] if len(args) > 2 else True))
            self.met |= bool(trains) and float(named.get("p", args[1] if len(args) > 1 else 0.5)) > 0
            return args[0] if args else named["input"]
        if name in INNER:
            args, named = self._without(INNER[name], args, named)
        return func(*args, **named)

    def _without(self, place: int, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The arguments of a function that drops within, with a probability of 0."""
        given = args[place] if place < len(args) else named.get("dropout_p", 0.0)
        if not given:
            return args, named
        # Attention as a function for modules is told apart whether it is in training; by itself it always drops.
        self.met |= bool(named.get("training", True))
        if place < len(args):
            return (*args[:place], 0.0, *args[place + 1 :]), named
        return args, {**named, "dropout_p": 0.0}
