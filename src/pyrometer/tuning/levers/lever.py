"""What a lever is: one change to a workload, when it may be tried, and how to see that it was applied."""

from __future__ import annotations

import abc
import contextlib
import importlib.util
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from pyrometer.advice import FixClass
from pyrometer.errors import InputError
from pyrometer.quantity import Ratio
from pyrometer.tuning.levers.rank_subject import RankSubject
from pyrometer.tuning.levers.stages import Kind, Place, Stage
from pyrometer.tuning.levers.subject import Subject

Parameters: TypeAlias = Mapping[str, Any]
"""Of a lever: numbers, texts and booleans by name, as they stand in a recipe."""


S = TypeVar("S")


CANNOT_TAKE = "cannot take this model"
"""What is said of a model that a converter refuses, after its name."""

VARIED: Ratio = 1.3
"""What other parameters of a lever bring over the first ones at most; 1.28 was seen, of kernels that a compiler chose by trial."""


class LeverOf(abc.ABC, Generic[S]):
    """One reversible change to a subject of some kind.

    A lever is stateless. What it changes belongs to the subject: nothing of the user's is touched, and a lever that is
    dropped needs no undoing.

    Attributes:
        name: stable, in snake_case; findings name it in their advice.
        title: what it does, in a few words.
        why: why that helps, and when it does not.
        stage: of a staged optimisation.
        place: where it is applied among others.
        fix_class: what it may change in the results: nothing, unless a lever says so.
        kinds: workloads that it fits.
        excludes: groups of which at most one lever is in a configuration, such as `executor`.
        needs: levers without which it has no effect.
        executors: what may run the model under it: names of executors, and `eager`; `None` for any.
        pays_under: executors under which it may pay where it does not without: it is tried under them as well, kept or not.
        converters: what turns the model into another form for it: where one of them could not, others that need it are not tried.
        extra: extra of the package that installs what it needs, such as `onnx`.
        modules: what must be importable.
        prior: ratio of new over old time that is expected where nothing else is known.
        for_memory: trades time for memory; it is tried only where there is a goal for memory that is not met.
        minutes: about how long applying it takes at worst, for the order of the search.
        reads_inputs: what it makes depends on the values or sizes of example inputs, and not only on their types.
        pasted: `lines`, with `$name` in the place of a parameter.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    why: ClassVar[str]
    stage: ClassVar[Stage]
    place: ClassVar[Place]
    fix_class: ClassVar[FixClass] = "exact"
    kinds: ClassVar[frozenset[Kind]] = frozenset({"inference"})
    excludes: ClassVar[frozenset[str]] = frozenset()
    needs: ClassVar[frozenset[str]] = frozenset()
    executors: ClassVar[frozenset[str] | None] = None
    pays_under: ClassVar[frozenset[str]] = frozenset()
    converters: ClassVar[frozenset[str]] = frozenset()
    extra: ClassVar[str | None] = None
    modules: ClassVar[tuple[str, ...]] = ()
    prior: ClassVar[float] = 0.95
    for_memory: ClassVar[bool] = False
    minutes: ClassVar[float] = 0.2
    reads_inputs: ClassVar[bool] = False
    pasted: ClassVar[tuple[str, ...]] = ()

    def refuses(self, subject: S) -> str | None:
        """Why this lever cannot help or cannot be applied here; `None` where it may be tried."""
        return None

    def choices(self, subject: S) -> list[Parameters]:
        """Parameters to be tried, the most promising first."""
        return [{}]

    def minutes_with(self, parameters: Parameters) -> float:
        """About how long applying it with these takes; `minutes` with the first of the choices."""
        return self.minutes

    @abc.abstractmethod
    def apply(self, subject: S, parameters: Parameters) -> None:
        """Change the subject.

        Raises:
            Exception: whatever the library behind it raises; the lever is then recorded as failed.
        """

    @abc.abstractmethod
    def not_applied(self, subject: S, parameters: Parameters) -> str | None:
        """After the first call: why it can be seen that the change is not in force; `None` where it is."""

    def lines(self, parameters: Parameters) -> list[str]:
        """The Python that does the same to `model`, to paste; empty where only the recipe can."""
        return [string.Template(line).safe_substitute(parameters) for line in self.pasted]

    def process_settings(self, parameters: Parameters) -> list[AbstractContextManager[Any]]:
        """What has to hold around the process that runs the model; for recipes that are applied."""
        return []


class Lever(LeverOf[Subject]):
    """One reversible change to a workload, in the process that runs it."""


class Executor(Lever):
    """A lever that decides what runs the model; a configuration has one at most."""

    place: ClassVar[Place] = "executor"
    excludes = frozenset({"executor"})


class RankLever(LeverOf[RankSubject]):
    """One reversible change to how a script spreads its model over ranks.

    It is applied before the script starts; what `refuses` and `choices` ask was seen while the script ran as it is.

    Attributes:
        unseen: what is told where the lever never counted that it is in force.
    """

    stage: ClassVar[Stage] = "device"
    place: ClassVar[Place] = "settings"
    kinds = frozenset({"ranks"})
    unseen: ClassVar[str] = "it was not called"

    def not_applied(self, subject: RankSubject, parameters: Parameters) -> str | None:
        """Why it can be seen after the first steps that the change is not in force."""
        return None if subject.counts.get(self.name) else self.unseen


V = TypeVar("V")


@contextlib.contextmanager
def held(set_to: Callable[[V], object], value: V, before: V) -> Iterator[None]:
    """Hold a setting of the process, and set what was before at the end."""
    set_to(value)
    try:
        yield
    finally:
        set_to(before)


L = TypeVar("L", bound=type[LeverOf[Any]])

registered: dict[str, LeverOf[Any]] = {}
"""By name; those of our own once their modules are imported."""


def lever(kind: L) -> L:
    """Register a class of levers under its name.

    Raises:
        InputError: another class has that name; names both.
    """
    other = registered.get(kind.name)
    if other is not None and type(other) is not kind:
        theirs, ours = (f"{each.__module__}.{each.__qualname__}" for each in (type(other), kind))
        raise InputError(f"lever {kind.name!r}: both {theirs} and {ours} have that name; rename one")
    registered[kind.name] = kind()
    return kind


def missing_packages(lever: LeverOf[Any]) -> str | None:
    """What has to be installed before the lever can be tried, as a sentence; `None` where nothing is missing."""
    missing = [module for module in lever.modules if importlib.util.find_spec(module) is None]
    if not missing:
        return None
    how = f"pip install 'pyrometer[{lever.extra}]'" if lever.extra else f"pip install {' '.join(missing)}"
    return f"needs {', '.join(missing)}: {how}"


def uninstalled(lacking: Iterable[LeverOf[Any]]) -> str | None:
    """What installs the packages of levers that lack theirs, as one command; `None` where no extra brings any of them."""
    by_name = {lever.name: lever.extra for lever in lacking if lever.extra is not None}
    if not by_name:
        return None
    extras = ",".join(sorted(set(by_name.values())))
    return f"not tried without their packages: {', '.join(by_name)}; pip install 'pyrometer[{extras}]'"
