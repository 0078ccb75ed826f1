"""A server in a rollout: the version of each batch is drawn under the share of the moment, and what became of it is counted."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.rollout.agent import Agent
from pyrometer.rollout.counts import LATENCY
from pyrometer.rollout.plan import Plan
from pyrometer.rollout.router import Route
from pyrometer.serving.running.batcher import Bucket, Ended, Observer
from pyrometer.serving.running.shadow import Compared

TICK_S: Seconds = 1.0


def require_fitting(plan: Plan, old: str, new: str, *, is_shadow: bool) -> None:
    """Find out before a model is loaded whether a rollout is about what is to be served.

    Raises:
        InputError: it is about other versions, does not assign batches by chance, or tests latencies of a shadow and has no control.
    """
    if (plan.old, plan.new) != (old, new) or plan.assignment != "batch":
        raise InputError(
            f"rollout {plan.name!r}: assigns each {plan.assignment} to {plan.old} or {plan.new}; this server assigns each batch to "
            f"{old} or {new}: start it with --old {old} --new {new}"
        )
    timed = next((metric.name for metric in plan.metrics if metric.counted == LATENCY), None)
    if is_shadow and timed is not None and not plan.control:
        raise InputError(
            f"rollout {plan.name!r}: tests {timed}, and a shadow is slower than what it runs beside; start it with --control NAME, a "
            "second copy of the old version that runs in the shadow, too"
        )


class Canary:
    """Stands before whoever counts; one batch runs at a time, so that the last route is that of the batch that ends.

    Args:
        agent: of the rollout.
        observer: is told all the same.
    """

    def __init__(self, agent: Agent, observer: Observer) -> None:
        self._agent, self._observer = agent, observer
        self._route: Route | None = None

    def choose(self) -> str:
        """The version of the next batch."""
        self._route = self._agent.route()
        return self._route.arm

    def choose_shadow(self) -> str | None:
        """Nobody: the new version answers its share."""
        return None

    def batch_ended(self, ended: Ended, num_waiting: int) -> None:
        """Count a batch whose version was chosen here; a request may name another."""
        self._observer.batch_ended(ended, num_waiting)
        bucket = ended.batch.bucket
        assert isinstance(bucket, Bucket)
        if bucket.version is None and self._route is not None:
            self._observe(self._route, ended, ended.took_s)

    def _observe(self, route: Route, ended: Ended, latency_s: Seconds | None) -> None:
        failures = [answer.failure for answer in ended.answers if answer.failure is not None]
        self._agent.observe(
            route,
            None if failures else latency_s,
            failed=bool(failures),
            finite=not any(answer.nonfinite for answer in ended.answers),
            out_of_memory=any("out of memory" in failure for failure in failures),
        )

    def refused(self, kind: str) -> None:
        """What no version has seen."""
        self._observer.refused(kind)

    def shadowed(self, compared: Compared) -> None:
        """Told to whoever counts."""
        self._observer.shadowed(compared)

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Send counts and read the share, beside the loop since the store may be slow; at the end what is left is sent."""
        ends = threading.Event()

        def follow() -> None:
            while not ends.is_set():
                self._agent.tick()
                ends.wait(TICK_S)
            self._agent.tick()

        thread = threading.Thread(target=follow, name="pyrometer-rollout", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()


class ShadowCanary(Canary):
    """The old version answers everything; the new one computes its share of the batches beside, and is compared.

    Who computes is drawn once a batch has its answers and the shadow is free. A shadow runs beside the next batch, and is slower for it:
    latencies are compared only where a second copy of the old version, the control, runs in the shadow as well.
    """

    def __init__(self, agent: Agent, observer: Observer) -> None:
        super().__init__(agent, observer)
        self._has_control = bool(agent.state.plan.control)
        self._last: Ended | None = None

    def choose(self) -> str:
        """The old version."""
        return self._agent.state.plan.old

    def choose_shadow(self) -> str | None:
        """Who computes the batch that has just ended as well."""
        self._route = self._agent.route()
        if self._route.shadow is None and self._last is not None:
            self._observe(self._route, self._last, None)
        return self._route.shadow

    def batch_ended(self, ended: Ended, num_waiting: int) -> None:
        """Counted once it is known who computes it as well."""
        self._observer.batch_ended(ended, num_waiting)
        self._last = ended

    def shadowed(self, compared: Compared) -> None:
        """Count what came of it under the route that it was drawn by."""
        super().shadowed(compared)
        assert self._route is not None
        failure = compared.failure
        self._agent.observe(
            self._route,
            None if failure is not None or not self._has_control else compared.took_s,
            failed=failure is not None,
            finite=not compared.has_nonfinite,
            out_of_memory=failure is not None and "out of memory" in failure,
            agrees=not compared.num_differ if compared.num else None,
        )
