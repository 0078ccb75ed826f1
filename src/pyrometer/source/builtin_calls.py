"""What builtins, numpy and the standard library return."""

from __future__ import annotations

from pyrometer.source.called import Called
from pyrometer.source.value import (
    ARRAY,
    CONTAINER,
    HOST,
    LOADED,
    TENSOR,
    UNKNOWN,
    Kind,
    Value,
    element_of,
    holding,
    join_all,
    yielding,
)
from pyrometer.source.words import words

NUMBERS = words(
    "len int float bool str repr isinstance issubclass hasattr callable id hash ord chr round format bytes print type"
    " complex ascii bin hex oct any all divmod input"
)
CONTAINERS = words(
    "list tuple set sorted frozenset reversed iter itertools.islice itertools.cycle collections.deque"
)
DICTS = words("dict vars dir collections.defaultdict collections.OrderedDict collections.Counter")
ONE_BY_ONE = words("tqdm.tqdm tqdm.auto.tqdm tqdm.notebook.tqdm tqdm.std.tqdm rich.progress.track")
HOST_HOMES = words("math time random os os.path string statistics")
NUMPY_NUMBERS = words("dtype ndim shape size isscalar allclose array_equal")


def builtin_call(called: Called, name: str) -> Value:
    """A call by dotted name of a builtin, or of the standard library; UNKNOWN for anything else."""
    if name in NUMBERS:
        return HOST
    if name in CONTAINERS or name in ONE_BY_ONE:
        return same_elements(called)
    if name in DICTS:
        return CONTAINER
    if name in {"enumerate", "zip", "range", "next", "map"}:
        return iteration(called, name)
    if name in {"sum", "max", "min", "abs"}:
        return arithmetic(called, name)
    return library_call(called, name)


def library_call(called: Called, dotted: str) -> Value:
    """A call of numpy, math, copy and their like."""
    home, _, last = dotted.rpartition(".")
    if home == "numpy" or home.startswith("numpy."):
        return HOST if last in NUMPY_NUMBERS else ARRAY
    if dotted in {"copy.copy", "copy.deepcopy"}:
        return called.first
    return HOST if home in HOST_HOMES else UNKNOWN


def same_elements(called: Called) -> Value:
    """A container or iterator of what the first argument yields."""
    if not called.arguments:
        return CONTAINER
    first = called.first
    if first.kind is Kind.LOADER or first.items is not None:
        return first
    element = element_of(first)
    return yielding(element) if element.kind is not Kind.UNKNOWN else CONTAINER


def iteration(called: Called, name: str) -> Value:
    """Iterators over others."""
    if name == "range":
        return yielding(HOST)
    if name == "next":
        return LOADED if called.first.kind is Kind.LOADER else element_of(called.first)
    parts = [element_of(value) for value in called.arguments]
    if name == "enumerate":
        return yielding(Value(Kind.CONTAINER, items=(HOST, parts[0]))) if parts else UNKNOWN
    if name == "zip" and len(parts) == len(called.node.args) and parts:
        return yielding(holding(parts))
    return CONTAINER


def arithmetic(called: Called, name: str) -> Value:
    """`sum`, `max`, `min` and `abs` of tensors are tensors, of numbers numbers."""
    several = name in {"max", "min"} and len(called.arguments) > 1
    parts = called.arguments if several or name == "abs" else [element_of(called.first)]
    joined = join_all(parts)
    if joined.is_tensor:
        result = called.frame.tensor(*parts)
        return result if result.graph else TENSOR
    return HOST if joined.kind is Kind.HOST else UNKNOWN
