"""What compiling cost in all, and from which step on it has paid."""

from __future__ import annotations

import math

from pyrometer.compiler.costs.metrics import observing_s
from pyrometer.compiler.costs.phases import phases_s
from pyrometer.compiler.costs.record import CompileCost
from pyrometer.compiler.costs.spans import behind, read_spans, waited_for
from pyrometer.compiler.costs.tree import phase_tree
from pyrometer.compiler.log import CompileLog
from pyrometer.quantity import Seconds


def read_cost(
    log: CompileLog,
    *,
    first_call_s: Seconds | None = None,
    steady_s: Seconds | None = None,
    eager_steady_s: Seconds | None = None,
    dispatch_s: Seconds | None = None,
) -> CompileCost:
    """The cost of all compilations of a log.

    Compile time is the time in which threads waited for the compiler: from begin to end of compiling a frame, or the backward
    at its first use, or of tuning and recording at the first run; summed over threads, each moment of a thread once.

    Args:
        log: what the compiler said.
        first_call_s: the first step, compilation included.
        steady_s: a step once nothing is compiled any more.
        eager_steady_s: a step without torch.compile.
        dispatch_s: look-ups, guards and wrappers per step.
    """
    spans = read_spans(log)
    waits = waited_for(spans)
    return CompileCost(
        first_call_s=first_call_s,
        steady_s=steady_s,
        eager_steady_s=eager_steady_s,
        compile_s=sum(span.duration_ns for span in waits) / 1e9,
        break_even_steps=break_even_steps(first_call_s, steady_s, eager_steady_s),
        phases_s=phases_s(waits),
        tree=phase_tree(waits),
        background_s=phases_s(behind(spans)),
        observing_s=observing_s(log),
        dispatch_s=dispatch_s,
    )


def break_even_steps(
    first_call_s: Seconds | None, steady_s: Seconds | None, eager_steady_s: Seconds | None
) -> int | None:
    """The smallest n with `first_call_s + (n - 1) · steady_s <= n · eager_steady_s`; `None` if never, or unknown.

    Never when a compiled step is not faster than an eager one, whatever the first cost.

    >>> break_even_steps(10.0, 0.5, 1.0), break_even_steps(0.9, 0.5, 1.0), break_even_steps(10.0, 1.0, 1.0)
    (19, 1, None)
    """
    if first_call_s is None or steady_s is None or eager_steady_s is None:
        return None
    if not all(math.isfinite(time_s) for time_s in (first_call_s, steady_s, eager_steady_s)):
        return None
    if steady_s >= eager_steady_s:
        return None
    steps = (first_call_s - steady_s) / (eager_steady_s - steady_s)
    # 1e-9: a step that pays exactly must not be missed for how floats are rounded.
    return max(1, math.ceil(steps * (1 - 1e-9))) if math.isfinite(steps) else None
