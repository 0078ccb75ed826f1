"""Deep probes: what Inductor does while it compiles, in more detail than torch's own log tells.

Probes see compilations, not what is found in a cache, so that by default nothing is looked up in, or saved to, torch's
caches of compiled graphs meanwhile. A probed compile is therefore cold: never compare its time with others.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from pyrometer.compiler.private import passes, refusals, scheduler
from pyrometer.compiler.private.importing import import_compiler
from pyrometer.compiler.private.probing import Sink, tell

PROVENANCE = "trace.provenance_tracking_level"


@contextlib.contextmanager
def deep_probes(collector: Sink, *, fresh: bool = True) -> Iterator[None]:
    """Watch Inductor for the length of this context, and tell it to `collector`; everything is then as before.

    Adds entries `pyrometer.fusion` (one per graph: groups, buffers, pairs that stayed apart), `pyrometer.pass`,
    `pyrometer.pass_nodes` and `pyrometer.pattern`, and has torch log which kernel comes from which line. A probe that
    fails, or that this torch has no place for, says so in `collector.unavailable` and leaves the compile alone. Settings
    reach this thread only: a backward that is compiled on another one (autograd's, for a GPU) is watched as well, but
    may be found in a cache.

    Args:
        collector: takes the entries.
        fresh: compile although torch's caches hold the graph. Else the first probed compile of a graph is cold, because
            having provenance logged is part of the cache's key; from then on it is found, and not seen.
    """
    with contextlib.ExitStack() as stack:
        for lack in missing():
            tell(collector, lack)
        if not load_inductor():
            yield
            return
        if fresh:
            stack.enter_context(fresh_compiles())
        kept = refusals.Refusals(collector)
        groups, effects = scheduler.SchedulerProbe(collector, kept), passes.PassProbe(collector)
        for probe in (provenance, kept.watching, groups.watching, effects.watching):
            _enter(stack, probe(), collector)
        yield


def _enter(stack: contextlib.ExitStack, probe: contextlib.AbstractContextManager[None], sink: Sink) -> None:
    try:
        stack.enter_context(probe)
    except (ImportError, AttributeError, KeyError) as error:
        tell(sink, f"a probe finds no place in this torch: {type(error).__name__}: {error}")


@contextlib.contextmanager
def fresh_compiles() -> Iterator[None]:
    """Compile graphs anew in this context: none is looked up in, or saved to, torch's caches of compiled graphs.

    Files of generated code stay where they always lie, and C++ that was compiled before is used again.
    `force_disable_caches` is not used: it moves generated code to a folder that vanishes, and warns. Graphs that are
    compiled so have no cache key.
    """
    from torch._functorch import config as functorch
    from torch._inductor import config as inductor

    with (
        _patched(inductor, dict.fromkeys(("fx_graph_cache", "fx_graph_remote_cache"), False)),
        _patched(functorch, dict.fromkeys(("enable_autograd_cache", "enable_remote_autograd_cache"), False)),
    ):
        yield


@contextlib.contextmanager
def provenance() -> Iterator[None]:
    """Have Inductor log, for each kernel, operators and user's lines; does nothing on a torch that cannot."""
    from torch._inductor import config

    with _patched(config, {PROVENANCE: 1}):
        yield


def _patched(config: Any, changes: dict[str, Any]) -> contextlib.AbstractContextManager[Any]:
    """The changes that this torch knows of."""
    known = {name: value for name, value in changes.items() if name in vars(config)["_config"]}
    return config.patch(known) if known else contextlib.nullcontext()


def load_inductor() -> bool:
    """Import Inductor, which takes seconds the first time; whether this torch has it."""
    try:
        import_compiler()
    except ImportError:
        return False
    return "torch._inductor.compile_fx" in sys.modules


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    if not load_inductor():
        return ["deep probes: this torch has no torch._inductor"]
    from torch._inductor import config

    known = vars(config)["_config"]
    lacks = [] if PROVENANCE in known else [f"kernel to line: this torch's Inductor has no {PROVENANCE}"]
    return [*scheduler.missing(), *refusals.missing(), *passes.missing(), *lacks]
