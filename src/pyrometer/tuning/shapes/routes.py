"""What is done to calls like those that came before: all that follows from their shapes is looked up, not worked out.

Padding, the bucket and where the output is cut depend on a call's signature alone, so that the second call of a signature
needs one look into a dictionary. A graph's own guards are not replaced by this: they hold for what is no input.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from pyrometer.tuning.shapes.axes import CallArguments, Padding, Sizes, padding_of
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
        pads: whether the call is smaller than its bucket.
        by_place: by the position of an input, how it is padded.
        by_name: the same of inputs that are given by keyword.
        cuts: of the output.
        fitting: makes the mask, where there is one.
    """

    bucket: Bucket
    sizes: Sizes
    lost: float
    pads: bool
    by_place: list[tuple[int, Padding]]
    by_name: list[tuple[str, Padding]]
    cuts: list[Cut]
    fitting: Fitting

    def padded(self, call: CallArguments) -> CallArguments:
        """The call with its inputs padded, and its mask."""
        args, kwargs = call
        if self.by_place:
            values = list(args)
            for place, padding in self.by_place:
                values[place] = padding.apply(values[place])
            args = tuple(values)
        if self.by_name:
            kwargs = dict(kwargs)
            for name, padding in self.by_name:
                kwargs[name] = padding.apply(kwargs[name])
        if self.fitting.masking is None:
            return args, kwargs
        return self.fitting.masking.apply(call, (args, dict(kwargs)), self.sizes, self.bucket.edges)

    def cropped(self, output: Any) -> Any:
        """The output cut to what belongs to the true sizes."""
        return cut(output, self.cuts) if self.cuts else output

    @staticmethod
    def of(call: CallArguments, sizes: Sizes, bucket: Bucket, *, lost: float, fitting: Fitting) -> Route:
        """Work out what is done to calls like this one, once it is known how outputs follow the sizes."""
        wanted = fitting.axes.by_name(bucket.edges)
        by_place: list[tuple[int, Padding]] = []
        by_name: list[tuple[str, Padding]] = []
        for name, dims in fitting.axes.inputs.items():
            value = fitting.axes.get(name, call)
            if value is None:
                continue
            targets = {dim: wanted[axis] for dim, axis in dims.items()}
            padding = padding_of(value, targets, fitting.axes.pad_values.get(name, 0.0))
            if padding is not None and name in call[1]:
                by_name.append((name, padding))
            elif padding is not None:
                by_place.append((fitting.axes.positions[name], padding))
        pads = sizes != bucket.edges
        cuts = fitting.cuts(sizes) if pads else []
        return Route(bucket, sizes, lost, pads, by_place, by_name, cuts, fitting)


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

    def learn(self, call: CallArguments, route: Route) -> None:
        """Remember what is done to calls like this one."""
        if len(self._routes) >= MAX_ROUTES:
            self.forget()
        self._routes[signature_of(self._model, *call)] = route

    def forget(self) -> None:
        """Let go of all routes."""
        self._routes = {}
