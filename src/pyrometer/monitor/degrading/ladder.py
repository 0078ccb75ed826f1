"""Degradation as data: which alarm leads to which step down, and when it is taken back.

::

    policy = Policy(
        alarms=("infer.latency/*", "infer.errors/*"),
        rungs=[Rung(name="tuned"), Rung(name="eager", action="eager"), Rung(name="shed", action="shed")],
    )

The ladder goes down one rung when an alarm lasts `down_s`, and up one when all is quiet for `up_s`. A rung that had to be taken
again soon after it was left is held twice as long the next time, so that it does not swing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

from pyrometer.errors import InputError
from pyrometer.monitor.instruments import series_name
from pyrometer.monitor.signals.signal import Reading
from pyrometer.monitor.tick import Event, Tick
from pyrometer.quantity import Seconds
from pyrometer.record import Record

RUNG = "degradation_rung"
"""The metric that tells where ladders stand."""


class Rung(Record, frozen=True, kw_only=True):
    """One state of the program, better than those after it."""

    name: str
    action: str = (
        ""  # what is called with True when it is entered from above, with False when it is left upwards
    )


class Policy(Record, frozen=True, kw_only=True):
    """Condition, actions and recovery.

    Raises:
        InputError: fewer than two rungs, or times that no ladder could keep.
    """

    name: str = "degradation"
    alarms: tuple[str, ...] = ("*",)
    rungs: list[Rung]
    down_s: Seconds = 5.0
    up_s: Seconds = 60.0
    relapse_s: Seconds = 300.0
    longest_up_s: Seconds = 3600.0

    def __post_init__(self) -> None:
        """Refuse what would never move or never rest."""
        if len(self.rungs) < 2:
            raise InputError(
                f"{self.name}: got {len(self.rungs)} rungs; legal are 2 or more, the normal one first"
            )
        if not 0 <= self.down_s < self.up_s <= self.longest_up_s:
            raise InputError(
                f"{self.name}: got down_s={self.down_s:g}, up_s={self.up_s:g}, longest_up_s={self.longest_up_s:g}; "
                "legal is 0 ≤ down_s < up_s ≤ longest_up_s: recovery takes longer than reaction"
            )


class Transition(Record, frozen=True, kw_only=True):
    """The ladder moved."""

    at_s: Seconds
    policy: str
    before: str
    after: str
    reason: str
    is_down: bool

    def event(self) -> Event:
        """As a line of the log, and as it is published."""
        fields: dict[str, str | float | int | bool] = {
            "policy": self.policy,
            "before": self.before,
            "after": self.after,
            "reason": self.reason,
        }
        return Event(at_s=self.at_s, event="degraded" if self.is_down else "recovered", fields=fields)


class Ladder:
    """Where a program stands on its policy; a pure state machine on given times and alarms."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._place = 0
        self._alarm_since_s: Seconds | None = None
        self._quiet_since_s: Seconds | None = None
        self._went_up_s: Seconds | None = None
        self._hold_s = policy.up_s

    @property
    def rung(self) -> Rung:
        """The present state."""
        return self.policy.rungs[self._place]

    def update(self, now_s: Seconds, alarms: Sequence[str]) -> Transition | None:
        """Look at the alarms that are on; moves one rung at most."""
        matching = [name for name in alarms if any(fnmatchcase(name, one) for one in self.policy.alarms)]
        if matching:
            self._quiet_since_s = None
            self._alarm_since_s = now_s if self._alarm_since_s is None else self._alarm_since_s
            return self._down(now_s, matching)
        self._alarm_since_s = None
        self._quiet_since_s = now_s if self._quiet_since_s is None else self._quiet_since_s
        return self._up(now_s)

    def _down(self, now_s: Seconds, matching: Sequence[str]) -> Transition | None:
        assert self._alarm_since_s is not None
        if self._place + 1 >= len(self.policy.rungs) or now_s - self._alarm_since_s < self.policy.down_s:
            return None
        if self._went_up_s is not None and now_s - self._went_up_s < self.policy.relapse_s:
            self._hold_s = min(self._hold_s * 2, self.policy.longest_up_s)
        self._alarm_since_s = now_s  # the next rung has the same time to help
        return self._move(now_s, 1, f"{', '.join(matching[:3])} for {self.policy.down_s:g} s")

    def _up(self, now_s: Seconds) -> Transition | None:
        assert self._quiet_since_s is not None
        if now_s - self._quiet_since_s < self._hold_s:
            return None
        if self._place == 0:
            if self._went_up_s is None or now_s - self._went_up_s >= self.policy.relapse_s:
                self._hold_s = self.policy.up_s
            return None
        self._quiet_since_s = self._went_up_s = now_s
        return self._move(now_s, -1, f"quiet for {self._hold_s:g} s")

    def _move(self, now_s: Seconds, by: int, reason: str) -> Transition:
        before, self._place = self.rung.name, self._place + by
        return Transition(
            at_s=now_s,
            policy=self.policy.name,
            before=before,
            after=self.rung.name,
            reason=reason,
            is_down=by > 0,
        )


class Degradation:
    """A ladder as a listener of the monitor: carries its actions out, and tells of each transition.

    Args:
        policy: as data.
        actions: what the rungs name; each is called with True to begin and False to end.
        alarms: says what is alarming now, such as `Detection.alarms`.
        publish: is given each transition as an event, such as `RedisEvents(...).publish`.

    Raises:
        InputError: a rung names an action that is not given.
    """

    def __init__(
        self,
        policy: Policy,
        actions: Mapping[str, Callable[[bool], None]],
        alarms: Callable[[], Sequence[str]],
        publish: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        for rung in policy.rungs:
            if rung.action and rung.action not in actions:
                raise InputError(
                    f"{policy.name}: rung {rung.name!r} names the action {rung.action!r}; legal are {', '.join(actions) or 'none'}"
                )
        self.ladder = Ladder(policy)
        self._actions, self._alarms, self._publish = dict(actions), alarms, publish
        self.faults: list[str] = []
        self.every_ticks, self.from_zero = 1, False

    def read(self) -> Reading:
        """Where the ladder stands, as a gauge per rung: the present one is 1."""
        policy = self.ladder.policy
        gauges = {
            series_name(RUNG, ["policy", "rung"], [policy.name, rung.name]): float(rung is self.ladder.rung)
            for rung in policy.rungs
        }
        return Reading(gauges, {})

    def samples(self, _call: str, _at_s: Seconds, _latencies_s: Sequence[float], /) -> None:
        """Nothing: alarms decide."""

    def tick(self, tick: Tick, /) -> Sequence[Event]:
        """Move where the alarms ask for it."""
        before = self.ladder.rung
        transition = self.ladder.update(tick.at_s, self._alarms())
        if transition is None:
            return ()
        acting = self.ladder.rung if transition.is_down else before
        event = transition.event()
        self._guarded(lambda: acting.action and self._actions[acting.action](transition.is_down))
        self._guarded(lambda: self._publish(event))
        return (event,)

    def alarms(self) -> Sequence[str]:
        """None of its own."""
        return ()

    def _guarded(self, act: Callable[[], object]) -> None:
        """An action of the user may fail; the ladder goes on, and says so."""
        try:
            act()
        except Exception as error:  # noqa: BLE001 - of the user, or of a network
            self.faults = [*self.faults[-9:], f"{type(error).__name__}: {error}"]
