"""What could not be observed, in words."""

from __future__ import annotations

from pyrometer.quantity import format_seconds
from pyrometer.workload.script.child import Ended
from pyrometer.workload.script.events import Events
from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.steps import Steps

_WITHOUT = {
    "torch's import": "nothing was observed",
    "module calls": "the forward's time counts as rest",
    "backward": "its time counts as rest",
    "data loader": "waiting for data counts as rest",
    "optimizer steps": "steps were taken from what else was seen",
    "torch.compile": "it may have seen our hooks, and counted more frames",
}


_TROUBLES = {
    "too few steps": "no trace: the script ended before the first step to record; skip fewer steps, or none",
    "profiled by itself": "the script ran a profiler of its own, which was left alone; the trace had to wait for it",
    "gave way": "the trace ends where the script started a profiler of its own",
    "cut off": "the trace ends with the script, in the midst of its last step",
    "no modules": "module calls: this torch is not what is expected there; they have no spans in the trace",
    "failed": "the trace failed",
}


def notes_on(ended: Ended, events: Events, steps: Steps) -> list[str]:
    """One sentence for each thing that is missing from an observation, the most important first."""
    return [
        *_on_the_end(ended, events),
        *_on_the_trace(events),
        *_on_the_steps(events, steps),
        *_on_the_hooks(events),
    ]


def _on_the_end(ended: Ended, events: Events) -> list[str]:
    notes = []
    if ended.timed_out:
        notes.append(f"ended after {format_seconds(ended.wall_s)}, because its time was up")
    if not (events.kind == kinds.ENDED).any():
        notes.append(
            "Python was not shut down in order (a signal, os._exit or exec): compile time is unknown, and the peak "
            "memory is the highest sample"
        )
    return notes


def _on_the_trace(events: Events) -> list[str]:
    indices = dict.fromkeys(events.of(kinds.TRACE_TROUBLE).value.tolist())
    troubles = [kinds.TRACE_TROUBLES[index] for index in indices]
    if "profiled by itself" in troubles and "too few steps" in troubles:
        return ["no trace: the script ran a profiler of its own for as long as it made steps"]
    notes = [_TROUBLES[trouble] for trouble in troubles]
    begun, ended = ((events.kind == kind).any() for kind in (kinds.TRACE_BEGIN, kinds.TRACE_END))
    if begun and not ended:
        notes.append("the trace was lost: the script was ended while it was recorded")
    return notes


def _on_the_steps(events: Events, steps: Steps) -> list[str]:
    seen = set(events.kind.tolist())
    if kinds.TORCH_IMPORTED not in seen:
        return ["no steps: the script never imported torch"]
    notes = []
    if not len(steps):
        notes.append(
            "no steps: the script never called a module, an optimizer or a DataLoader in its main thread"
        )
    elif kinds.FORWARD_BEGIN not in seen and kinds.BACKWARD_BEGIN in seen:
        notes.append("no module was called outside of compiled code: the forward's time counts as rest")
    if kinds.MOVED in seen:
        notes.append("the steps are those of another thread: the main thread called no module")
    elsewhere = events.last_value(kinds.ELSEWHERE)
    if elsewhere:
        notes.append(f"{elsewhere} calls on other threads were counted, but are in no phase")
    return notes


def _on_the_hooks(events: Events) -> list[str]:
    missing = [kinds.HOOK_POINTS[index] for index in events.of(kinds.NOT_OBSERVED).value.tolist()]
    notes = [f"{point}: this torch is not what is expected there; {_WITHOUT[point]}" for point in missing]
    if (events.kind == kinds.SAMPLER_FAILED).any():
        notes.append("memory could not be sampled on this system")
    if (events.kind == kinds.LOG_FULL).any():
        notes.append("the event log was full or the disk was; steps after that were not seen")
    return notes
