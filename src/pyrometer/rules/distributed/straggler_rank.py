"""One rank makes all others wait.

## What it does
Compares when each rank enters the same collective. It names the rank that comes last most often, how much shorter a step would be
without its delay, and the work that takes longer on it than on the others.

## Why it costs
A collective ends for all ranks when the last one has come: the slowest rank sets the pace of the job, and every other device idles.

## Example
```python
if rank == 0:
    evaluate(model)
    save_checkpoint(model)
loss.backward()
```

## Use instead
Give all ranks the same work, and move what only one must do out of the step.
```python
loss.backward()
if rank == 0 and step % 1000 == 0:
    writer.submit(save_checkpoint, snapshot(model))
```

## Fix safety
No fix is applied: the cause may lie in the program, in the data, or in the machine.

## References
- PyTorch, Distributed Data Parallel, "Internal Design": https://docs.pytorch.org/docs/stable/notes/ddp.html
- PyTorch, torch.distributed, "Debugging torch.distributed applications": https://docs.pytorch.org/docs/stable/distributed.html
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pyrometer.advice import Gain
from pyrometer.place import Place, file_name
from pyrometer.quantity import format_percent, format_seconds
from pyrometer.rules.data.patterns.waiting import DATA
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.trace.jobs.job import MAX_CHANCE, MIN_GAIN, MIN_PERSISTENCE

if TYPE_CHECKING:
    from pyrometer.trace.jobs.job import Straggler, Suspect

RULE = declare(
    code="PYR607",
    severity="warning",
    scope="symptom",
    fix_class="semantic",
    limits=(
        Limit("min_share", MIN_GAIN, "less than that of the time is the usual jitter between ranks"),
        Limit(
            "min_persistence", MIN_PERSISTENCE, "in a job of equals every rank is the last one now and then"
        ),
        Limit("max_chance", MAX_CHANCE, "of some ranks that are alike, one is always the slowest by chance"),
    ),
)

BUILT_IN = re.compile(r"<built-in (?:function|method) (\w+).*>")

LOADER = "DataLoader"
"""In the name of what waits for data."""


@RULE.in_evidence("job")
def explain(case: Case) -> Findings:
    """Ranks whose delay lengthens the step of all."""
    job = case.job
    limits = [case.limit(RULE, limit.name) for limit in RULE.limits]
    for index, straggler in enumerate(job.stragglers if job is not None else []):
        if job is None or not job.span_ns or not straggler.slows(job.span_ns, *limits):
            continue
        share = straggler.gain_ns / job.span_ns
        suspect = straggler.suspects[0] if straggler.suspects else None
        yield RULE.finding(
            message=_message(straggler, suspect, share),
            scope=RULE.scope if suspect is None else "mechanism",
            where=_place(straggler, suspect),
            evidence={
                "caused_wait_ns": straggler.caused_wait_ns,
                "share_of_all_waiting": straggler.share,
                "delay_ns": straggler.delay_ns,
                "persistence": straggler.persistence,
                "suspects": [each.name for each in straggler.suspects],
            },
            links=[f"/job/stragglers/{index}"],
            cost=case.cost_of(share, "its delay, up to what the others wait in the open beyond itself"),
            gain=Gain(
                ratio_low=1 - share, ratio_high=1 - share / 2, method="model: half to all of its delay gone"
            ),
            confidence="high" if straggler.persistence is not None else "medium",
            advice=_advice(straggler, suspect),
            resource=_resource(case, straggler, suspect),
        )


def _resource(case: Case, straggler: Straggler, suspect: Suspect | None) -> str:
    """Waiting for data, where that is what it is late with and its trace is looked at."""
    looked_at = case.trace is not None and case.trace.rank == straggler.rank
    if looked_at and suspect is not None and LOADER in suspect.name:
        return DATA
    return f"straggler:{straggler.rank}"


def _message(straggler: Straggler, suspect: Suspect | None, share: float) -> str:
    steady = (
        "" if straggler.persistence is None else f" in {format_percent(straggler.persistence)} of the steps"
    )
    late = (
        f"; it spends {format_seconds(suspect.excess_ns * 1e-9)} more than the others {_doing(suspect)}"
        if suspect is not None
        else ""
    )
    return f"the others wait for rank {straggler.rank}{steady}, which costs {format_percent(share)} of the time{late}"


def _advice(straggler: Straggler, suspect: Suspect | None) -> str:
    start = f"Look at what rank {straggler.rank} does beside the others: "
    if suspect is None:
        return f"{start}logging, checkpoints, evaluation, another machine, other clocks."
    if LOADER in suspect.name:
        return f"{start}its data loader waits longer. Give it more workers, even lengths of samples, or faster storage."
    if suspect.side == "device":
        return f"{start}{suspect.name} takes longer on its device. Compare shapes, clocks and temperature with another rank."
    return f"{start}its host spends longer {_doing(suspect)}. Move logging and checkpoints out of the step, and pin its threads."


def _doing(suspect: Suspect) -> str:
    """What it spends its time on, as part of a sentence.

    >>> from pyrometer.trace.jobs.job import Suspect
    >>> mine = Place(file="train.py", line=7, function="save")
    >>> _doing(Suspect(name="<built-in function sleep>", side="host", where=mine, excess_ns=1, own_ns=1))
    'in sleep, called by save (train.py:7)'
    """
    name, where = suspect.name, suspect.where
    if name.startswith("between "):
        return name
    bare = BUILT_IN.sub(r"\1", name)
    if where.function is None:
        return f"in {bare}"
    place = f"{where.function} ({file_name(where.file or '')}:{where.line})"
    return f"in {place}" if name.endswith(f": {where.function}") else f"in {bare}, called by {place}"


def _place(straggler: Straggler, suspect: Suspect | None) -> Place:
    if suspect is None:
        return Place(rank=straggler.rank)
    return msgspec.structs.replace(suspect.where, rank=straggler.rank, op=suspect.name)
