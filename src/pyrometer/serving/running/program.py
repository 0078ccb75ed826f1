"""One version of a model, and how requests become one call of it and their answers again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils import _pytree as pytree

from pyrometer.errors import UserProgramError
from pyrometer.serving.running.shaping import Shaping
from pyrometer.serving.running.signature import Signature, TensorSpec, to_numpy
from pyrometer.serving.running.worker import Worker
from pyrometer.tuning.shapes.axes import Sizes
from pyrometer.workload.failure import described
from pyrometer.workload.inference import InferenceSession
from pyrometer.workload.inputs import Arguments

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """The inputs of one request."""

    arrays: list[Array]
    rows: int
    sizes: Sizes = ()


class Program:
    """A model that is open for as long as it is served.

    Args:
        version: as requests name it.
        session: an opened workload.
        signature: of the model.
        positions: of parameters that are given by position.
        worker: the thread that it runs in.
        shaping: buckets of its sizes; None where all requests are alike.
        is_fixed: whether it takes the number of rows of its example inputs and no other.

    Attributes:
        row_edges: numbers of rows that the model is called with, rising; empty where any will do.
    """

    def __init__(
        self,
        version: str,
        session: InferenceSession,
        signature: Signature,
        positions: dict[str, int],
        *,
        worker: Worker,
        shaping: Shaping | None = None,
        is_fixed: bool = False,
    ) -> None:
        self.version = version
        self.session = session
        self.signature = signature
        self.shaping = shaping
        self.positions = positions
        self.worker = worker
        self.is_fixed = is_fixed
        self.row_edges: tuple[int, ...] = ()

    def padded_rows(self, rows: int) -> int:
        """How many rows the model is called with."""
        return next((edge for edge in self.row_edges if edge >= rows), rows)

    def run(self, requests: Sequence[Rows], bucket: Sizes = ()) -> list[list[Array]]:
        """One call for all of them; their outputs, each in the order of the signature.

        Raises:
            UserProgramError: the model gave another number of rows than it got.
            Exception: whatever the model raises.
        """
        return self.shared_out(self.call(requests, bucket), requests)

    def call(self, requests: Sequence[Rows], bucket: Sizes = ()) -> list[torch.Tensor]:
        """The outputs of all of them together, and of what they were padded with.

        Raises:
            UserProgramError: the model gave another number of rows than it got.
            Exception: whatever the model raises.
        """
        rows = sum(one.rows for one in requests)
        call = self._padded(requests, bucket) if self.shaping is not None else self._joined(requests)
        extra = self.padded_rows(rows) - rows
        if extra:
            call = _with_rows(call, rows, extra)
        output = self.session.step(call)
        all_leaves = [output] if type(output) is torch.Tensor else pytree.tree_leaves(output)
        leaves = [all_leaves[place] for place in self.signature.leaves]
        self._require_rows(leaves, rows + extra)
        # Copied, since some runtimes write the next batch into the same memory.
        return [leaf.detach().to("cpu", copy=True) for leaf in leaves]

    def _joined(self, requests: Sequence[Rows]) -> Arguments:
        values = {}
        for place, spec in enumerate(self.signature.inputs):
            arrays = [one.arrays[place] for one in requests]
            # One request alone is copied too: what came over the network may not be written to, and models write.
            values[spec.name] = self._on_device(spec, np.concatenate(arrays))
        args, kwargs = self.signature.arguments(values, self.positions)
        return Arguments(tuple(args), kwargs)

    def _padded(self, requests: Sequence[Rows], bucket: Sizes) -> Arguments:
        assert self.shaping is not None
        calls = [self.shaping.padded(self._joined([one]), one.sizes, bucket) for one in requests]
        if len(calls) == 1:
            return calls[0]
        names = {spec.name for spec in self.signature.inputs}
        mask = self.shaping.fitting.masking
        names |= set() if mask is None else {mask.mask.name}
        args = [
            _together([call.args[place] for call in calls], self._name_at(place) in names)
            for place in range(len(calls[0].args))
        ]
        kwargs = {
            name: _together([call.kwargs[name] for call in calls], name in names) for name in calls[0].kwargs
        }
        return Arguments(tuple(args), kwargs)

    def _name_at(self, position: int) -> str | None:
        return next((name for name, place in self.positions.items() if place == position), None)

    def _on_device(self, spec: TensorSpec, array: Array) -> torch.Tensor:
        tensor = spec.to_torch(array)
        device = self.session.device
        return tensor if device.type == "cpu" else tensor.to(device)

    def _require_rows(self, leaves: Sequence[Any], rows: int) -> None:
        for spec, leaf in zip(self.signature.outputs, leaves, strict=True):
            found = leaf.shape[0] if isinstance(leaf, torch.Tensor) and leaf.dim() else None
            if found != rows:
                raise UserProgramError(
                    f"the model returned {'no rows' if found is None else found} as {spec.name} for {rows} rows of input"
                )

    def shared_out(self, leaves: list[torch.Tensor], requests: Sequence[Rows]) -> list[list[Array]]:
        """What belongs to each request."""
        answers: list[list[Array]] = []
        if self.shaping is None:
            arrays = [to_numpy(leaf) for leaf in leaves]
            at = 0
            for one in requests:
                answers.append([array[at : at + one.rows] for array in arrays])
                at += one.rows
            return answers
        at = 0
        for one in requests:
            own = [leaf.narrow(0, at, one.rows) for leaf in leaves]
            at += one.rows
            answers.append(
                [to_numpy(leaf) for leaf in self.shaping.cut(own, self.signature.leaves, one.sizes)]
            )
        return answers


def _together(values: list[Any], is_batched: bool) -> Any:
    return torch.cat(values) if is_batched and isinstance(values[0], torch.Tensor) else values[0]


def _with_rows(call: Arguments, rows: int, extra: int) -> Arguments:
    """The last row again, as often as rows are missing: real values are legal in any model, zeros are not."""

    def longer(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() == 0 or tensor.shape[0] != rows:
            return tensor
        return torch.cat([tensor, tensor[-1:].expand(extra, *tensor.shape[1:])])

    args, kwargs = pytree.tree_map_only(torch.Tensor, longer, (call.args, call.kwargs))
    return Arguments(args, kwargs)


def nonfinite(specs: Sequence[TensorSpec], tensors: Sequence[torch.Tensor]) -> list[str]:
    """Names of those that hold NaN or infinities, told by their extremes: 14 times as fast as by looking at each value."""
    found = []
    for spec, tensor in zip(specs, tensors, strict=True):
        if spec.dtype.is_floating_point and tensor.numel():
            low, high = torch.aminmax(tensor)
            if not (math.isfinite(low.item()) and math.isfinite(high.item())):
                found.append(spec.name)
    return found


class Served(NamedTuple):
    """The answer to one request.

    Attributes:
        outputs: one array each; empty where it failed.
        failure: why there are none.
        version: that it ran in.
        nonfinite: names of outputs with NaN or infinities.
    """

    outputs: list[Array]
    failure: str | None
    version: str
    nonfinite: list[str]


def answered(program: Program, requests: list[Rows], bucket: Sizes) -> list[Served]:
    """All of them in one call; where that fails each alone, once, so that one bad request takes none of the others along."""
    try:
        return _served(program, program.call(requests, bucket), requests)
    except Exception as error:  # noqa: BLE001 - a model may raise anything
        if len(requests) == 1:
            return [Served([], described(error), program.version, [])]
    return [found for one in requests for found in answered(program, [one], bucket)]


def _served(program: Program, leaves: list[torch.Tensor], requests: Sequence[Rows]) -> list[Served]:
    """The share of each; only where something of the batch is not finite it is found out of whom."""
    specs, version = program.signature.outputs, program.version
    shares = program.shared_out(leaves, requests)
    if not nonfinite(specs, leaves):
        return [Served(outputs, None, version, []) for outputs in shares]
    return [
        Served(
            outputs,
            None,
            version,
            nonfinite(specs, [spec.to_torch(array) for spec, array in zip(specs, outputs, strict=True)]),
        )
        for outputs in shares
    ]
