"""The steps that a dataset applies to a sample, watched one by one while the dataset itself applies them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyrometer.loading.profiling.keeping import is_steps, linked_objects
from pyrometer.loading.profiling.leaves import fingerprint, num_bytes_of
from pyrometer.quantity import Bytes, Seconds

_ATTRIBUTES = ("transform", "transforms")


@dataclass(frozen=True)
class Passage:
    """One call of a step.

    Attributes:
        step: its number.
        start_s: when it began.
        seconds: what it took.
        given: fingerprint of its outcome.
        num_bytes: of its outcome.
    """

    step: int
    start_s: Seconds
    seconds: Seconds
    given: bytes | None
    num_bytes: Bytes


@dataclass
class Passages:
    """What happened to one sample.

    Attributes:
        steps: calls of the steps, in order.
        taken: fingerprint and bytes of what the first step was given.
        own_s: time that watching took, apart from the steps.
    """

    steps: list[Passage] = field(default_factory=list)
    taken: tuple[bytes | None, Bytes] | None = None
    own_s: Seconds = 0.0


@dataclass(frozen=True)
class Pipeline:
    """Steps in a list that can be exchanged.

    Attributes:
        owner: of the attribute that holds them.
        attribute: its name.
        steps: what is called, in order.
        single: whether the attribute is the step itself, not a sequence of steps.
    """

    owner: Any
    attribute: str
    steps: list[Any]
    single: bool

    @property
    def names(self) -> list[str]:
        """Class or function of each step."""
        return [getattr(step, "__name__", type(step).__name__) for step in self.steps]

    def is_random(self, number: int) -> bool:
        """Whether a step says of itself that it is random: by its name, or by a probability `p` between 0 and 1."""
        step = self.steps[number]
        probability = getattr(step, "p", None)
        chance = isinstance(probability, (int, float)) and 0 < probability < 1
        return chance or self.names[number].lower().startswith("random")

    @contextlib.contextmanager
    def watched(self) -> Iterator[Passages]:
        """Exchange the steps for ones that note their calls; what is yielded is emptied by the caller for each sample."""
        passages = Passages()
        kept = getattr(self.owner, self.attribute)
        watched = [_Watched(step, number, passages) for number, step in enumerate(self.steps)]
        if self.single:
            _set(self.owner, self.attribute, watched[0])
        elif isinstance(kept, list):
            kept[:] = watched
        else:
            _set(self.owner, self.attribute, tuple(watched))
        try:
            yield passages
        finally:
            if not self.single and isinstance(kept, list):
                kept[:] = self.steps
            else:
                _set(self.owner, self.attribute, kept)


def find_pipeline(dataset: Any) -> Pipeline | None:
    """The first pipeline of a dataset or of a dataset inside of it.

    It is an attribute `transforms` that is a sequence of callables, as the classes called `Compose` have it, of the dataset or of
    one of its attributes; or a single callable called `transform`.

    >>> class Data:
    ...     transform = None
    >>> data = Data()
    >>> data.transform = str.strip
    >>> find_pipeline(data).names
    ['strip']
    """
    single: Pipeline | None = None
    for owner in linked_objects([dataset]):
        attributes: dict[str, Any] = getattr(owner, "__dict__", {})
        for name in _ATTRIBUTES:
            value: Any = attributes.get(name)
            if is_steps(value):
                return Pipeline(owner, name, list(value), single=False)
            if single is None and callable(value) and not is_steps(getattr(value, "transforms", None)):
                single = Pipeline(owner, name, [value], single=True)
    return single


def _set(owner: Any, name: str, value: Any) -> None:
    # Past the __setattr__ of modules and frozen classes: it is an attribute of the instance, and comes back.
    vars(owner)[name] = value


class _Watched:
    """Stands in for a step: calls it, and notes when, for how long, and with what outcome."""

    def __init__(self, step: Any, number: int, passages: Passages) -> None:
        self._step, self._number, self._passages = step, number, passages

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # what isinstance() of the pipeline sees
        return type(self._step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._step, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        entered = time.perf_counter()
        if self._passages.taken is None:
            taken = args or kwargs
            self._passages.taken = (fingerprint(taken), num_bytes_of(taken))
        start = time.perf_counter()
        outcome = self._step(*args, **kwargs)
        end = time.perf_counter()
        self._passages.steps.append(
            Passage(self._number, start, end - start, fingerprint(outcome), num_bytes_of(outcome))
        )
        self._passages.own_s += start - entered + time.perf_counter() - end
        return outcome
