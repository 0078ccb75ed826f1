"""Which benchmarks of the two sides belong together: those of one name, and those that were only renamed."""

from __future__ import annotations

import ast
import difflib
import hashlib
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrometer.guard.gate import Missed


@dataclass(frozen=True)
class Paired:
    """What belongs together.

    Attributes:
        shared: benchmarks of both sides, by the names of the head.
        renamed: what the base calls those that it knows by another name.
        missed: what is to be said of the others.
    """

    shared: list[str]
    renamed: dict[str, str] = field(default_factory=dict)
    missed: list[Missed] = field(default_factory=list)


def body_of(function: Callable[..., Any], label: str = "") -> str | None:
    """What a function does, whatever it is called: a hash of its code without name and docstring, and of what it refers to.

    Two functions that say the same of things that are not the same, such as `build` of two modules, differ.

    Args:
        function: of a benchmark.
        label: of its parameters.

    Returns:
        Null where there is no source of it.
    """
    own = inspect.unwrap(function)
    try:
        parsed = ast.parse(textwrap.dedent(inspect.getsource(own))).body[0]
    except (OSError, SyntaxError, TypeError):
        return None
    if not isinstance(parsed, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    if ast.get_docstring(parsed, clean=False) is not None:
        del parsed.body[0]
    parsed.name = ""
    referred = [
        _origin(own.__globals__[name], own) for name in own.__code__.co_names if name in own.__globals__
    ]
    return hashlib.sha256("\0".join([label, ast.dump(parsed), *referred]).encode()).hexdigest()[:16]


def _origin(value: Any, function: Callable[..., Any]) -> str:
    """Where something global comes from; what a file of benchmarks defines itself goes with it where it is renamed."""
    module = getattr(value, "__module__", None) or ""
    name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
    return name if module == function.__module__ else f"{module}.{name}"


def pair_up(
    base: Mapping[str, str | None], head: Mapping[str, str | None], failures: Sequence[Missed]
) -> Paired:
    """Benchmarks that both sides have, and what is to be said of the others.

    One that is gone and one that is new are the same where their bodies are, and no other has that body.

    Args:
        base: bodies of the base by names.
        head: those of the head.
        failures: files that a side could not read, whose benchmarks are not gone.

    >>> pair_up({"perf_a.py::perf_x": "1"}, {"perf_a.py::perf_y": "1"}, []).renamed
    {'perf_a.py::perf_y': 'perf_a.py::perf_x'}
    """
    broken = {failure.benchmark for failure in failures if failure.side == "head"}
    gone = [name for name in base if name not in head and name.partition("::")[0] not in broken]
    new = [name for name in head if name not in base]
    bodies = [Counter(side[name] for name in names) for side, names in ((base, gone), (head, new))]
    by_body = {base[name]: name for name in gone}
    renamed = {
        name: by_body[head[name]]
        for name in new
        if head[name] is not None and all(found[head[name]] == 1 for found in bodies)
    }
    left = [name for name in new if name not in renamed]
    missed = [
        Missed(benchmark=name, side="head", reason=_gone(name, left), failed=False)
        for name in gone
        if name not in renamed.values()
    ]
    missed += [
        Missed(
            benchmark=name, side="base", reason="new: the base has nothing to compare it with", failed=False
        )
        for name in left
    ]
    return Paired([name for name in head if name in base or name in renamed], renamed, missed)


def _gone(name: str, new: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, new, n=1, cutoff=0.8)
    if not near:
        return "gone from the head: nobody guards it any more"
    return f"gone from the head; was it renamed to {near[0]}? Then compare once with both names in the head"
