"""A server in a rollout: the version of each batch is drawn under the share of the moment, and what became of it is counted."""

from __future__ import annotations

import asyncio

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.rollout.agent import Agent
from pyrometer.rollout.router import Route
from pyrometer.serving.running.batcher import Bucket, Ended, Observer

TICK_S: Seconds = 1.0


class Canary:
    """Stands before whoever counts; one batch runs at a time, so that the last route is that of the batch that ends.

    Args:
        agent: of the rollout.
        observer: is told all the same.
        versions: that are loaded.

    Raises:
        InputError: the rollout is about other versions, or does not assign batches by chance.
    """

    def __init__(self, agent: Agent, observer: Observer, versions: list[str]) -> None:
        plan = agent.state.plan
        if {plan.old, plan.new, plan.control} - {""} != set(versions) or plan.assignment != "batch":
            raise InputError(
                f"rollout {plan.name!r}: assigns each {plan.assignment} to {plan.old} or {plan.new}; this server assigns each batch to "
                f"{' or '.join(versions)}: start it with --old {versions[0]} --new {versions[1]}"
            )
        self._agent, self._observer = agent, observer
        self._route: Route | None = None

    def choose(self) -> str:
        """The version of the next batch."""
        self._route = self._agent.route()
        return self._route.arm

    def batch_ended(self, ended: Ended, num_waiting: int) -> None:
        """Count a batch whose version was chosen here; a request may name another."""
        self._observer.batch_ended(ended, num_waiting)
        bucket, route = ended.batch.bucket, self._route
        assert isinstance(bucket, Bucket)
        if bucket.version is not None or route is None:
            return
        failures = [answer.failure for answer in ended.answers if answer.failure is not None]
        self._agent.observe(
            route,
            None if failures else ended.took_s,
            failed=bool(failures),
            finite=not any(answer.nonfinite for answer in ended.answers),
            out_of_memory=any("out of memory" in failure for failure in failures),
        )

    def refused(self, kind: str) -> None:
        """What no version has seen."""
        self._observer.refused(kind)

    def shadowed(self, error: float | None) -> None:
        """Told to whoever counts."""
        self._observer.shadowed(error)

    async def follow(self) -> None:
        """Send counts and read the share, until cancelled; the store may be slow, and is asked beside the loop."""
        while True:
            await asyncio.to_thread(self._agent.tick)
            await asyncio.sleep(TICK_S)
