"""One open session, stepped as it is and with places cut out, in turn."""

from __future__ import annotations

from typing import Any

from pyrometer.bench.cutting.place import Change, Cuttable
from pyrometer.bench.cutting.replaying import Replayer
from pyrometer.workload.workload import Mark, Session


class Stage:
    """A session of which at most one change is in place."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._change: Change | None = None

    def show(self, change: Change | None) -> bool:
        """Take the change back that is in place, and put another one there; whether it is another."""
        if change is self._change:
            return False
        current, self._change = self._change, None
        if current is not None:
            current.remove()
        if change is not None:
            change.install()
            self._change = change
        return True


class StagedSession(Session):
    """The steps of the session with a place cut out; without a place, as they are."""

    def __init__(self, stage: Stage, place: Cuttable | None = None) -> None:
        super().__init__(stage.session.device, stage.session.surroundings)
        self._stage = stage
        self._session = stage.session
        self.replayer: Replayer | None = None
        self._change: Change | None = None
        if place is not None:
            self.replayer = place.replayer()
            self._change = place.change(self.replayer)

    def activate(self) -> None:
        """From now on the steps are of this kind; a first one without the place finds caches that are full of it."""
        self._session.activate()
        if self._stage.show(self._change) and self._change is not None:
            self.step(self.prepare())

    def prepare(self) -> Any:
        """As the session does: nothing is cut out of it."""
        return self._session.prepare()

    def step(self, prepared: Any) -> Any:
        """One step.

        Raises:
            ReplayError: it took another way than with the place.
        """
        replayer = self.replayer
        if replayer is None:
            return self._session.step(prepared)
        replayer.begin()
        try:
            output = self._session.step(prepared)
        finally:
            replayer.end()
        replayer.require_all()
        return output

    def phased_step(self, mark: Mark) -> Any:
        """One step, which is all there is."""
        output = self.step(self.prepare())
        mark("step")
        return output

    @property
    def units_per_step(self) -> float:
        """As the session's."""
        return self._session.units_per_step
