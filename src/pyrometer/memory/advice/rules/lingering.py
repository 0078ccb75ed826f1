"""What is still held by a name though nothing reads it any more."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch

from pyrometer.advice import Advice
from pyrometer.memory.advice.case import Case
from pyrometer.memory.advice.lives import Life, Lives
from pyrometer.memory.advice.observing import Observed, UseRecorder, observe
from pyrometer.place import Place
from pyrometer.quantity import format_bytes
from pyrometer.workload.whereabouts.nearest import is_users


class Name(NamedTuple):
    """A local variable of the user's that holds an allocation."""

    variable: str
    function: str
    file: str
    line: int


def lingering(case: Case) -> Iterator[Advice]:
    """Delete a variable before the peak."""
    observed, lives = case.observed, case.lives
    if observed is None or lives is None:
        return
    idle = _idle_at_peak(observed)
    if case.relived(_shortened(observed, lives, idle)) is None:
        return
    names = _names(case, observed, idle)
    saving = case.relived(_shortened(observed, lives, names))
    if saving is None:
        return
    variables = list(dict.fromkeys(name.variable for name in names.values()))
    held = _held(lives, names)
    most = next(iter(held))
    yield Advice(
        slug="let-go-earlier",
        fix_class="exact",
        title="delete variables that nothing reads any more",
        why=f"{case.where}; still held then, and not used again: {_in_words(held)}",
        sketch="\n".join(f"del {variable}  # after its last use" for variable in variables),
        effect="the same values; what is deleted cannot be looked at afterwards",
        gain=saving.gain,
        where=Place(file=most.file, line=most.line),
    )


def _idle_at_peak(observed: Observed) -> set[int]:
    """What is alive at the peak and was used for the last time before."""
    peak_use = _use_at_peak(observed)
    if peak_use is None:
        return set()
    now = observed.uses[peak_use].event
    last = observed.last_uses()
    return {index for index in _deletable(observed) if last.get(index, now) < now}.intersection(
        observed.alive_at_peak()
    )


def _deletable(observed: Observed) -> Iterator[int]:
    """What only variables hold at the end: neither the program's own objects nor the graph."""
    backward = {index for use in observed.uses if use.backward for index in (*use.arguments, *use.results)}
    for index, allocation in enumerate(observed.log.allocations):
        own = allocation.category is not None or allocation.preexisting or allocation.settled == "inputs"
        kept_by_graph = allocation.saved and index not in backward
        if not own and not kept_by_graph and index not in observed.returned:
            yield index


def _shortened(observed: Observed, lives: Lives, chosen: Iterable[int]) -> dict[int, list[Life]]:
    """Lives that end with the last use: of what was chosen, and of what the same lines made in other steps."""
    log, last = observed.log, observed.last_uses()
    origins = {log.allocations[index].origin for index in chosen}
    return {
        index: [lives.until(index, last[index])]
        for index in _deletable(observed)
        if log.allocations[index].origin in origins and index in last
    }


def _use_at_peak(observed: Observed) -> int | None:
    """The operator that made the peak."""
    peak = observed.log.peak_event
    return next((number for number, use in enumerate(observed.uses) if use.event > peak), None)


def _names(case: Case, observed: Observed, wanted: set[int]) -> dict[int, Name]:
    """Run again, and look at the variables of the user's running functions at the instant of the peak."""
    at = _use_at_peak(observed)
    names: dict[int, Name] = {}

    def look(number: int, recorder: UseRecorder) -> None:
        if number == at:
            names.update(_held_by_frames(recorder, wanted))

    again = observe(case.work, look=look)
    same = len(again.uses) == len(observed.uses) and again.log.peak_event == observed.log.peak_event
    return names if same else {}


def _held_by_frames(recorder: UseRecorder, wanted: set[int]) -> dict[int, Name]:
    names: dict[int, Name] = {}
    frame = sys._getframe(2)  # noqa: SLF001 - the documented way to walk frames
    while frame is not None:
        code = frame.f_code
        if is_users(code):
            for variable, value in dict(frame.f_locals).items():
                for index in wanted.intersection(recorder.numbers(_tensors(value))):
                    name = Name(variable, code.co_name, code.co_filename, frame.f_lineno)
                    names.setdefault(index, name)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return names


def _tensors(value: Any) -> list[torch.Tensor]:
    """A tensor, or those in a list, tuple or dict."""
    parts: Iterable[Any] = [value]
    if isinstance(value, (list, tuple)):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    return [part for part in parts if issubclass(type(part), torch.Tensor)]


def _held(lives: Lives, names: dict[int, Name]) -> dict[Name, int]:
    """What each variable holds, the most first."""
    sums: dict[Name, int] = {}
    for index, name in names.items():
        sums[name] = sums.get(name, 0) + lives[index].nbytes
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _in_words(held: dict[Name, int]) -> str:
    return "; ".join(
        f"`{name.variable}` of {name.function}() at {name.file}:{name.line}: {format_bytes(nbytes)}"
        for name, nbytes in held.items()
    )
