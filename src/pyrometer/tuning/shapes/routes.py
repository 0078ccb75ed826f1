"""What is done to calls like those that came before: all that follows from their shapes is looked up, not worked out.

Padding, the bucket and where the output is cut depend on a call's signature alone, so that the second call of a signature
needs one look into a dictionary. A graph's own guards are not replaced by this: they hold for what is no input.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from pyrometer.tuning.shapes.axes import Padding, Sizes, padding_of
from pyrometer.tuning.shapes.checking import CallArguments
from pyrometer.tuning.shapes.cropping import Cut, cut
from pyrometer.tuning.shapes.fitting import Fitting
from pyrometer.tuning.shapes.signature import signature_of
from pyrometer.tuning.shapes.store import Bucket

MAX_ROUTES = 4096
"""Signatures that are remembered; beyond them all are learned anew."""


@dataclass(frozen=True)
class Route:
    """The way of a call through its bucket.

    Attributes:
        bucket: that serves it.
        sizes: of the call, before padding.
        lost: share of the bucket's cost that is spent on padding.
        paddings: by the position or the keyword of an input, what is padded.
        cuts: of the output.
        fitting: makes the mask, where there is one.
    """

    bucket: Bucket
    sizes: Sizes
    lost: float
    paddings: list[tuple[int | str, Padding]]
    cuts: list[Cut]
    fitting: Fitting

    @property
    def pads(self) -> bool:
        """Whether the call is smaller than its bucket."""
        return self.sizes != self.bucket.edges

    def padded(self, call: CallArguments) -> CallArguments:
        """The call with its inputs padded, and its mask."""
        masking = self.fitting.masking
        if not self.paddings and masking is None:
            return call
        args, kwargs = list(call[0]), dict(call[1])
        for place, padding in self.paddings:
            if isinstance(place, int):
                args[place] = padding.apply(args[place])
            else:
                kwargs[place] = padding.apply(kwargs[place])
        padded = tuple(args), kwargs
        return padded if masking is None else masking.apply(call, padded, self.sizes, self.bucket.edges)

    def cropped(self, output: Any) -> Any:
        """The output cut to what belongs to the true sizes."""
        return cut(output, self.cuts) if self.cuts else output


class Routes:
    """Routes by signature.

    Args:
        model: whose modes are part of the signature.
    """

    def __init__(self, model: Callable[..., Any]) -> None:
        self._model = model
        self._routes: dict[Hashable, Route] = {}

    def find(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Route | None:
        """The route of a call like this, while its bucket is held."""
        if not self._routes:
            return None
        route = self._routes.get(signature_of(self._model, args, kwargs))
        return route if route is not None and route.bucket.held else None

    def learn(
        self, call: CallArguments, sizes: Sizes, bucket: Bucket, *, lost: float, fitting: Fitting
    ) -> None:
        """Remember what is done to calls like this one."""
        if len(self._routes) >= MAX_ROUTES:
            self.forget()
        wanted = dict(zip(fitting.axes.names, bucket.edges, strict=True))
        paddings: list[tuple[int | str, Padding]] = []
        for name, dims in fitting.axes.inputs.items():
            value = fitting.axes.get(name, *call)
            padding = None
            if value is not None:
                targets = {dim: wanted[axis] for dim, axis in dims.items()}
                padding = padding_of(value, targets, fitting.axes.pad_values.get(name, 0.0))
            if padding is not None:
                paddings.append((name if name in call[1] else fitting.axes.positions[name], padding))
        cuts = fitting.cuts(sizes) if sizes != bucket.edges else []
        route = Route(bucket, sizes, lost, paddings, cuts, fitting)
        self._routes[signature_of(self._model, *call)] = route

    def forget(self) -> None:
        """Let go of all routes."""
        self._routes = {}
