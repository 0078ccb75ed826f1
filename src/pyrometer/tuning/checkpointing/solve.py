r"""The cheapest modules to compute again under a limit of bytes: exactly, as an integer program.

With \(x_o ∈ \{0, 1\}\) for each option, a storage is held at time \(t\) by what autograd saved unless an option lets go of it,
and by options that keep it. Its being alive, \(a\), is bounded from below by

\[a ≥ 1 - \sum_{o \text{ lets go of } h} x_o \;\text{ for every hold } h, \qquad a ≥ x_o \;\text{ for every } o \text{ that keeps it},\]

so the bytes at \(t\) are a linear function of \(x\) and \(a\), and the level at the height of a recomputation is one too. There
is one such row for each time. Only those that bind are needed: the program is solved with few rows, the choice is put into the
model, and the times at which it is over the limit are added, until there are none. Each program is a relaxation of the whole,
so the first choice that the model accepts is optimal. Programs are solved by HiGHS (branch and cut).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyrometer.quantity import Bytes, Seconds
from pyrometer.tuning.checkpointing.model import Levels, StepModel

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

MOST_ROUNDS = 300
NEW_ROWS = 12
TIME_LIMIT_S = 20.0
FRONTIER_POINTS = 24


@dataclass(frozen=True)
class Choice:
    """Options that are chosen, with what the model says of them.

    Attributes:
        options: their indices.
        proven: whether nothing better exists under the model.
    """

    options: tuple[int, ...]
    peak_bytes: Bytes
    seconds: Seconds
    proven: bool = True


def cheapest(model: StepModel, limit_bytes: Bytes, limit_s: Seconds = math.inf) -> Choice | None:
    """The options of least time whose peak is within the limits; `None` when there are none."""
    return _Program(model, limit_s).cheapest(limit_bytes)


def lowest(model: StepModel, limit_s: Seconds = math.inf) -> Choice:
    """The options of the least peak within a limit of time; of those the cheapest."""
    program = _Program(model, limit_s)
    least = program.lowest()
    return program.cheapest(least.peak_bytes) or least


def frontier(model: StepModel) -> list[Choice]:
    """Choices of which none is better in both peak and time, from nothing checkpointed to the least peak.

    Between neighbours lies at least the whole span of bytes over `FRONTIER_POINTS`.
    """
    program = _Program(model, math.inf)
    choices = [choice_of(model, ())]
    least = program.lowest().peak_bytes
    gap = max((choices[0].peak_bytes - least) // FRONTIER_POINTS, 1)
    while choices[-1].peak_bytes > least:
        limit = max(choices[-1].peak_bytes - gap, least)
        following = program.cheapest(limit)
        if following is None:
            break
        choices.append(following)
    return non_dominated(choices)


def non_dominated(choices: Iterable[Choice]) -> list[Choice]:
    """The choices that no other beats, by rising time and falling peak."""
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda one: (one.seconds, one.peak_bytes)):
        if not kept or choice.peak_bytes < kept[-1].peak_bytes:
            kept.append(choice)
    return kept


def choice_of(model: StepModel, options: Sequence[int], *, proven: bool = True) -> Choice:
    """A choice with the model's figures."""
    chosen = tuple(sorted(options))
    return Choice(chosen, model.peak(chosen), model.seconds(chosen), proven)


class _Program:
    """The integer program of one model, with the rows that were needed so far."""

    def __init__(self, model: StepModel, limit_s: Seconds) -> None:
        self._model = model
        self._limit_s = limit_s
        self._num_options = len(model.options)
        self._rows = _Rows(model)

    def cheapest(self, limit_bytes: Bytes) -> Choice | None:
        if self._model.peak() <= limit_bytes:
            return choice_of(self._model, ())
        for _ in range(MOST_ROUNDS):
            solved = self._solve(limit_bytes)
            if solved is None:
                return None
            options, proven = solved
            levels = self._model.levels(options)
            if not self._rows.add_over(levels, limit_bytes):
                return choice_of(self._model, options, proven=proven)
        return None

    def lowest(self) -> Choice:
        """The least peak: the same rows, with the limit as an unknown that is made small."""
        best = choice_of(self._model, ())
        self._rows.add_over(self._model.levels(), best.peak_bytes - 1)
        for _ in range(MOST_ROUNDS):
            solved = self._solve(None)
            if solved is None:
                break
            choice = choice_of(self._model, solved[0], proven=solved[1])
            best = min(best, choice, key=lambda one: one.peak_bytes)
            if not self._rows.add_over(self._model.levels(choice.options), self._bound):
                break
        return best

    def _solve(self, limit_bytes: Bytes | None) -> tuple[tuple[int, ...], bool] | None:
        """Options under the present rows; without a limit those that make it smallest."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import
        from scipy.sparse import csr_array

        rows, n = self._rows, self._num_options
        scale = float(max(self._model.peak(), 1))
        num = n + rows.num_alive + 1  # the last unknown is the limit itself
        cost = np.zeros(num)
        seconds = np.array([option.seconds for option in self._model.options])
        if limit_bytes is None:
            cost[-1] = 1.0
            low, high = 0.0, 1.0
        else:
            cost[:n] = seconds / max(float(seconds.max(initial=0.0)), 1e-12)
            low = high = limit_bytes / scale
        constraints = [rows.constraint(num, scale)]
        if math.isfinite(self._limit_s):
            timed = csr_array(np.concatenate([seconds, np.zeros(num - n)])[None, :])
            constraints.append(LinearConstraint(timed, -np.inf, self._limit_s))
        result = milp(
            cost,
            integrality=np.concatenate([np.ones(n), np.zeros(num - n)]),
            bounds=Bounds(np.append(np.zeros(num - 1), low), np.append(np.ones(num - 1), high)),
            constraints=constraints,
            options={"time_limit": TIME_LIMIT_S, "mip_rel_gap": 0.0},
        )
        if result.x is None:
            return None
        self._bound = math.floor(result.x[-1] * scale + 0.5)
        return tuple(int(i) for i in np.flatnonzero(result.x[:n] > 0.5)), result.status == 0


class _Rows:
    """Rows of the program: who excludes whom, what being alive means, and bytes at the times that matter."""

    def __init__(self, model: StepModel) -> None:
        self._model = model
        self._alive: dict[tuple[frozenset[frozenset[int]], frozenset[int]], int] = {}
        self._entries: list[tuple[dict[int, float], float]] = []
        """Coefficients (by unknown; bytes for rows of times) and the least value of their sum."""
        self._times: dict[int, tuple[dict[int, float], float]] = {}
        self._holds: dict[int, list[tuple[int, frozenset[int]]]] = defaultdict(list)
        self._keeps: dict[int, list[tuple[int, int]]] = defaultdict(list)
        by_module: dict[int, list[int]] = defaultdict(list)
        for index, option in enumerate(model.options):
            by_module[option.module].append(index)
            for kept in option.kept:
                self._keeps[kept.storage].append((kept.until, index))
        for hold in model.holds:
            options = frozenset(index for module in hold.modules for index in by_module.get(module, ()))
            self._holds[hold.storage].append((hold.until, options))
        self._exclude(by_module)

    @property
    def num_alive(self) -> int:
        return len(self._alive)

    def add_over(self, levels: Levels, limit_bytes: Bytes) -> bool:
        """Add rows for times over the limit, the highest first and far from each other; False when there are none."""
        over = np.flatnonzero(levels > limit_bytes)
        new = [int(time) for time in over if int(time) not in self._times]
        if not new:
            return False
        new.sort(key=lambda time: -levels[time])
        apart = max(len(levels) // (4 * NEW_ROWS), 1)
        taken: list[int] = []
        for time in new:
            if all(abs(time - other) >= apart for other in taken):
                taken.append(time)
            if len(taken) == NEW_ROWS:
                break
        for time in taken:
            self._times[time] = self._level(time)
        return True

    def constraint(self, num: int, scale: float) -> LinearConstraint:
        """All rows as one constraint of `num` unknowns, of which the last is the limit; bytes in units of `scale`."""
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        least: list[float] = []
        for coefficients, bound in self._entries:
            rows += [len(least)] * len(coefficients)
            columns += [self._column(key) for key in coefficients]
            values += coefficients.values()
            least.append(bound)
        for coefficients, constant in self._times.values():
            rows += [len(least)] * (len(coefficients) + 1)
            columns += [*(self._column(key) for key in coefficients), num - 1]
            values += [*(-value / scale for value in coefficients.values()), 1.0]
            least.append(constant / scale)
        matrix = csr_array((values, (rows, columns)), shape=(len(least), num))
        return LinearConstraint(matrix, np.array(least), np.inf)

    def _column(self, key: int) -> int:
        """Options come first; what is alive is numbered from -1 downwards while it grows in number."""
        return key if key >= 0 else len(self._model.options) - key - 1

    def _exclude(self, by_module: dict[int, list[int]]) -> None:
        for options in by_module.values():
            if len(options) > 1:
                self._entries.append((dict.fromkeys(options, -1.0), -1.0))
        for a, b in self._model.conflicts:
            if a < b:
                both = [*by_module.get(a, ()), *by_module.get(b, ())]
                self._entries.append((dict.fromkeys(both, -1.0), -1.0))

    def _level(self, time: int) -> tuple[dict[int, float], float]:
        """Bytes at a time: a coefficient for each unknown, and the constant part."""
        model = self._model
        constant = float(model.fixed[time])
        coefficients: dict[int, float] = defaultdict(float)
        for storage in np.flatnonzero(model.since <= time).tolist():
            nbytes = float(model.nbytes[storage])
            holds = [options for until, options in self._holds[storage] if until > time]
            keeps = frozenset(option for until, option in self._keeps[storage] if until > time)
            if model.natural[storage] > time or frozenset() in holds:
                constant += nbytes
            elif holds or keeps:
                coefficients[self._being_alive(frozenset(holds), keeps)] += nbytes
        for index, option in enumerate(model.options):
            again = sum(
                recomputation.nbytes
                for recomputation in option.again
                if recomputation.since <= time < recomputation.until
            )
            burst = sum(one.nbytes for one in option.bursts if one.time == time)
            if again or burst:
                coefficients[index] += again + burst
        return dict(coefficients), constant

    def _being_alive(self, holds: frozenset[frozenset[int]], keeps: frozenset[int]) -> int:
        known = self._alive.get((holds, keeps))
        if known is None:
            known = self._alive[holds, keeps] = -len(self._alive) - 1
            for options in holds:
                self._entries.append(({known: 1.0, **dict.fromkeys(options, 1.0)}, 1.0))
            for option in keeps:
                self._entries.append(({known: 1.0, option: -1.0}, 0.0))
        return known
