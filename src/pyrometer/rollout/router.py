"""Who answers: the old version or a new one, by chance per batch or by a hash of the unit that asks.

The hash is keyed BLAKE2b, the same in every process and on every host, now and after a restart. It puts each unit on a point
between 0 and 1, where the new version has the beginning: as its share grows, units move from the old version to the new and none
moves back. A checksum would be quicker, but those of one unit under two keys are no independent draws, and the experiments would mix.

>>> router = Router({"v1": 0.9, "v2": 0.1}, key="perception")
>>> router.choose("vehicle-17"), router.choose("vehicle-18")
('v1', 'v1')
>>> router.update({"v1": 0.8, "v2": 0.2})
>>> router.choose("vehicle-17"), router.choose("vehicle-18")
('v1', 'v2')
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from pyrometer.errors import InputError
from pyrometer.rollout.flags import DeviceFlag

_POINTS = 1 << 64
_KEY_BYTES = 64
"""The longest key of BLAKE2b."""

UnitId = str | int | bytes


class Route(NamedTuple):
    """What was decided for one unit or batch."""

    arm: str
    """Who answers."""
    shadow: str | None = None
    """Who computes the same beside, unseen, to be compared; mostly nobody."""
    epoch: int = 0
    """Of the shares that it was decided by."""


class _Table(NamedTuple):
    """Shares as they are looked up; replaced whole, so that no request sees half of a change."""

    arms: tuple[str, ...]
    low: tuple[tuple[float, str], ...]  # where those that grow from 0 end
    high: tuple[tuple[float, str], ...]  # where those that grow from 1 begin
    weights: dict[str, float]
    epoch: int


class Router:
    """Chooses a version for each unit or batch.

    Args:
        weights: share of each version; the first is the one that is there already. Two new ones grow from either end, so that
            neither moves the units of the other; of more, those in the middle shift.
        key: what the hash is keyed with, such as the name of the rollout: units draw anew for each.
        sticky: whether a unit stays with its version; else chance decides at every call, which is for batches.
        shadow: the first version answers everything, and a new one computes its share beside it.
        flag: a feature flag that may name the version for this device, before any weight.
        rng: of the draws that are not sticky.

    Raises:
        InputError: weights that are no shares.
    """

    def __init__(
        self,
        weights: Mapping[str, float],
        *,
        key: str = "",
        sticky: bool = True,
        shadow: bool = False,
        flag: DeviceFlag | None = None,
        rng: random.Random | None = None,
    ) -> None:
        raw = key.encode()
        self._key = raw if len(raw) <= _KEY_BYTES else blake2b(raw).digest()
        self._sticky, self._shadow, self._flag = sticky, shadow, flag
        self._draw = (rng or random.Random()).random  # noqa: S311 - no secret
        self._table = _tabulate(weights, 0)

    @property
    def weights(self) -> dict[str, float]:
        """The share of each version."""
        return dict(self._table.weights)

    @property
    def epoch(self) -> int:
        """Of the shares that are in force."""
        return self._table.epoch

    def update(self, weights: Mapping[str, float], *, epoch: int | None = None) -> None:
        """Let other shares hold from now on; safe while other threads choose.

        Raises:
            InputError: weights that are no shares; the old ones hold on.
        """
        self._table = _tabulate(weights, self._table.epoch + 1 if epoch is None else epoch)

    def choose(self, unit_id: UnitId | None = None) -> str:
        """The version that answers this unit.

        Raises:
            InputError: the router is sticky, and no unit is given.
        """
        return self.route(unit_id).arm

    def route(self, unit_id: UnitId | None = None) -> Route:
        """The same, with who computes beside it and by which shares it was decided."""
        table = self._table
        if self._flag is not None and self._flag.value in table.weights:
            return Route(self._flag.value, None, table.epoch)
        arm = _arm_at(table, self._point(unit_id))
        first = table.arms[0]
        if self._shadow:
            return Route(first, None if arm == first else arm, table.epoch)
        return Route(arm, None, table.epoch)

    def _point(self, unit_id: UnitId | None) -> float:
        return self.point(unit_id) if self._sticky else self._draw()

    def point(self, unit_id: UnitId | None) -> float:
        """Where between 0 and 1 the hash puts a unit."""
        if isinstance(unit_id, str):
            raw = unit_id.encode("utf-8", "surrogatepass")
        elif isinstance(unit_id, int):
            raw = str(int(unit_id)).encode()
        elif isinstance(unit_id, bytes):
            raw = unit_id
        else:
            raise InputError(
                f"router: got {type(unit_id).__name__} for a unit; a sticky router needs a str, an int or bytes; pass the id of a vehicle, "
                "user or session, or sticky=False to draw per batch"
            )
        digest = blake2b(raw, digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "big") / _POINTS


def _arm_at(table: _Table, point: float) -> str:
    for end, arm in table.low:
        if point < end:
            return arm
    for begin, arm in table.high:
        if point >= begin:
            return arm
    return table.arms[0]


def _tabulate(weights: Mapping[str, float], epoch: int) -> _Table:
    total = math.fsum(weights.values()) if weights else 0.0
    if not 0 < total < math.inf or any(not weight >= 0 for weight in weights.values()):
        shown = ", ".join(f"{arm}={weight:g}" for arm, weight in weights.items()) or "nothing"
        raise InputError(f"router: weights: got {shown}; legal are shares such as v1=0.95, v2=0.05")
    arms = tuple(weights)
    shares = {arm: weight / total for arm, weight in weights.items()}
    low, high, end, begin = [], [], 0.0, 1.0
    for number, arm in enumerate(arms[1:]):
        if number % 2 == 0:
            end += shares[arm]
            low.append((end, arm))
        else:
            begin -= shares[arm]
            high.append((begin, arm))
    if shares[arms[0]] == 0 and low:  # whatever rounding left in the middle belongs to no one else
        low[-1] = (2.0 if not high else begin, low[-1][1])
    return _Table(arms, tuple(low), tuple(high), shares, epoch)
