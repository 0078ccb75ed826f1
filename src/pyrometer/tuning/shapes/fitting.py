"""Making calls fit a bucket and cutting their results back, with proof on the caller's own inputs that nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pyrometer.bench.matrix.cell import OutputError
from pyrometer.tuning.dropless import Dropless
from pyrometer.tuning.shapes.axes import Axes, CallArguments, Sizes, fit, like_the_tensor
from pyrometer.tuning.shapes.checking import PaddingError, Reference, size_told
from pyrometer.tuning.shapes.cropping import (
    Cut,
    Shapes,
    cut,
    disputed_size,
    learn_rules,
    output_shapes,
)
from pyrometer.tuning.shapes.hostile import Hostile
from pyrometer.tuning.shapes.masks import NAMES, Masking
from pyrometer.tuning.shapes.record import CropRule

MAX_RUNS = 16
"""Runs of the model, once per axis, to tell how its output follows."""

UNABLE = (RuntimeError, ValueError, IndexError, AssertionError)
"""What a model raises at sizes or values that are none of its own."""

MASK_NAMES = frozenset(name for names in NAMES.values() for name in names)


@dataclass
class Fitting:
    """Pads, masks and cuts for one model."""

    model: Callable[..., Any]
    axes: Axes
    masking: Masking | None
    reference: Reference
    rules: dict[str, list[CropRule]] = field(default_factory=dict)

    def padded(self, call: CallArguments, sizes: Sizes, edges: Sizes) -> CallArguments:
        """The call with its inputs padded from their sizes to the edges, and its mask."""
        padded = self.axes.with_sizes(call, edges)
        return padded if self.masking is None else self.masking.apply(call, padded, sizes, edges)

    def cropped(self, output: Any, sizes: Sizes) -> Any:
        """The output cut to what belongs to the true sizes."""
        cuts = self.cuts(sizes)
        return cut(output, cuts) if cuts else output

    def cuts(self, sizes: Sizes) -> list[Cut]:
        """Where outputs end that belong to the true sizes, by the rules known so far."""
        given = self.axes.by_name(sizes)
        rules = (rule for axis in self.axes.names for rule in self.rules.get(axis, ()))
        return [Cut(rule.leaf, rule.dim, rule.size(given[rule.axis])) for rule in rules]

    def resized(self, call: CallArguments, sizes: Sizes) -> CallArguments:
        """The call at other sizes with real values only: inputs are repeated until they are long enough, then cut."""
        found = self.axes.sizes(call)
        given, wanted = self.axes.by_name(found), self.axes.by_name(sizes)
        varying = dict(self.axes.inputs)
        if self.masking is not None and self.masking.mask.name not in varying:
            own = self.axes.get(self.masking.mask.name, call)
            if own is not None and self.masking.mask.kind != "lengths":
                varying[self.masking.mask.name] = self.masking.dims(own, found)
        values = {}
        for name, dims in varying.items():
            value = self.axes.get(name, call)
            if value is None:
                continue
            repeats = [1] * value.dim()
            for dim, axis in dims.items():
                repeats[dim] = -(-wanted[axis] // given[axis])
            with like_the_tensor(value):
                longer = value.repeat(repeats)
            values[name] = fit(longer, {dim: wanted[axis] for dim, axis in dims.items()}, 0.0)
        return self.axes.replaced(call, values)

    def check(
        self, call: CallArguments, padded: CallArguments, sizes: Sizes, edges: Sizes, *, output: Any
    ) -> OutputError:
        """Compare the output of a padded call with that of the model itself, unpadded and uncompiled.

        Raises:
            PaddingError: they differ, or the output cannot be cut back.
        """
        what = self._what(sizes, edges)
        dropless = Dropless()
        expected = self.reference.run(call, dropless=dropless)
        # What dropout leaves of a compiled result cannot be compared; that of the model without it can.
        found = self.reference.run(padded) if dropless.met else output
        text = size_told(found, expected)
        if text is not None and self.reference.tolerance != float("inf"):
            raise PaddingError(f"{what}: {text}; return it apart from the model, or bucket another dimension")
        self._learn_rules(what, call, sizes, edges, expected=expected, found=found)
        error = self.reference.error(self.cropped(found, sizes), expected)
        if not error.within_tolerance:
            masked = self._with_mask(what, call, sizes, expected)
            raise self.reference.refusal(
                what, error, call=masked, padded=padded, crop=lambda result: self.cropped(result, sizes)
            )
        return error

    def challenge(self, call: CallArguments, padded: CallArguments, sizes: Sizes, edges: Sizes) -> bool:
        """Check a padded call, uncompiled, with other values than the caller's; to be called after `check`.

        A trial says nothing where the model itself cannot take its values (it raises, or numbers overflow), or where
        rounding alone explains what is found.

        Returns:
            Whether the result depends on what the padding holds, so that it is right for what it is padded with only.

        Raises:
            PaddingError: with some values padding changes the result.
        """
        if self.reference.tolerance == float("inf"):
            return False
        kept = frozenset() if self.masking is None else frozenset({self.masking.mask.name})
        hostile = Hostile(self.axes, kept | MASK_NAMES, call)
        expected = self.reference.run(call)
        finite = _is_finite(expected)
        depends = self._depends_on_padding(hostile, padded, sizes, expected)
        for values, trial in hostile.calls(thorough=depends):
            try:
                wanted = self.reference.run(trial)
                other = self.padded(trial, sizes, edges)
                found = self.reference.run(other)
            except Exception:  # noqa: BLE001, S112 - whatever a model raises at values that nobody gave it
                continue
            error = self.reference.error(self.cropped(found, sizes), wanted)
            if error.within_tolerance or (finite and not _is_finite(wanted)):
                continue
            if error.mismatch is None and not self.reference.is_steady(trial, wanted, error):
                continue
            what = self._what(sizes, edges)
            raise self.reference.refusal(
                what,
                error,
                call=self._with_mask(what, trial, sizes, wanted),
                padded=other,
                crop=lambda result: self.cropped(result, sizes),
                values=values,
            )
        return depends

    def _depends_on_padding(
        self, hostile: Hostile, padded: CallArguments, sizes: Sizes, expected: Any
    ) -> bool:
        for sign in (1, -1):
            try:
                found = self.reference.run(hostile.other_padding(padded, sizes, sign))
            except Exception:  # noqa: BLE001 - the same
                return True
            if not self.reference.error(self.cropped(found, sizes), expected).within_tolerance:
                return True
        return False

    def _what(self, sizes: Sizes, edges: Sizes) -> str:
        """What is padded, in words."""
        return "padding " + " and ".join(
            f"{axis} from {size} to {edge}"
            for axis, size, edge in zip(self.axes.names, sizes, edges, strict=True)
            if size != edge
        )

    def _with_mask(self, what: str, call: CallArguments, sizes: Sizes, expected: Any) -> CallArguments:
        """The unpadded call with the mask that the padded one has.

        Raises:
            PaddingError: the mask says that real values are padding.
        """
        if self.masking is None:
            return call
        masked, mask = self.padded(call, sizes, sizes), self.masking.mask
        if not self.reference.error(self.reference.run(masked), expected).within_tolerance:
            raise PaddingError(
                f"{what}: the mask changes the result even where nothing is padded, so {mask.name!r} does not mean "
                f"{mask.kind!r}; pass mask=Mask({mask.name!r}, kind=…) with another of keep, ignore and lengths"
            )
        return masked

    def _learn_rules(
        self, what: str, call: CallArguments, sizes: Sizes, edges: Sizes, *, expected: Any, found: Any
    ) -> None:
        """Learn how the output follows each axis that was padded for the first time, each by a run of its own."""
        changed = [place for place, (size, edge) in enumerate(zip(sizes, edges, strict=True)) if size != edge]
        for place in changed:
            axis = self.axes.names[place]
            if axis in self.rules:
                continue
            alone = found
            if len(changed) > 1:
                one = _with(sizes, place, edges[place])
                alone = self.reference.run(self.padded(call, sizes, one))
            runs = {sizes[place]: output_shapes(expected), edges[place]: output_shapes(alone)}
            rules, problem = self._settled_rules(call, sizes, place, runs)
            if problem is not None:
                raise PaddingError(f"{what}: {problem}; bucket another dimension")
            self.rules[axis] = [own[0] for own in rules]

    def _settled_rules(
        self, call: CallArguments, sizes: Sizes, place: int, runs: dict[int, Shapes]
    ) -> tuple[list[list[CropRule]], str | None]:
        """Rules that agree at every size: where several fit the runs so far, the model is run where they differ."""
        cannot_run: set[int] = set()
        while True:
            rules, problem = learn_rules(self.axes.names[place], runs)
            disputed = disputed_size(rules, sizes[place], cannot_run)
            if problem is not None or disputed is None or len(runs) + len(cannot_run) > MAX_RUNS:
                return rules, problem
            try:
                other = self.resized(call, _with(sizes, place, disputed))
                runs[disputed] = output_shapes(self.reference.run(other))
            except UNABLE:
                cannot_run.add(disputed)  # not a size of this model: the rules may differ there


def _with(sizes: Sizes, place: int, size: int) -> Sizes:
    return (*sizes[:place], size, *sizes[place + 1 :])


def _is_finite(output: Any) -> bool:
    leaves = pytree.tree_leaves(output)
    return all(bool(leaf.isfinite().all()) for leaf in leaves if isinstance(leaf, torch.Tensor))
