"""Steps of an inference engine, prefill and decode apart: how long they are, how many tokens they give, how busy the device is.

A step is what the engine's own annotation marks (vLLM, SGLang, ATOM); requests and tokens are as it says. `total_ns` is from the
start of each mark to its end on the host, `device_ns` the device work that was launched within. New tokens of a prefill are
those of the prompts, of a decode those that were generated.
"""

from __future__ import annotations

import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.linking.engines import served
from pyrometer.trace.records.breakdown import EngineSteps
from pyrometer.trace.timing.distribution import distribution
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace


@analysis("engine_steps")
def engine_steps(trace: RankTrace) -> list[EngineSteps]:
    """Steps of vLLM, SGLang and ATOM by what they served; empty for other programs."""
    steps = served(trace.steps, trace.events)
    if not steps:
        return []
    spent = step_windows(trace).select(pl.col("end_ns") - pl.col("start_ns")).to_series().to_numpy()
    work = trace.device_work.group_by("step").agg(pl.col("dur_ns").sum(), pl.len())
    of_step = {step: (dur, number) for step, dur, number in work.iter_rows()}
    kinds = [step.kind for step in steps]
    groups = []
    for kind in dict.fromkeys(kinds):
        rows = [row for row, of in enumerate(kinds) if of == kind]
        total = int(spent[rows].sum())
        tokens = sum(steps[row].prefill.queries + steps[row].decode.queries for row in rows)
        launched = [of_step.get(row, (0, 0)) for row in rows]
        groups.append(
            EngineSteps(
                kind=kind,
                num_steps=len(rows),
                requests=sum(steps[row].prefill.requests + steps[row].decode.requests for row in rows),
                tokens=tokens,
                total_ns=total,
                step=distribution(pl.Series(spent[rows])),
                tokens_per_s=tokens * 1e9 / total if tokens and total else None,
                device_ns=sum(dur for dur, _ in launched),
                num_work=sum(number for _, number in launched),
            )
        )
    return groups
