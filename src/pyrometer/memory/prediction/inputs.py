"""The inputs that a rehearsal's steps consume: doubles of what the program makes, in the sizes that are asked for."""

from __future__ import annotations

import inspect
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch

from pyrometer.memory.prediction.doubles import Doubles
from pyrometer.memory.prediction.settings import Settings
from pyrometer.memory.prediction.sizes import (
    BATCH,
    SEQUENCE,
    Axes,
    axes_of,
    named_tensors,
    require_axis,
    require_clear_sequence,
    resized_shape,
    size_of,
)
from pyrometer.memory.recording.recorder import AllocationRecorder
from pyrometer.quantity import Bytes
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.failure import user_code
from pyrometer.workload.inference import Inference
from pyrometer.workload.inputs import Arguments, argument_source
from pyrometer.workload.training import Training
from pyrometer.workload.variant import Variant

Draw: TypeAlias = Callable[[int], list[Any]]


def drawing(work: Training | Inference, home: torch.device) -> Draw:
    """How the program makes sets of inputs: a function of their number."""
    if isinstance(work, Inference):
        with user_code("making the inputs"):
            source, _ = argument_source(work.inputs, home, Variant())
        return lambda count: [source() for _ in range(count)]
    return lambda count: _batches(work, count)


def _batches(work: Training, count: int) -> list[Any]:
    stream = BatchStream(work.batches)
    try:
        return [stream.next() for _ in range(count)]
    finally:
        stream.close()


class DoubledInputs:
    """Doubles of inputs, one set after the other.

    What the program keeps alive by itself (a list of batches, fixed inputs) stays alive here; what it makes anew for
    each step is let go as it is handed over.

    Args:
        work: for the names of its inputs.
        doubles: makes the doubles.
        settings: sizes, and which dimensions they are.
        draw: makes so many sets; what it holds itself, a session would hold too.
        count: how many the steps consume.
        device: where the program runs.

    Attributes:
        sizes: of batch and sequence, as the steps will see them.
        source_bytes: memory on the device that inputs are taken from.

    Raises:
        InputError: the dimension of a size cannot be told.
    """

    def __init__(
        self,
        work: Training | Inference,
        doubles: Doubles,
        settings: Settings,
        *,
        draw: Draw,
        count: int,
        device: torch.device,
    ) -> None:
        self.sizes: dict[str, int | None] = {BATCH: settings.batch, SEQUENCE: settings.sequence}
        self.source_bytes: list[Bytes] = []
        self._work, self._doubles, self._device = work, doubles, device
        self._axes: Axes | None = None
        self._dims = settings.dims
        self._queue: deque[Any] = deque()
        self._kept = self._doubled(self._drawn(draw, count))

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield self.next()

    def next(self) -> Any:
        """The next set."""
        return self._queue.popleft()

    def _drawn(self, draw: Draw, count: int) -> list[Any]:
        """All sets; notes the memory that they are taken from, such as a data set that is held whole."""
        with AllocationRecorder(self._device) as recorder, user_code("making the inputs"):
            found = draw(count)
            own = [
                id(allocation)
                for inputs in found
                for _, tensor in named_tensors(inputs)
                for allocation in recorder.allocations_of(tensor)
            ]
            self.source_bytes = [
                allocation.nbytes
                for allocation in recorder.log.allocations
                if allocation.preexisting and allocation.died is None and id(allocation) not in own
            ]
        return found

    def _doubled(self, sets: list[Any]) -> list[Any]:
        """Fill the queue; returns doubles of what the program itself holds."""
        memo: dict[int, Any] = {}
        pairs: list[tuple[weakref.ref[torch.Tensor], torch.Tensor]] = []
        sets.reverse()
        while sets:
            inputs = sets.pop()
            tensors = dict(named_tensors(_named_tree(self._work, inputs)))
            wanted = self._wanted(tensors)
            by_id = {id(tensor): wanted[name] for name, tensor in tensors.items()}
            self._queue.append(self._doubles.resized(inputs, by_id, memo))
            pairs += [
                (weakref.ref(tensor), memo[id(tensor)]) for tensor in tensors.values() if id(tensor) in memo
            ]
            del inputs, tensors
        memo.clear()  # it keeps the originals alive
        return [double for original, double in pairs if original() is not None]

    def _wanted(self, tensors: dict[str, torch.Tensor]) -> dict[str, list[int]]:
        """The shape of each input."""
        if self._axes is None:
            self._axes = axes_of(tensors, self._dims)
            for axis, size in self.sizes.items():
                if size is not None:
                    require_axis(tensors, self._axes, axis)
            if self._dims is None and self.sizes[SEQUENCE] is not None:
                require_clear_sequence(tensors, self._axes)
            self._changed = dict(self.sizes)
            self.sizes = {
                axis: size or size_of(tensors, self._axes, axis) for axis, size in self.sizes.items()
            }
        return {
            name: resized_shape(tensor.shape, self._axes.get(name, {}), self._changed)
            for name, tensor in tensors.items()
        }


def _named_tree(work: Training | Inference, inputs: Any) -> Any:
    """Inputs by name: a model's by its parameters, a batch's pair as input and target."""
    if isinstance(inputs, Arguments) and isinstance(work, Inference):
        return dict(zip(_names(work, len(inputs.args)), inputs.args, strict=True)) | inputs.kwargs
    if isinstance(inputs, (tuple, list)) and len(inputs) == 2:
        return {"input": inputs[0], "target": inputs[1]}
    return inputs


def _names(work: Inference, count: int) -> list[str]:
    model = getattr(work.model, "_orig_mod", work.model)
    names = [
        name
        for name, parameter in inspect.signature(model.forward).parameters.items()
        if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    ]
    return (names + [str(place) for place in range(len(names), count)])[:count]
