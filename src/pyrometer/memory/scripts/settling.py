"""What allocations of a script were for, where only what became of them tells."""

from __future__ import annotations

from pyrometer.memory.recording.allocation import Allocation, AllocationLog, PhaseEnd
from pyrometer.memory.scripts.phases import SETUP

_BATCH_PHASES = ("data", "h2d")


def settle(log: AllocationLog) -> None:
    """Give a category to what has none by its identity, and join phases that follow one another.

    The batch is what was made while data was fetched or copied, or came from elsewhere (a loader's process, numpy) and went
    again. What was made before the first step and stays belongs to no step: it is told by its line, as unknown. Tensors that
    an optimizer trains are its own copies only where a model has others.
    """
    log.phases = _joined(log.phases)
    setup_end = max((phase.event for phase in log.phases if phase.name == SETUP), default=0)
    has_model = any(one.category == "parameters" for one in log.allocations)
    for one in log.allocations:
        if one.category is None:
            one.category = "inputs" if _is_batch(one) else "unknown" if _is_older(one, setup_end) else None
        elif one.category == "master" and not has_model:
            one.category = "parameters"


def _joined(phases: list[PhaseEnd]) -> list[PhaseEnd]:
    pairs = zip(phases, [*phases[1:], None], strict=True)
    return [one for one, after in pairs if after is None or (one.name, one.step) != (after.name, after.step)]


def kept_for_backward(log: AllocationLog) -> None:
    """Tell activations by their lives, where saving could not be seen: made in a forward pass and outliving it."""
    begin = 0
    for phase in log.phases:
        if phase.name == "forward":
            _mark_survivors(log, begin, phase.event)
        begin = phase.event


def _mark_survivors(log: AllocationLog, begin: int, end: int) -> None:
    for index in log.events[begin:end]:
        if (
            index >= 0
            and not log.allocations[index].preexisting
            and log.allocations[index].alive_after(end - 1)
        ):
            log.allocations[index].saved = True


def _is_batch(one: Allocation) -> bool:
    if one.phase in _BATCH_PHASES:
        return True
    return one.preexisting and one.phase != SETUP and (one.died is not None or one.step > 0)


def _is_older(one: Allocation, setup_end: int) -> bool:
    if one.phase != SETUP or one.preexisting:
        return False
    if one.saved and one.died is not None:
        return False  # a first forward pass that no module ran
    return one.died is None or one.died >= setup_end
