"""What the compiled graphs do once they are there: a few steady steps under the profiler, joined to the compilations."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from pyrometer.bench.comparison.verdict import Outcome
from pyrometer.compiler.collecting.entries import payload_json
from pyrometer.compiler.costs.record import Compilation
from pyrometer.compiler.inspection.record import GraphRuntime, Runtime
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.private.profile_regions import (
    Region,
    Regions,
    busy_share,
    capped_sum,
    ranges_of,
    read_regions,
)
from pyrometer.quantity import Seconds
from pyrometer.workload.script.startup._pyrometer_inside.kineto import new_profiler, profiler_running, quiet
from pyrometer.workload.workload import Session

CACHES = ("fx_graph_cache_hit", "fx_graph_cache_miss", "fx_graph_cache_bypass")


@dataclass(frozen=True)
class Profiled:
    """Steps that ran under the profiler."""

    num_steps: int
    regions: Regions
    busy_share: float | None = None
    """Share of time with work on a device; `None` where there is none."""
    step_s: Seconds | None = None
    """Mean step, which the profiler makes longer; hiccups of the machine capped."""
    num_recordings: int = 1
    """Recordings that were taken; this is the one whose step is the median."""

    @property
    def ran_compiled(self) -> bool:
        """Whether any compiled code ran."""
        return bool(self.regions.by_id)


def can_profile() -> bool:
    """Whether no profiler is at work in this process; there can be only one."""
    return not profiler_running(torch)


def profile_steps(session: Session, num_steps: int) -> Profiled:
    """Run steps of an open session under the profiler; what the steps raise passes."""
    session.activate()
    profiler, _ = new_profiler(torch, {})
    with quiet():
        profiler.start()
    spent: list[Seconds] = []
    try:
        for _ in range(num_steps):
            prepared = session.prepare()
            start_s = time.perf_counter()
            session.step(prepared)
            spent.append(time.perf_counter() - start_s)
        start_s = time.perf_counter()
        _synchronize(session.device)
        waited_s = time.perf_counter() - start_s
    finally:
        with quiet():
            profiler.stop()
    step_s = (capped_sum(spent) + waited_s) / num_steps
    return Profiled(num_steps, read_regions(ranges_of(profiler)), busy_share(profiler), step_s)


def middle_recording(recordings: Sequence[Profiled]) -> Profiled:
    """Of several recordings the one whose step is the median: a machine that was busy for a moment spoils no more than one."""
    ordered = sorted(recordings, key=lambda recording: recording.step_s or 0.0)
    return replace(ordered[(len(ordered) - 1) // 2], num_recordings=len(ordered))


@dataclass(frozen=True)
class Savings:
    """What compiling spares per step, to be shared among the graphs by their time."""

    steady_s: Seconds | None = None
    eager_steady_s: Seconds | None = None
    outcome: Outcome | None = None
    """Of the comparison of the two, where there was one."""
    run_steps: int = 1000

    @property
    def per_step_s(self) -> Seconds | None:
        """Time spared per step; below zero where eager is faster, `None` while that is not decided."""
        if self.steady_s is None or self.eager_steady_s is None or self.outcome == "undecided":
            return None
        return 0.0 if self.outcome == "same" else self.eager_steady_s - self.steady_s


@dataclass
class _Used:
    """One compilation with what the profile says of it."""

    compile_id: str
    region: Region = field(default_factory=Region)
    backward_s: Seconds = 0.0

    @property
    def total_s(self) -> Seconds:
        return self.region.own_s + self.backward_s


def read_runtime(
    profiled: Profiled, log: CompileLog, compilations: Sequence[Compilation], savings: Savings | None = None
) -> Runtime:
    """Join the regions of a profile to the compilations of a log, by compile id and by cache key.

    Every compilation that yielded code is named, also those that no step used: a variant that was compiled once and never
    met again. What the step spares is shared among its graphs by the time that each of them takes.

    Args:
        profiled: the steps.
        log: what was compiled.
        compilations: of the log, for what each of them took.
        savings: step times with and without compiled code.
    """
    keys = graph_keys(log)
    found = _used(profiled.regions, log, keys)
    for compilation in compilations:
        if compilation.outcome == "compiled":
            found.setdefault(compilation.compile_id, _Used(compilation.compile_id))
    took = {compilation.compile_id: compilation.total_s for compilation in compilations}
    total_s = sum(each.total_s for each in found.values())
    sharing = _Sharing(profiled.num_steps, total_s, savings or Savings())
    graphs = [_graph(each, took.get(each.compile_id), keys, sharing) for each in found.values()]
    lookup_s, wrapper_s = profiled.regions.lookup_s, profiled.regions.wrapper_s
    return Runtime(
        num_steps=profiled.num_steps,
        profiled_step_s=profiled.step_s,
        num_recordings=profiled.num_recordings,
        graphs=sorted(graphs, key=lambda graph: -graph.share),
        lookup_s=None if lookup_s is None else lookup_s / profiled.num_steps,
        wrapper_s=None if wrapper_s is None else wrapper_s / profiled.num_steps,
        run_steps=sharing.savings.run_steps,
    )


def graph_keys(log: CompileLog) -> dict[str, str]:
    """Compile ids by the cache keys of Inductor's graphs."""
    found: dict[str, str] = {}
    for entry in log.of(*CACHES):
        content = payload_json(entry)
        key = content.get("key") if isinstance(content, dict) else None
        if entry.compile_id is not None and isinstance(key, str):
            found[key] = entry.compile_id.text
    return found


def _used(regions: Regions, log: CompileLog, keys: Mapping[str, str]) -> dict[str, _Used]:
    latest = _latest_ids(log)
    found: dict[str, _Used] = {}
    for name, region in regions.by_id.items():
        compile_id = latest.get(name, name)
        found[compile_id] = _Used(compile_id, region, region.backward_s)
    for key, seconds in regions.backward_by_key.items():
        if key in keys:
            found.setdefault(keys[key], _Used(keys[key])).backward_s += seconds
    return found


def _latest_ids(log: CompileLog) -> dict[str, str]:
    """Ids with their epoch by ids as torch writes them: after a reset they are given anew, and the last one is in use."""
    ids = sorted(log.compile_ids(), key=lambda compile_id: compile_id.epoch)
    return {compile_id._replace(epoch=0).text: compile_id.text for compile_id in ids}


@dataclass(frozen=True)
class _Sharing:
    """Between all graphs of the profiled steps."""

    num_steps: int
    total_s: Seconds
    savings: Savings

    def share(self, used: _Used) -> float:
        return used.total_s / self.total_s if self.total_s else 0.0

    def spared_per_step_s(self, used: _Used) -> Seconds | None:
        spared_s = self.savings.per_step_s
        return None if spared_s is None else spared_s * self.share(used)

    def break_even_calls(self, used: _Used, compile_s: Seconds | None) -> int | None:
        spared_s = self.spared_per_step_s(used)
        if compile_s is None or spared_s is None or spared_s <= 0:
            return None
        calls = compile_s / (spared_s * self.num_steps / used.region.calls)
        # 1e-9: a call that pays exactly must not be missed for how floats are rounded.
        return max(1, math.ceil(calls * (1 - 1e-9)))

    def pays(self, used: _Used, compile_s: Seconds | None) -> bool | None:
        """Whether the run earns the compile time back; a graph that is never used does not."""
        if not used.region.calls:
            return False
        spared_s = self.spared_per_step_s(used)
        if compile_s is None or spared_s is None:
            return None
        return spared_s * self.savings.run_steps >= compile_s


def _graph(
    used: _Used, compile_s: Seconds | None, keys: Mapping[str, str], sharing: _Sharing
) -> GraphRuntime:
    calls, of_log = used.region.calls, [key for key, owner in keys.items() if owner == used.compile_id]
    return GraphRuntime(
        compile_id=used.compile_id,
        calls=calls,
        total_s=used.total_s,
        backward_s=used.backward_s or None,
        calls_per_step=calls / sharing.num_steps,
        mean_s=used.total_s / calls if calls else 0.0,
        share=sharing.share(used),
        cache_key=next(iter([*used.region.keys, *of_log]), ""),
        compile_s=compile_s,
        break_even_calls=sharing.break_even_calls(used, compile_s) if calls else None,
        pays=sharing.pays(used, compile_s),
    )


def _synchronize(device: torch.device) -> None:
    if device.type != "cpu":
        torch.get_device_module(device).synchronize()
