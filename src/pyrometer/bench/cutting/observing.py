"""What a step calls, and what these places are given and return in a few steps."""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from pyrometer.bench.cutting.discovery import CalledCode, CallProfile
from pyrometer.bench.cutting.place import Change, Cuttable, StreamChange, cuttable_function, cuttable_stream
from pyrometer.bench.cutting.recording import Recorder
from pyrometer.bench.cutting.substitution import functions_of
from pyrometer.bench.cutting.variation import is_told_apart, varied
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.call import Call
from pyrometer.workload.inputs import Arguments
from pyrometer.workload.training import TrainingSession
from pyrometer.workload.workload import Session, Workload

MIN_SHARE = 0.05
"""Of a step: what takes less is not worth its run."""

NOTED_SHARE = 0.15
"""Of a step: that a place which takes as much cannot be cut out is worth a note."""

MOST_RECORDED = 10
"""Places that are recorded; the first three are cut out."""

WHOLE = 0.98
"""Of a call: a function that takes as much is the call itself."""

NOTED = {"it is a generator", "it is made anew in each step, or compiled"}
"""Reasons that are worth a note: the others are no place that could be cut."""

STEPS_AS_IT_IS, STEPS_VARIED = 2, 2
"""Recorded with the program's own inputs, and with others."""


class Watch:
    """Runs steps of a session and watches the places that they call.

    Attributes:
        model: what is stepped, where it is a module.
        notes: which expensive places cannot be cut out, and why.
    """

    def __init__(self, work: Workload, session: Session) -> None:
        self._work = work
        self._session = session
        model = getattr(session, "model", None)
        self.model: nn.Module | None = model if isinstance(model, nn.Module) else None
        self.notes: list[str] = []

    def step(self) -> None:
        """One step as it is."""
        self._session.step(self._session.prepare())

    def places(self, num_steps: int, *, functions: bool) -> list[Cuttable]:
        """What takes enough of a step and can be cut out, most expensive first."""
        stream, fetching = self._stream, _Stopwatch()
        profiles: list[CallProfile] = []
        with _in_place([StreamChange(stream, fetching)] if stream is not None else []):
            for _ in range(num_steps):
                prepared = self._session.prepare()
                profiles.append(CallProfile(self.model))
                profiles[-1].run(functools.partial(self._session.step, prepared))
        step_ns = min(profile.total_ns for profile in profiles)
        places = list(self._functions(profiles, step_ns)) if functions else []
        share = min(fetching.spent_ns) / step_ns if fetching.spent_ns else 0.0
        if stream is not None and share >= MIN_SHARE:
            if getattr(getattr(self._work, "batches", None), "num_workers", 0):
                self.notes.append(not_cut("the loader", "its workers go on loading meanwhile"))
            else:
                places.append(cuttable_stream(stream, share))
        return sorted(places, key=lambda place: -place.share)[:MOST_RECORDED]

    def record(self, places: list[Cuttable], *, vary: bool) -> None:
        """Record what the places are given and return: with the program's own inputs, and then with others.

        With the same inputs all is the same in each step; only with others can be told what does not depend on them. A
        program that cannot do with them, or whose inputs are no data, does not tell.
        """
        recorders = [place.recorder for place in places]
        with _in_place([place.recording() for place in places]):
            inputs: list[Any] = []
            for _ in range(STEPS_AS_IT_IS):
                self._recorded_step(recorders, inputs, vary=False)
            for place in places:
                place.recorder.keeps_values = False
                if place.called is not None and place.called.num_calls != len(place.recorder.calls):
                    place.recorder.problem = place.recorder.problem or "not all of its calls were found"
            try:
                while (
                    vary
                    and len(inputs) < STEPS_AS_IT_IS + STEPS_VARIED
                    and any(recorder.is_constant for recorder in recorders)
                ):
                    self._recorded_step(recorders, inputs, vary=True)
            except Exception:  # noqa: BLE001 - it was not written for such inputs: nothing is told
                inputs.clear()
        if len(inputs) < 3 or not all(is_told_apart(a, b) for a, b in itertools.pairwise(inputs[1:])):
            for recorder in recorders:
                recorder.same_inputs = recorder.same_results = False

    def _recorded_step(self, recorders: list[Recorder], inputs: list[Any], *, vary: bool) -> None:
        complete = False
        try:
            inputs.append(
                self._step_with(lambda given: varied(given, seed=len(inputs)) if vary else given, recorders)
            )
            complete = True
        finally:
            for recorder in recorders:
                recorder.end(complete=complete, own_inputs=not vary)

    def _step_with(self, change: Callable[[Any], Any], recorders: list[Recorder]) -> Any:
        """One step with changed inputs, which are returned; recorders look on."""
        prepared = self._session.prepare()
        for recorder in recorders:
            recorder.begin()
        stream = self._stream
        if stream is not None:
            batches: list[Any] = []

            def fetch(original: Callable[[], Any], _args: Any, _kwargs: Any) -> Any:
                batches.append(change(original()))
                return batches[-1]

            with _in_place([StreamChange(stream, fetch)]):
                self._session.step(prepared)
            return batches
        if isinstance(prepared, Arguments):
            args, kwargs = change((prepared.args, prepared.kwargs))
            prepared = Arguments(args, kwargs, prepared.batch_scale)
        else:
            prepared = change(prepared)
        self._session.step(prepared)
        return prepared

    @property
    def _stream(self) -> BatchStream | None:
        return self._session.batches if isinstance(self._session, TrainingSession) else None

    def _functions(self, profiles: list[CallProfile], step_ns: int) -> Iterator[Cuttable]:
        called = [one for one in _fastest(profiles) if one.total_ns >= MIN_SHARE * step_ns]
        functions = functions_of({one.code: one.scope for one in called})
        for one in called:
            share = one.total_ns / step_ns
            why = one.fixed or self._is_call(share)
            if why is None and not functions[one.code]:
                why = "it is made anew in each step, or compiled"
            if why is None:
                yield cuttable_function(one, functions[one.code], share)
            elif why in NOTED and share >= NOTED_SHARE:
                self.notes.append(not_cut(f"`{one.code.co_qualname}`", why))

    def _is_call(self, share: float) -> str | None:
        return "it is the whole step" if isinstance(self._work, Call) and share >= WHOLE else None


def _fastest(profiles: list[CallProfile]) -> Iterator[CalledCode]:
    """What every step called, each from the step in which it was fastest: on a busy machine others take the time between."""
    for code in profiles[0].codes:
        seen = [profile.codes[code] for profile in profiles if code in profile.codes]
        if len(seen) == len(profiles):
            yield min(seen, key=lambda one: one.total_ns)


class _Stopwatch:
    """Takes the times of what it stands in for."""

    def __init__(self) -> None:
        self.spent_ns: list[int] = []

    def __call__(self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        start = time.perf_counter_ns()
        try:
            return original(*args, **kwargs)
        finally:
            self.spent_ns.append(time.perf_counter_ns() - start)


@contextlib.contextmanager
def _in_place(changes: list[Change]) -> Iterator[None]:
    """Put changes in place for a while."""
    with contextlib.ExitStack() as stack:
        for change in changes:
            change.install()
            stack.callback(change.remove)
        yield


def not_cut(name: str, why: str) -> str:
    """Why there is no ceiling for a place."""
    return f"{name} was not cut out of the step: {why}"
