"""The compilations that torch holds ready, live: their guards are asked without compiling anything.

Dynamo hangs its compilations on the code object of the function. `torch._C._dynamo.eval_frame._debug_get_cache_entry_list` hands
them out (torch 2.2 and later), each with a guard manager whose `check` takes the function's locals. A call looks through them in
that order; `set_guard_complete_hook` (torch 2.8) tells when a call has looked, and whether it found one.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from types import CodeType
from typing import Any, NamedTuple

_MODULE = "torch._C._dynamo.eval_frame"
SLOWEST = 5
_BATCHES, _BATCH_S = 9, 1e-3


class CacheEntry(NamedTuple):
    """One compilation of a function."""

    compile_id: str
    """As torch writes it; ids start anew after a reset."""
    code: CodeType | None
    """What runs in place of the function when the guards hold."""
    guards: Any
    """Torch's guard manager."""

    def fits(self, f_locals: Mapping[str, Any]) -> bool:
        """Whether a call with these locals would run it, under the global state of this moment."""
        return bool(self.guards.check(f_locals))

    def first_failing(self, f_locals: Mapping[str, Any]) -> str | None:
        """The first guard that fails, in torch's words; `None` when all hold."""
        told = self.guards.check_verbose(f_locals)
        if told.result:
            return None
        parts = [str(part) for part in told.verbose_code_parts]
        if len(parts) == 1:
            return parts[0]
        scope = _scope(self.guards, f_locals)
        return next((part for part in parts if _holds(part, scope) is False), "; ".join(parts))


def entries_of(code: CodeType) -> list[CacheEntry]:
    """The compilations of a function, in the order in which a call tries them; none where torch cannot tell."""
    listing = getattr(_eval_frame(), "_debug_get_cache_entry_list", None)
    if listing is None:
        return []
    return [
        CacheEntry(str(entry.compile_id), getattr(entry, "code", None), entry.guard_manager)
        for entry in listing(code)
        if hasattr(entry.guard_manager, "check")  # those of freed objects have none
    ]


def compiled_codes() -> list[CodeType]:
    """The code of every function that Dynamo has looked at since the last reset."""
    converter: Any = sys.modules.get("torch._dynamo.convert_frame")
    tracker = getattr(converter, "input_codes", None)
    if tracker is None:
        return []
    with getattr(converter, "compile_lock", contextlib.nullcontext()):
        references = [reference() for reference in list(tracker.seen)]
    return [code for code in references if isinstance(code, CodeType)]


class FailingLeaf(NamedTuple):
    """A guard that failed when it was asked by itself."""

    type: str
    parts: list[str]
    """Its conditions in torch's words; where single ones can be evaluated, those that fail."""
    source: str
    value: Any
    """What it was asked with."""


def failing_leaves(entry: CacheEntry, f_locals: Mapping[str, Any]) -> list[FailingLeaf]:
    """Every guard of a compilation that fails for these locals, not only the first.

    Each guard is asked by itself, on its own value. Guards on how objects relate to one another are left out: they keep state
    while all are evaluated in turn.
    """
    leaves: list[FailingLeaf] = []
    scope = _scope(entry.guards, f_locals)
    for holder, leaf, value in _leaves(entry.guards.root, f_locals, scope):
        with contextlib.suppress(Exception):  # a guard that cannot be asked by itself tells nothing
            if not leaf(value):
                parts = [str(part) for part in leaf.verbose_code_parts()]
                failing = [part for part in parts if _holds(part, scope) is False]
                leaves.append(FailingLeaf(type(leaf).__name__, failing or parts, holder.get_source(), value))
    return leaves


def guard_eval_seconds(entry: CacheEntry, f_locals: Mapping[str, Any]) -> float:
    """One evaluation of all guards of a compilation in steady state, for locals that it fits.

    Median over batches of about a millisecond, less the cost of the loop itself.
    """
    check = entry.guards.root.check
    return max(0.0, _per_call(lambda: check(f_locals)) - _per_call(_nothing))


def slowest_guards(entry: CacheEntry, f_locals: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The inputs whose guards cost most: expression, and seconds per evaluation of all that hangs below it.

    Each input's guards are evaluated alone, less what the guards at the root cost; none where torch cannot single them out.
    """
    root = entry.guards.root
    if not hasattr(root, "clone_manager"):
        return []
    base = _alone(root, None, f_locals)
    costs = {
        source: _alone(root, source, f_locals) - base
        for source in (child.get_source() for child in root.get_child_managers())
    }
    dear = sorted(costs.items(), key=lambda pair: -pair[1])
    return [(source, seconds) for source, seconds in dear if seconds > 0][:SLOWEST]


@contextlib.contextmanager
def on_lookup(hook: Callable[[bool], None]) -> Iterator[bool]:
    """Call `hook` after each look for a compilation that fits, with whether one was found; yields whether torch can.

    A hook that was there keeps its say.
    """
    setter = getattr(_eval_frame(), "set_guard_complete_hook", None)
    if setter is None:
        yield False
        return
    before: Callable[[bool], bool] | None = None

    def chained(found: bool) -> bool:
        hook(found)
        return found if before is None else before(found)

    never_compile(chained, hook)
    before = setter(chained)
    try:
        yield True
    finally:
        current = setter(before)
        if current is not chained and current is not None:
            setter(current)  # someone came after us, and stays


def never_compile(*functions: Callable[..., Any]) -> None:
    """Keep Dynamo off functions of our own that run between the user's frames."""
    module = _eval_frame()
    strategy, action = (getattr(module, name, None) for name in ("_FrameExecStrategy", "_FrameAction"))
    if strategy is None or action is None:
        return
    for function in functions:
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is not None:
            module.set_code_exec_strategy(code, strategy(action.SKIP, action.SKIP))


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    told = {
        "_debug_get_cache_entry_list": "compilations held ready: this torch does not hand them out",
        "set_guard_complete_hook": "calls that fit no compilation: this torch does not tell of its lookups (2.8 does)",
    }
    module = _eval_frame()
    return [text for name, text in told.items() if not hasattr(module, name)]


def _eval_frame() -> Any:
    import importlib

    try:
        return importlib.import_module(_MODULE)
    except ImportError:
        return None


def _leaves(manager: Any, value: Any, scope: dict[str, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Each guard with the manager it hangs on and the value that it is asked with."""
    from torch._C._dynamo import guards

    for leaf in manager.get_leaf_guards():
        if not isinstance(leaf, guards.RelationalGuard):
            yield manager, leaf, value
    for leaf in getattr(manager, "get_epilogue_lambda_guards", list)():
        yield manager, leaf, value
    for child in _children(manager, guards):
        try:
            inner = _evaluate(child.get_source(), scope)
        except Exception:  # noqa: BLE001, S112 - what is guarded is not there: the guard above it fails
            continue
        yield from _leaves(child, inner, scope)


def _children(manager: Any, guards: Any) -> Iterator[Any]:
    if isinstance(manager, guards.DictGuardManager):
        for pair in manager.get_key_value_managers().values():
            yield from (child for child in pair if child is not None)
    yield from manager.get_child_managers()


def _alone(root: Any, source: str | None, f_locals: Mapping[str, Any]) -> float:
    """Seconds of the guards at the root and of those below one input."""
    top = root.get_source()

    def chosen(manager: Any) -> bool:
        own = manager.get_source()
        return own == top or (source is not None and (own.startswith(source) or f"({source}" in own))

    part = root.clone_manager(chosen)
    return _per_call(lambda: part.check(f_locals))


def _scope(guards: Any, f_locals: Mapping[str, Any]) -> dict[str, Any]:
    """The names that torch's conditions are written in."""
    outer = getattr(guards, "global_scope", None) or {}
    return {"L": f_locals, "G": outer.get("G", {}), **(getattr(guards, "closure_vars", None) or {})}


def _holds(part: str, scope: dict[str, Any]) -> bool | None:
    try:
        return bool(_evaluate(part.partition("  # ")[0], scope))
    except Exception:  # noqa: BLE001 - a condition in words, not in Python
        return None


def _evaluate(source: str, scope: dict[str, Any]) -> Any:
    return eval(source, dict(scope))  # noqa: S307 - the text is torch's own, made of the user's own program


def _per_call(function: Callable[[], Any]) -> float:
    """Median seconds of a call."""
    function()
    count = 1
    while (took := _batch(function, count)) < _BATCH_S and count < 1 << 20:
        count *= 4
    return median([took, *(_batch(function, count) for _ in range(_BATCHES - 1))]) / count


def _batch(function: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    return time.perf_counter() - start


def _nothing() -> None:
    """What a call costs that does nothing."""
