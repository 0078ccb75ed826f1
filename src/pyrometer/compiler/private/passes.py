"""FX passes of Inductor: nodes before and after, what vanished, which patterns matched.

`torch.fx.passes.graph_transform_observer.GraphTransformObserver` (since torch 2.1) is entered around nearly every pass.
Entries of patterns in `torch._inductor.pattern_matcher` have `apply`, called once per match. Both are watched; the
environment variable with which torch counts patterns is left alone.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyrometer.compiler.private.operators import user_line
from pyrometer.compiler.private.probing import Sink, Wall, is_called_by, replaced

MAX_NODES = 200
"""Names of nodes that are told per pass or pattern."""

ENTRIES = ("LoweringPatternEntry", "GraphPatternEntry", "ReplacementPatternEntry")
"""Classes of patterns, each with an `apply` of its own."""


@dataclass
class _Hits:
    """Matches of one pattern in one pass."""

    count: int = 0
    nodes: list[str] = field(default_factory=list)
    places: dict[str, list[str]] = field(default_factory=dict)
    """Of nodes that were put in their place and bear no line: the lines of those that they replace."""

    def add(self, hits: _Hits) -> None:
        self.count += hits.count
        self.nodes = (self.nodes + hits.nodes)[:MAX_NODES]
        self.places.update(hits.places)


class _Open:
    """A pass that is running."""

    def __init__(self, owner: Any, gm: Any, name: str, subsystem: str) -> None:
        self.owner = owner
        self.gm = gm
        self.name = name
        self.subsystem = subsystem
        self.before = {node.name: node for node in gm.graph.nodes}
        self.hits: dict[str, _Hits] = {}
        self.start_ns = time.perf_counter_ns()


class PassProbe:
    """Tells each pass as an entry `pass`, and what it did to which nodes as `pass_nodes` and `pattern`."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._wall = Wall(sink, "effect of passes")
        self._hits = Wall(sink, "matches of patterns")
        self._local = threading.local()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch for the length of this context."""
        from torch._inductor import freezing, pattern_matcher
        from torch._inductor.fx_passes import freezing_patterns
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver

        with contextlib.ExitStack() as stack:
            stack.enter_context(replaced(GraphTransformObserver, "__enter__", self._around_enter))
            stack.enter_context(replaced(GraphTransformObserver, "__exit__", self._around_exit))
            for name in ENTRIES:
                entry = getattr(pattern_matcher, name, None)
                if entry is not None and "apply" in vars(entry):
                    stack.enter_context(replaced(entry, "apply", self._around_apply))
            for module in (
                freezing,
                freezing_patterns,
            ):  # weights that become constants; no observer stands there
                if "constant_fold" in vars(module):
                    stack.enter_context(replaced(module, "constant_fold", self._around_fold))
            yield

    def _around_enter(self, original: Any) -> Any:
        def enter(observer: Any) -> Any:
            found = original(observer)
            with self._wall():
                self._begin(observer, observer.gm, observer.passname, getattr(observer, "subsystem", None))
            return found

        return enter

    def _around_exit(self, original: Any) -> Any:
        def leave(observer: Any, *exception: Any) -> Any:
            with self._wall():
                self._end(observer)
            return original(observer, *exception)

        return leave

    def _around_fold(self, original: Any) -> Any:
        def fold(gm: Any, *args: Any, **kwargs: Any) -> Any:
            key = object()
            with self._wall():
                self._begin(key, gm, "constant_fold", "freezing")
            try:
                return original(gm, *args, **kwargs)
            finally:
                with self._wall():
                    self._end(key)

        return fold

    def _around_apply(self, original: Any) -> Any:
        def apply(entry: Any, match: Any, graph: Any, node: Any) -> Any:
            name, hits, before = "", _Hits(), set[str]()
            with self._hits():
                name, before = _pattern_name(entry, node), {inner.name for inner in graph.nodes}
                hits, places = _Hits(1, [inner.name for inner in match.nodes]), _places(match.nodes)
            found = original(entry, match, graph, node)
            with self._hits():
                if self._open and name:
                    new = (
                        inner.name
                        for inner in graph.nodes
                        if inner.name not in before and not inner.meta.get("stack_trace")
                    )
                    hits.places = dict.fromkeys(new, places)
                    self._open[-1].hits.setdefault(name, _Hits()).add(hits)
            return found

        return apply

    @property
    def _open(self) -> list[_Open]:
        if not hasattr(self._local, "open"):
            self._local.open = []
        found: list[_Open] = self._local.open
        return found

    def _begin(self, owner: Any, gm: Any, name: str, subsystem: str | None) -> None:
        # Inductor traces its patterns with the same passes, once per process: no graph of the user's.
        if not is_called_by("lazy_init", "pattern_matcher.py"):
            self._open.append(_Open(owner, gm, str(name), subsystem or ""))

    def _end(self, owner: Any) -> None:
        end_ns = time.perf_counter_ns()
        where = next((index for index, one in enumerate(self._open) if one.owner is owner), None)
        if where is None:
            return
        ended = self._open[where]
        del self._open[where:]
        outer = next((one for one in self._open if one.gm is ended.gm), None)
        if outer is None:
            self._tell(ended, end_ns)
            return
        for name, hits in ended.hits.items():  # one pass runs as a part of another one
            outer.hits.setdefault(name, _Hits()).add(hits)

    def _tell(self, ended: _Open, end_ns: int) -> None:
        after = {node.name for node in ended.gm.graph.nodes}
        vanished = [node for name, node in ended.before.items() if name not in after]
        created = [name for name in after if name not in ended.before]
        seconds = (end_ns - ended.start_ns) / 1e9
        origin = {"subsystem": ended.subsystem, "name": ended.name}
        self._sink.emit(
            "pass",
            {
                **origin,
                "nodes_before": len(ended.before),
                "nodes_after": len(after),
                "created": len(created),
                "erased": len(vanished),
                "seconds": seconds,
            },
        )
        if vanished:
            self._sink.emit("pass_nodes", {**origin, "seconds": seconds, **_vanished(vanished)})
        gone = {node.name for node in vanished}
        for name, hits in ended.hits.items():
            erased = [node for node in dict.fromkeys(hits.nodes) if node in gone]
            content = {"pattern": name, "count": hits.count, "nodes": erased, "places": hits.places}
            self._sink.emit("pattern", {**origin, **content})


def _vanished(nodes: list[Any]) -> dict[str, Any]:
    return {
        "count": len(nodes),
        "nodes": [
            {
                "name": node.name,
                "target": str(node.target),
                "place": user_line(node),
            }
            for node in nodes[:MAX_NODES]
        ],
    }


def _places(nodes: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(filter(None, (user_line(node) for node in nodes))))


def _pattern_name(entry: Any, node: Any) -> str:
    """The name that torch gave to a pattern, else that of the function that handles its matches."""
    named = getattr(entry, "pattern_name", None)
    handler: Any = getattr(entry, "handler", None)
    handler = getattr(handler, "func", handler)
    own = str(getattr(handler, "__qualname__", "")).replace("<locals>.", "")
    return str(named or own or f"{type(entry.pattern).__name__}_{node.target}")


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    try:
        from torch._inductor import pattern_matcher
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver
    except ImportError:
        return ["effect of passes: this torch has no GraphTransformObserver"]
    lacks = [name for name in ("__enter__", "__exit__") if name not in vars(GraphTransformObserver)]
    lacking = [name for name in ENTRIES if not hasattr(getattr(pattern_matcher, name, None), "apply")]
    return [f"effect of passes: this torch's GraphTransformObserver has no {name}" for name in lacks] + [
        f"matches of patterns: this torch has no {name}" for name in lacking
    ]
