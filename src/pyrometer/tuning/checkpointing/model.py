r"""The bytes of a step for any set of checkpointed modules. Pure: nothing is run.

Let a storage \(s\) of size \(b_s\) be made at \(t_s\). It lives until the last of: its natural end, at which nothing but
autograd would hold it; the ends of those saved tensors on it that lie in no checkpointed module; and the ends of the
checkpointed modules that it is an input of, or that keep it by their policy. A module that is checkpointed is computed again
at the first need in the backward pass, \(u\): the bytes of that, \(r(u)\), come on top for an instant, and what autograd wants
of it then lives until it is used. The peak is

\[\max_t \Big[\sum_s b_s\,[t_s ≤ t < \text{end}_s(S)] + \sum_{o∈S} \text{again}_o(t) + [t = u_o]\, r_o\Big].\]

It is a maximum over time, so the choice of \(S\) is no knapsack over a sum of bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyrometer.quantity import Bytes, Seconds

Levels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Hold:
    """A tensor that autograd saved: it keeps a storage up to a time, unless one of these modules is checkpointed."""

    storage: int
    until: int
    modules: frozenset[int]


@dataclass(frozen=True)
class Kept:
    """A storage that a checkpointed module keeps up to a time: an input, or what its policy keeps."""

    storage: int
    until: int


@dataclass(frozen=True)
class Again:
    """Bytes that are computed again and live from one time up to another."""

    nbytes: Bytes
    since: int
    until: int


@dataclass(frozen=True)
class Burst:
    """Bytes at the height of a recomputation, on top of all else at one time."""

    time: int
    nbytes: Bytes


@dataclass(frozen=True)
class Option:
    """One module behind checkpointing, with one policy.

    Attributes:
        module: its index.
        seconds: what it adds to a step.
    """

    module: int
    policy: str
    seconds: Seconds
    kept: tuple[Kept, ...] = ()
    again: tuple[Again, ...] = ()
    bursts: tuple[Burst, ...] = ()


@dataclass(frozen=True)
class StepModel:
    """A step, ready to be asked for its bytes.

    Attributes:
        fixed: bytes at each time that no choice changes.
        nbytes: of each storage that choices change.
        since: the time at which each is made.
        natural: the time up to which each lives by itself.
        holds: what autograd saved of them.
        options: what may be chosen.
        conflicts: pairs of modules of which one runs inside of the other, so that only one may be checkpointed.
    """

    fixed: Levels
    nbytes: Levels
    since: Levels
    natural: Levels
    holds: tuple[Hold, ...]
    options: tuple[Option, ...]
    conflicts: frozenset[tuple[int, int]] = frozenset()

    @functools.cached_property
    def _held(self) -> tuple[Levels, Levels]:
        """Storage and end of each hold."""
        rows = np.array([(hold.storage, hold.until) for hold in self.holds], dtype=np.int64).reshape(-1, 2)
        return rows[:, 0], rows[:, 1]

    @functools.cached_property
    def _covered(self) -> npt.NDArray[np.bool_]:
        """Hold by module: whether its checkpointing lets go."""
        num_modules = 1 + max((option.module for option in self.options), default=0)
        covered = np.zeros((len(self.holds), num_modules), dtype=np.bool_)
        for row, hold in enumerate(self.holds):
            covered[row, [module for module in hold.modules if module < num_modules]] = True
        return covered

    def levels(self, chosen: Sequence[int] = ()) -> Levels:
        """Bytes at each time, at the height of recomputations where there are any."""
        options = [self.options[index] for index in chosen]
        storage, ends = self._held
        stays = ~self._covered[:, [option.module for option in options]].any(axis=1)
        until: Levels = self.natural.copy()
        np.maximum.at(until, storage[stays], ends[stays])
        for option in options:
            for kept in option.kept:
                until[kept.storage] = max(until[kept.storage], kept.until)
        changes = np.zeros(len(self.fixed) + 1, dtype=np.int64)
        lives = until > self.since
        np.add.at(changes, self.since[lives], self.nbytes[lives])
        np.subtract.at(changes, until[lives], self.nbytes[lives])
        for option in options:
            for again in option.again:
                changes[again.since] += again.nbytes
                changes[again.until] -= again.nbytes
        levels: Levels = self.fixed + np.cumsum(changes[:-1])
        for option in options:
            for burst in option.bursts:
                levels[burst.time] += burst.nbytes
        return levels

    def peak(self, chosen: Sequence[int] = ()) -> Bytes:
        """The most bytes at any time."""
        return int(self.levels(chosen).max(initial=0))

    def seconds(self, chosen: Sequence[int]) -> Seconds:
        """What the choice adds to a step."""
        return float(sum(self.options[index].seconds for index in chosen))

    def allowed(self, chosen: Sequence[int]) -> bool:
        """Whether no module is chosen twice, and none inside of another."""
        modules = [self.options[index].module for index in chosen]
        return len(set(modules)) == len(modules) and not any(
            (a, b) in self.conflicts for a in modules for b in modules
        )
