"""The number of threads does not match the available processors.

## What it does
Compares torch's intra-op threads with the processors that this process may use, by affinity and control group: more threads than
processors, more than other processes leave free (which is told of the measurement, not of the program), or, where a measurement shows that all threads are busy throughout, fewer.

## Why it costs
Threads beyond the processors take turns: those that wait for the others at the end of each operator spin or sleep. In a container
with a quota of two processors on a machine with 64, torch starts 32 to 64 threads. A thread that other processes keep from running
holds up all of an operator: on two processors of which others used 1.7, a step of small matrix products took 300 ms with two
threads, and 0.3 ms with one. Fewer threads than processors leave some idle while operators compute.

## Example
```python
import torch

torch.set_num_threads(64)
```

## Use instead
As many threads as the process has processors, or fewer where several processes share them.
```python
import os
import torch

torch.set_num_threads(len(os.sched_getaffinity(0)))
```

## Fix safety
Sums may be added up in another order with another number of threads, so results may differ within rounding.

## References
- PyTorch, CPU threading and TorchScript inference: https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html
- PyTorch, Performance Tuning Guide, "Utilize OpenMP": https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

import math

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import counted, significant
from pyrometer.rules.finding import NEIGHBOURS
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR514",
    severity="warning",
    fix_class="tolerance",
    lever="threads",
    limits=(
        Limit("max_threads_per_cpu", 1.5, "a thread more than there are processors is often on purpose"),
        Limit(
            "min_busy",
            0.9,
            "threads that are busy less than nine tenths of the time would not gain by company",
        ),
        Limit("max_competing", 0.25, "processors that others use are not free"),
        Limit(
            "crowded",
            0.25,
            "of the processors, in use by others: from there on a thread often has to wait for one",
        ),
    ),
)


@RULE.in_evidence("program", "environment", "measurement")
def explain(case: Case) -> Findings:
    """Too many threads, or too few that are all busy."""
    program, environment, measured = case.program, case.environment, case.measurement
    if program is None or environment is None or measured is None or program.device not in {"cpu", "none"}:
        return
    threads, usable = program.settings.get("threads"), environment.cpu.usable_cpus
    if not isinstance(threads, int) or usable <= 0 or not measured.median_s or measured.cpu_s is None:
        return
    busy = measured.cpu_s / measured.median_s
    told = {"threads": threads, "usable_cpus": usable, "busy_cpus": busy}
    if threads > usable * case.limit(RULE, "max_threads_per_cpu") and threads > math.ceil(usable):
        fitting = max(1, int(usable))
        yield RULE.finding(
            message=f"torch runs {counted(threads, 'thread')} on {significant(usable)} usable processors, of which "
            f"{significant(busy, 2)} were busy.",
            where=_set_at(case),
            evidence=told,
            links=["/program/settings/threads", "/environment/cpu/usable_cpus"],
            confidence="high",
            advice=f"Set torch.set_num_threads({fitting}), or OMP_NUM_THREADS={fitting} before Python starts.",
            rewrite=f"torch.set_num_threads({fitting})",
            resource="threads",
        )
    elif (others := _crowding(case, threads, usable)) is not None:
        fitting = max(1, int(usable - others))
        yield RULE.finding(
            scope="measurement",
            message=f"torch runs {counted(threads, 'thread')} on {significant(usable)} processors of which other processes used "
            f"{significant(others, 2)}: an operator waits for the thread that has none.",
            where=Place(),
            evidence={**told, "used_by_others": others},
            links=["/program/settings/threads", "/measurement/conditions/competing_load"],
            confidence="medium",
            advice=f"Where others share the machine, set torch.set_num_threads({fitting}), or OMP_NUM_THREADS={fitting} before "
            "Python starts; small operators gain most.",
            rewrite=f"torch.set_num_threads({fitting})",
            resource=f"threads:{NEIGHBOURS}",
        )
    elif _could_use_more(case, threads, usable, busy):
        ratio = threads / int(usable)
        yield RULE.finding(
            severity="info",
            message=f"All {threads} of torch's threads are busy throughout, and {significant(usable - threads, 2)} of "
            f"{significant(usable)} usable processors are left idle."
            if threads > 1
            else f"torch's only thread is busy throughout, and {significant(usable)} processors are usable.",
            where=Place(),
            evidence=told,
            links=["/program/settings/threads", "/environment/cpu/usable_cpus", "/measurement/cpu_s"],
            gain=Gain(
                ratio_low=ratio,
                ratio_high=1.0,
                method="bound: as if all of it ran in parallel; at worst none",
            ),
            confidence="low",
            advice=f"Measure it with torch.set_num_threads({int(usable)}): operators on large tensors gain, small ones lose.",
            rewrite=f"torch.set_num_threads({int(usable)})",
            resource="threads",
        )


def _set_at(case: Case) -> Place:
    """Where the program sets the number, if at one place."""
    found = [
        (module.path, call.lineno)
        for module in case.modules
        for call in module.calls("torch.set_num_threads")
    ]
    return Place(file=found[0][0], line=found[0][1]) if len(found) == 1 else Place()


def _competing(case: Case) -> float | None:
    """Processors that other processes kept busy while it was measured."""
    conditions = case.measurement.conditions if case.measurement is not None else None
    return conditions.competing_load if conditions is not None else None


def _crowding(case: Case, threads: int, usable: float) -> float | None:
    """Processors that others use, where they leave too few for torch's threads."""
    competing = _competing(case)
    if competing is None or threads < 2 or competing < usable * case.limit(RULE, "crowded"):
        return None
    return competing if threads + competing > usable + 1 - case.limit(RULE, "crowded") else None


def _could_use_more(case: Case, threads: int, usable: float, busy: float) -> bool:
    competing = _competing(case)
    return (
        threads < int(usable)
        and busy >= threads * case.limit(RULE, "min_busy")
        and competing is not None
        and competing <= case.limit(RULE, "max_competing")
    )
