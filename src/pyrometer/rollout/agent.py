"""The part of a rollout in a process that serves: it routes, counts, and once per tick sends its totals and reads the share.

::

    agent = Agent(open_ledger(".pyrometer"), "perception")
    route = agent.route("vehicle-17")               # or agent.route() per batch
    with agent.observing(route):
        answer = models[route.arm](x)               # models by version
    agent.tick()                                    # every second or so, from a thread of its own

One observation belongs to one decision of the router. Units are counted once per rollout, with their first observation: later ones of
the same unit are no further draws of chance, and counting them would find differences between vehicles instead of versions.
"""

from __future__ import annotations

import os
import platform
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import NamedTuple

from pyrometer.errors import StoreError
from pyrometer.histogram import index_of
from pyrometer.quantity import Seconds
from pyrometer.rollout.controller import require
from pyrometer.rollout.counts import COMPARED, DISAGREED, ERRORS, LATENCY, NOT_FINITE, OUT_OF_MEMORY, Counts
from pyrometer.rollout.ledger import Ledger, open_ledger
from pyrometer.rollout.observed import NEW, OLD, Reported
from pyrometer.rollout.plan import Plan
from pyrometer.rollout.router import Route, Router, UnitId
from pyrometer.rollout.state import State
from pyrometer.store.place import Location

UNCOUNTED = -1
"""The epoch of routes that chance did not decide."""
_EPOCHS = 1 << 20
"""Of one attempt; a route of an earlier attempt that ends late is no observation of this one."""
_SEEN_BITS = 1 << 23
"""Of the map of units that were counted, one bit each: two that share one lose an observation, which harms nobody."""


class Followed(NamedTuple):
    """A rollout that a process is to follow, as it travels to other processes."""

    name: str
    location: Location
    """Of its ledger."""

    def agent(self, *, shadow: bool) -> Agent:
        """Whoever routes and counts in this process.

        Raises:
            StoreError: the ledger cannot be read.
            InputError: there is no such rollout.
        """
        return Agent(open_ledger(self.location, create=False), self.name, shadow=shadow)


class Agent:
    """Routes and counts for one process, or for one replica.

    Args:
        ledger: where the rollout is kept.
        name: of the rollout.
        shadow: the old version answers everything, and the new one computes its share beside it.
        replica: of a rollout without chance, which version this process runs ("old" or "new").
        seat: number of this process and of all that see the same units, so that each unit is counted by one of them.
        rng: of the draws per batch.
        clock: a clock that never steps.
        wall: Unix time, which numbers the blocks of replicas.

    Raises:
        StoreError: the ledger cannot be read.
        InputError: there is no such rollout.
    """

    def __init__(
        self,
        ledger: Ledger,
        name: str,
        *,
        shadow: bool = False,
        replica: str | None = None,
        seat: tuple[int, int] = (0, 1),
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._ledger, self._name, self._replica, self._seat = ledger, name, replica, seat
        self._clock, self._wall, self._lock = clock, wall, threading.Lock()
        self.reporter = f"{platform.node()[:60]}:{os.getpid()}:{secrets.token_hex(4)}"
        state = require(ledger, name)
        self.router = Router(
            _weights(state.plan, 0.0),
            key=state.plan.key or name,
            sticky=state.plan.assignment == "unit",
            shadow=shadow,
            rng=rng,
        )
        self._tallies: dict[tuple[int, str, int], _Tally] = {}
        self._changed: set[tuple[int, str, int]] = set()
        self._seen = bytearray(_SEEN_BITS // 8)
        self.num_failed = 0
        self.last_error = ""
        self._confirmed = clock()
        self._follow(state)

    @property
    def state(self) -> State:
        """The state of the rollout as it was last read."""
        return self._state

    @property
    def is_calm(self) -> bool:
        """Whether replicas of the new version still run the old one."""
        return self._state.is_calm

    def route(self, unit_id: UnitId | None = None) -> Route:
        """Who answers this unit or batch."""
        state, plan = self._state, self._state.plan
        if self._clock() - self._confirmed > plan.lease_s:
            return Route(plan.old, None, UNCOUNTED)
        if self._replica is not None:
            runs_new = self._replica == NEW and not state.is_calm and state.share > 0
            return Route(plan.new if runs_new else plan.old, None, state.attempt * _EPOCHS + state.epoch)
        route = self.router.route(unit_id)
        if plan.assignment == "unit" and not self._is_first(unit_id):
            return route._replace(epoch=UNCOUNTED)
        return route

    def _is_first(self, unit_id: UnitId | None) -> bool:
        raw = unit_id if isinstance(unit_id, bytes) else str(unit_id).encode("utf-8", "surrogatepass")
        drawn = int.from_bytes(blake2b(raw, digest_size=8, key=b"first observation").digest(), "big")
        if (drawn >> 32) % self._seat[1] != self._seat[0]:
            return False
        byte, bit = divmod(drawn % _SEEN_BITS, 8)
        with self._lock:
            if self._seen[byte] >> bit & 1:
                return False
            self._seen[byte] |= 1 << bit
        return True

    @contextmanager
    def observing(self, route: Route) -> Iterator[None]:
        """Count what happens in a block: its time, and whether it raises."""
        began = self._clock()
        try:
            yield
        except Exception as error:
            self.observe(route, failed=True, out_of_memory=_is_out_of_memory(error))
            raise
        self.observe(route, self._clock() - began)

    def observe(
        self,
        route: Route,
        latency_s: Seconds | None = None,
        *,
        failed: bool = False,
        finite: bool = True,
        out_of_memory: bool = False,
        agrees: bool | None = None,
        events: tuple[str, ...] = (),
        values: Mapping[str, float] | None = None,
    ) -> None:
        """Count one observation; cheap, and safe from several threads.

        Args:
            route: as it was decided.
            latency_s: how long it took; none of what failed.
            failed: whether it raised.
            finite: whether its outputs are free of NaN and infinities.
            out_of_memory: whether it failed for want of memory.
            agrees: of a shadow, whether its outputs are those that were answered.
            events: what else happened, by the names of the plan's metrics.
            values: other quantities, likewise.
        """
        attempt, epoch = divmod(route.epoch, _EPOCHS)
        if attempt != self._state.attempt:  # uncounted ones have none
            return
        plan, arm = self._state.plan, route.shadow or route.arm
        if plan.control and arm == plan.old:
            return
        side = self._replica or (NEW if arm == plan.new else OLD)
        block = int(self._wall() // plan.block_s) if self._replica is not None else 0
        happened = [ERRORS] * failed + [NOT_FINITE] * (not finite) + [OUT_OF_MEMORY] * out_of_memory
        if agrees is not None:
            happened += [COMPARED] + [DISAGREED] * (not agrees)
        measured = dict(values or {})
        if latency_s is not None:
            measured[LATENCY] = latency_s
        key = (epoch, side, block)
        with self._lock:
            tally = self._tallies.get(key)
            if tally is None:
                tally = self._tallies[key] = _Tally()
            tally.add(happened, events, measured, failed=failed)
            self._changed.add(key)

    def tick(self) -> bool:
        """Send totals, read the share; false where the ledger is away. What was counted is sent with the next tick then.

        A process that cannot read the state for longer than the lease answers with the old version alone: a rollback that it does
        not hear of must not leave it serving what was taken back.
        """
        with self._lock:
            changed, self._changed = self._changed, set()
            reports = [self._report(key) for key in changed]
        try:
            if reports:
                self._ledger.report(self._name, self._state.attempt, reports)
            found = self._ledger.read(self._name)
        except StoreError as error:
            self.num_failed += 1
            self.last_error = str(error)
            with self._lock:
                self._changed |= changed
            return False
        self._confirmed = self._clock()
        if found is not None:
            self._follow(found)
            self._forget_old_blocks()
        return True

    def _report(self, key: tuple[int, str, int]) -> Reported:
        epoch, arm, block = key
        counts = self._tallies[key].counts()
        return Reported(epoch=epoch, arm=arm, reporter=self.reporter, block=block, counts=counts)

    def _follow(self, state: State) -> None:
        earlier = getattr(self, "_state", None)
        if earlier is not None and state.attempt != earlier.attempt:
            with self._lock:  # the next attempt counts anew
                self._tallies, self._changed = {}, set()
                self._seen = bytearray(_SEEN_BITS // 8)
        self._state = state
        share = state.share
        epoch = state.attempt * _EPOCHS + state.epoch
        self.router.update(_weights(state.plan, share), epoch=epoch)

    def _forget_old_blocks(self) -> None:
        """Blocks that have passed and were sent are needed no more."""
        if self._replica is None:
            return
        now = int(self._wall() // self._state.plan.block_s)
        with self._lock:
            for key in [key for key in self._tallies if key[2] < now - 1 and key not in self._changed]:
                del self._tallies[key]


def _weights(plan: Plan, share: float) -> dict[str, float]:
    control = plan.control_share(share)
    weights = {plan.old: 1 - share - control, plan.new: share}
    return weights | {plan.control: control} if plan.control else weights


class _Tally:
    """Sums of one version under one share."""

    def __init__(self) -> None:
        self.num = 0
        self.events: dict[str, int] = {}
        self.values: dict[str, dict[int, int]] = {}
        self.in_row = self.most_in_row = 0

    def add(
        self, happened: list[str], events: tuple[str, ...], measured: Mapping[str, float], *, failed: bool
    ) -> None:
        self.num += 1
        for event in (*happened, *events):
            self.events[event] = self.events.get(event, 0) + 1
        for quantity, value in measured.items():
            if value >= 0:  # a NaN is no value
                buckets = self.values.setdefault(quantity, {})
                index = index_of(min(value, 1e12))
                buckets[index] = buckets.get(index, 0) + 1
        self.in_row = self.in_row + 1 if failed else 0
        self.most_in_row = max(self.most_in_row, self.in_row)

    def counts(self) -> Counts:
        values = {quantity: dict(buckets) for quantity, buckets in self.values.items()}
        return Counts(
            num=self.num, events=dict(self.events), values=values, most_failed_in_row=self.most_in_row
        )


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
