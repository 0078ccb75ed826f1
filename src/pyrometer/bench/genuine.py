"""Whether a step does its work, and has done it when it returns: otherwise its time is of something else.

Three things fool every clock: a call that returns what has yet to run (a generator, a coroutine, a future), one that puts its
work off to a thread, and one that keeps its answers by the identity of its inputs, which are the same objects in each
step of a measurement and never in a program.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import io
import threading
import time
from collections.abc import Awaitable, Iterator
from multiprocessing.pool import AsyncResult
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pyrometer.bench.clock import Clock
from pyrometer.bench.quality import Caveat, CaveatCode, caveat
from pyrometer.quantity import Seconds, counted, format_percent, format_seconds
from pyrometer.workload.workload import Session

QUICKER = 3.0
"""A call with the same objects that is so many times as fast as one with copies has not computed anew."""

FUTURES = (concurrent.futures.Future, asyncio.Future, torch.futures.Future)
"""Those of other libraries, and TorchScript's, are known by their name."""

LEAST_S = 50e-6
"""Below this difference, a first touch of new memory explains it."""

NUM_COPIES = 5
PUT_OFF_SHARE = 0.2
"""Time of the processor on other threads after a step, over the step's own time: more is work of the step."""

LEAST_PUT_OFF_S = 2e-4
BURST_S = 5e-3
MOST_IN_BURST = 20
"""Steps run in a row before others are looked at: what each puts off adds up."""

QUIET_S = 0.01
PATIENCE_S = 0.5


def doubts(
    session: Session, clock: Clock, typical_s: Seconds, first_call_s: Seconds
) -> tuple[list[Caveat], int]:
    """Why the time of a step is not that of its work, and how many steps were run to see it.

    Args:
        session: an open session that has run some steps.
        clock: of its device.
        typical_s: how long a step takes.
        first_call_s: how long the first took: no answer was kept then.
    """
    session.activate()
    num_steps = min(max(int(BURST_S / max(typical_s, 1e-9)), 1), MOST_IN_BURST)
    prepared = [session.prepare() for _ in range(num_steps)]
    others = _Others()
    start_ns = clock.host_ns()
    for arguments in prepared:
        output = session.step(arguments)
    clock.synchronize()
    took_s = (clock.host_ns() - start_ns) * 1e-9
    left = _left_to_run(output)  # before anything is waited for
    put_off = others.put_off(num_steps, took_s)
    if left is not None:
        return [left], num_steps
    kept, num_more = _kept(session, clock, typical_s, first_call_s)
    return [doubt for doubt in (put_off, kept) if doubt is not None], num_steps + num_more


def unfinished(output: Any) -> str | None:
    """What of a step's output has yet to run, in a word or two; `None` where all is there.

    >>> unfinished([1, (i for i in range(3))]), unfinished(torch.ones(2))
    ('a generator', None)
    """
    kinds = (_unfinished(leaf) for leaf in pytree.tree_leaves(output))
    return next((kind for kind in kinds if kind is not None), None)


def _unfinished(leaf: Any) -> str | None:
    if inspect.isgenerator(leaf):
        return None if inspect.getgeneratorstate(leaf) == inspect.GEN_CLOSED else "a generator"
    if (waited := _not_there(leaf)) is not None:
        return waited
    if inspect.isasyncgen(leaf):
        return "an asynchronous generator"
    if isinstance(leaf, Awaitable) and not isinstance(leaf, torch.Tensor):
        return "a coroutine" if inspect.iscoroutine(leaf) else f"an awaitable ({type(leaf).__name__})"
    if isinstance(leaf, (map, filter, zip, enumerate)) or _computes_when_asked(leaf):
        return f"a lazy iterator ({type(leaf).__name__})"
    return None


def _not_there(leaf: Any) -> str | None:
    named = "Future" in [kind.__name__ for kind in type(leaf).__mro__] and hasattr(leaf, "done")
    if isinstance(leaf, FUTURES) or named:
        return None if leaf.done() else "a future that is not done"
    if isinstance(leaf, AsyncResult) and not leaf.ready():
        return "a result of a pool that is not ready"
    return None


def _computes_when_asked(leaf: Any) -> bool:
    """Whether an iterator is one of itertools or of a program's own; those of Python's containers hold what they give, files do other work."""
    if not isinstance(leaf, Iterator) or isinstance(leaf, io.IOBase):
        return False
    return type(leaf).__module__ == "itertools" or inspect.isfunction(getattr(type(leaf), "__next__", None))


def _left_to_run(output: Any) -> Caveat | None:
    kind = unfinished(output)
    if kind is None:
        return None
    for leaf in pytree.tree_leaves(output):
        if inspect.iscoroutine(leaf):
            leaf.close()  # or Python complains that nobody awaited it
    how = "asyncio.run(…)" if kind.startswith(("a coroutine", "an a")) else "list(…)"
    return caveat(
        CaveatCode.RETURNS_UNFINISHED,
        f"a step returns {kind}: its work has not run when it returns, and is in no figure",
        "wait for the result inside the step, as in "
        + (
            "future.result()"
            if "future" in kind
            else "result.get()"
            if "pool" in kind
            else f"{how} around the call"
        ),
    )


class _Others:
    """What the program's other Python threads do, apart from those that torch's operators compute on."""

    def __init__(self) -> None:
        """Waits until they rest, or our patience ends."""
        self._me = threading.get_ident()
        self._before = set(self.threads())
        self._settle()

    def threads(self) -> list[threading.Thread]:
        return [
            thread
            for thread in threading.enumerate()
            if thread.ident != self._me and not thread.name.startswith("pyrometer")
        ]

    def put_off(self, num_steps: int, took_s: Seconds) -> Caveat | None:
        """What they do after steps that have just returned."""
        at_return, started_s = self._times(), time.perf_counter()
        threads = self.threads()
        if not threads:
            return None
        ended_s = self._ends([thread for thread in threads if thread not in self._before])
        self._settle()
        after = self._times()
        busy_s = {
            thread.name: after[thread] - at_return.get(thread, 0.0) for thread in threads if thread in after
        }
        # A thread that has ended tells no time of the processor; it was at work until then.
        busy_s |= {name: at_s - started_s for name, at_s in ended_s.items() if name not in busy_s}
        total_s = sum(busy_s.values())
        if total_s < max(LEAST_PUT_OFF_S, PUT_OFF_SHARE * took_s):
            return None
        name = max(busy_s, key=lambda one: busy_s[one])
        return caveat(
            CaveatCode.WORK_PUT_OFF,
            f"after {counted(num_steps, 'step')} in {format_seconds(took_s)} have returned, {name} works on for "
            f"{format_seconds(total_s)}: work was put off to a thread, and is in no figure",
            "wait for it inside the step: future.result(), thread.join() or queue.join()",
        )

    @staticmethod
    def _ends(started: list[threading.Thread]) -> dict[str, Seconds]:
        """When threads that steps started end, of those that do so before our patience ends, or rest."""
        ended_s: dict[str, Seconds] = {}
        give_up = time.perf_counter() + PATIENCE_S
        alive = started
        while alive and time.perf_counter() < give_up and any(map(_waits_for_cpu, alive)):
            time.sleep(LEAST_PUT_OFF_S)
            ended_s |= {thread.name: time.perf_counter() for thread in alive if not thread.is_alive()}
            alive = [thread for thread in alive if thread.is_alive()]
        return ended_s

    def _settle(self) -> None:
        give_up, last = time.perf_counter() + PATIENCE_S, self._times()
        while last and time.perf_counter() < give_up:
            time.sleep(QUIET_S)
            now = self._times()
            gained_s = sum(now.values()) - sum(last.values())
            if now.keys() == last.keys() and gained_s < QUIET_S * 0.02 and not any(map(_waits_for_cpu, now)):
                return
            last = now

    def _times(self) -> dict[threading.Thread, Seconds]:
        """Time of the processor of each so far; without those of which the system tells none."""
        told = {}
        for thread in self.threads():
            with contextlib.suppress(OSError, ValueError):
                figures = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text(encoding="ascii")
                told[thread] = int(figures.split()[0]) * 1e-9
        return told


def _waits_for_cpu(thread: threading.Thread) -> bool:
    """Whether it would compute if others let it: on a busy machine a thread at work may stand still for long."""
    with contextlib.suppress(OSError):
        said = Path(f"/proc/self/task/{thread.native_id}/stat").read_text(encoding="utf-8", errors="replace")
        return said.rpartition(")")[2].split()[0] == "R"
    return False


def _kept(
    session: Session, clock: Clock, typical_s: Seconds, first_call_s: Seconds
) -> tuple[Caveat | None, int]:
    """Whether a step with copies of its inputs takes much longer than one with the same objects, each time; and the steps run."""
    if first_call_s < typical_s * QUICKER + LEAST_S:
        return None, 0  # which had new objects, too
    same_s: list[Seconds] = []
    copied_s: list[Seconds] = []
    alive = []  # or the next copy could lie where the last one was
    while len(copied_s) < NUM_COPIES:
        prepared = session.prepare()
        copies = session.afresh(prepared)
        if copies is None:
            return None, 0
        alive.append(copies)
        same_s.append(_time_of(session, clock, prepared))
        copied_s.append(_time_of(session, clock, copies))
        if copied_s[-1] < typical_s * QUICKER + LEAST_S:
            return None, 2 * len(alive)
    same, copied = median(same_s), min(copied_s)
    if copied < same * QUICKER + LEAST_S:
        return None, 2 * len(alive)  # others keep the machine busy, which both feel
    doubt = caveat(
        CaveatCode.ANSWERS_KEPT,
        f"a step takes {format_seconds(same)} with the same input objects and {format_seconds(copied)} with copies of them: "
        f"{format_percent(1 - same / copied)} is spared by answers that are kept by the identity of inputs",
        "give each step inputs of its own, as in pm.Inference(model, lambda: x.clone())",
    )
    return doubt, 2 * len(alive)


def _time_of(session: Session, clock: Clock, prepared: Any) -> Seconds:
    """Of one step, without the time that it waited for a CPU.

    A wait between two readings lengthens it, and never makes a step that computes look as if it did not.
    """
    clock.synchronize()
    start_ns, queued_ns = clock.host_ns(), clock.queued_ns()
    session.step(prepared)
    clock.synchronize()
    queued_ns = clock.queued_ns() - queued_ns
    return max(clock.host_ns() - start_ns - queued_ns, 0) * 1e-9
