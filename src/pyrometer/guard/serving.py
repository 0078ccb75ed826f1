"""The process of one side: it sets benchmarks of its tree up, one after the other, and answers what it is asked of them.

It runs in the environment of its side, with this Pyrometer. Where the tree is Pyrometer itself, its benchmarks see
the tree's own package and the guard sees this one.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyrometer.bench.clock import clock_for
from pyrometer.bench.comparison.interleaving import Side, seed_all
from pyrometer.bench.dynamo import compile_seconds
from pyrometer.bench.garbage import settled
from pyrometer.bench.memory import AllocatorMemory, ResidentMemory
from pyrometer.bench.phasing import time_phases
from pyrometer.bench.worker import Ran, Run, answer_requests
from pyrometer.errors import InputError
from pyrometer.guard import protocol
from pyrometer.guard.discovery import Benchmark, Itself, discover
from pyrometer.record import Record
from pyrometer.workload.call import Call
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload

SEED = 0
if TYPE_CHECKING:
    from pyrometer.guard.explaining import Explained
    from pyrometer.guard.observed import Counted

PHASES_S = 0.3
OWN = "pyrometer"


def serve() -> None:
    """Answer requests from stdin until it is closed."""
    child = GuardChild()
    try:
        answer_requests(protocol.Request, child.answer)
    finally:
        child.close()


class OwnPackage:
    """The package of the tree in place of the one that measures it, while code of the tree runs."""

    def __init__(self, paths: list[str]) -> None:
        self._theirs: dict[str, ModuleType] | None = (
            {} if any((Path(path) / OWN / "__init__.py").exists() for path in paths) else None
        )

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Within, `import pyrometer` is the tree's; nothing changes where the tree has no package of that name."""
        if self._theirs is None:
            yield
            return
        ours = _taken_out()
        sys.modules.update(self._theirs)
        try:
            yield
        finally:
            self._theirs = _taken_out()
            sys.modules.update(ours)


def _taken_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == OWN or name.startswith(f"{OWN}.")]
    return {name: sys.modules.pop(name) for name in names}


class GuardChild:
    """The benchmarks of a tree, of which at most one is open."""

    def __init__(self) -> None:
        self._life = contextlib.ExitStack()
        self._stack = self._life.enter_context(contextlib.ExitStack())
        self._benchmarks: dict[str, Benchmark] = {}
        self._own = OwnPackage([])
        self._tree = Path()
        self._foreign: str | None = None
        self._work: Workload
        self._side: Side

    def close(self) -> None:
        """Close the benchmark that is open; no other can be opened."""
        with self._own.current():
            self._life.close()

    def answer(self, request: Record) -> Record:
        """Do what is asked."""
        handlers: dict[type[Any], Callable[[Any], Record]] = {
            protocol.Collect: self._collect,
            protocol.Open: self._open,
            Run: self._run,
            protocol.Finish: self._finish,
            protocol.Count: self._count,
            protocol.Explain: self._explain,
        }
        return handlers[type(request)](request)

    def _collect(self, request: protocol.Collect) -> protocol.Collected:
        self._own, self._tree = OwnPackage(request.paths), Path(request.tree)
        self._foreign = request.foreign
        sys.argv[:] = [request.files[0] if request.files else ""]
        with self._own.current():
            found = discover(self._tree, request.files, request.targets, request.matrix)
        self._benchmarks = {each.name: each for each in found.benchmarks}
        self._require_own_code()
        self._life.enter_context(settled())  # each benchmark is opened without garbage of the one before
        bodies = {name: each.body for name, each in self._benchmarks.items()}
        for name, own in request.renamed.items():
            self._benchmarks[name] = self._benchmarks[own]
        return protocol.Collected(bodies=bodies, failures=found.failures)

    def _require_own_code(self) -> None:
        """Code of the user's own tree would be the same on both sides."""
        if self._foreign is None:
            return
        inside = self._foreign.rstrip("/") + "/"
        environments = tuple(f"{place.rstrip('/')}/" for place in (sys.prefix, str(self._tree), OUR_FOLDER))
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None) or ""
            if file.startswith(inside) and not file.startswith(environments):
                raise InputError(
                    f"{name} is imported from {file} and not from the commit: both sides would run the same code; "
                    f'name the folder that it lies in: [tool.pyrometer.guard] paths = ["…"], or pass --env own'
                )

    def _made(self, name: str) -> tuple[Workload, float]:
        """A benchmark set up, and how long that took."""
        self._stack.close()
        gc.collect()
        seed_all(SEED)
        begin = time.perf_counter()
        with self._own.current():
            work = self._benchmarks[name].make()
        took_s = time.perf_counter() - begin
        self._require_own_code()
        return work, took_s

    def _open(self, request: protocol.Open) -> protocol.Opened:
        work, setup_s = self._made(request.name)
        compiled_before = compile_seconds()
        self._resident = ResidentMemory()
        self._resident.reset_peak()
        self._work = work
        with self._own.current():
            session = self._stack.enter_context(work.open())
            self._side = Side(request.name, session, clock_for(session.device))
            self._device = AllocatorMemory(session.device) if session.device.type == "cuda" else None
            if self._device is not None:
                self._device.reset_peak()
            seed_all(SEED)
            begin = time.perf_counter()
            self._side.batch(1)
        first_call_s = time.perf_counter() - begin
        if isinstance(work, Call) and isinstance(work.function, Itself):
            first_call_s = setup_s
        spent = compile_seconds()
        compile_s = None if spent is None or compiled_before is None else spent - compiled_before
        gc.collect()
        return protocol.Opened(
            kind=type(work).__name__,
            unit=work.unit,
            device=str(session.device),
            clock=self._side.clock.name,
            first_call_s=first_call_s,
            compile_s=compile_s or None,
        )

    def _run(self, request: Run) -> Ran:
        if request.core is not None:
            _begin_on(request.core)
        seed_all(request.seed)
        with self._own.current():
            return Ran.of(self._side.batch(request.num_calls, watched=request.watched))

    def _finish(self, _: protocol.Finish) -> protocol.Finished:
        side, share = self._side, None
        host_peak = self._resident.peak()
        peaks: tuple[int | None, int | None] = (None, None)
        if self._device is not None:
            import torch

            peaks = (self._device.peak(), torch.cuda.max_memory_reserved(side.session.device))
        if isinstance(self._work, Training):
            phases = time_phases(side.session, side.clock, PHASES_S, self._work.phases())
            share = next((phase.share for phase in phases if phase.name == "data"), 0.0)
        units = side.session.units_per_step
        with self._own.current():
            self._stack.close()
        return protocol.Finished(
            units_per_step=units,
            host_peak_bytes=host_peak,
            peak_bytes=peaks[0],
            reserved_bytes=peaks[1],
            loader_share=share,
        )

    def _count(self, request: protocol.Count) -> Counted:
        import msgspec

        from pyrometer.guard.counting import count, doubts_of  # a process that only times starts without them
        from pyrometer.guard.outputs import keep_outputs, output_difference

        work, _ = self._made(request.name)
        with self._own.current():
            counted = count(work, self._tree)
            compare = keep_outputs if request.reference else output_difference
            told: Any = compare(work, Path(request.outputs))
            notes = counted.notes + ([] if counted.compiled else doubts_of(work))
        if isinstance(told, str) or told is None:
            notes += [f"outputs are not compared: {told}"] if told and request.reference else []
            return msgspec.structs.replace(counted, notes=notes)
        return msgspec.structs.replace(counted, error=told, notes=notes)

    def _explain(self, request: protocol.Explain) -> Explained:
        from pyrometer.evidence.observe import observe
        from pyrometer.evidence.options import ObserveOptions
        from pyrometer.guard.explaining import Explained
        from pyrometer.trace.export.formats import export_trace

        work, _ = self._made(request.name)
        with self._own.current():
            seen = observe(work, request.name, ObserveOptions(budget_s=request.budget_s))
        written = None
        if seen.trace is not None:
            written = str(export_trace(seen.trace, Path(request.trace)))
        return Explained(evidence=seen.evidence, trace=written)


def _begin_on(core: int) -> None:
    """Move to a core and be free to leave it again: on a busy machine no side then owns the better one."""
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    if core in allowed:
        os.sched_setaffinity(0, {core})
        os.sched_setaffinity(0, allowed)


def draw_core(coin: random.Random) -> int | None:
    """A core for both sides to begin the next blocks on; null where the system has no say in it."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return coin.choice(sorted(os.sched_getaffinity(0)))


OUR_FOLDER = str(Path(sys.modules[OWN].__file__ or "").parent)
