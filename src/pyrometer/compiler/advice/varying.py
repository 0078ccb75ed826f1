"""What varies from call to call, as code: marks for sizes, and axes for buckets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyrometer.compiler.recompiles.kinds import in_words
from pyrometer.compiler.recompiles.record import ChangedInput

_SIZE = re.compile(r"(?P<tensor>L\[.+)\.size\(\)\[(?P<dim>\d+)\]$")
_ARGUMENT = re.compile(r"L\['([^\W_]\w*)'\]")
_ITEM = re.compile(r"\[(?P<index>\d+)\]")
_UNNAMED = re.compile(r"___\w+")
FEWEST = 2
"""Sizes that a graph for any size has to serve, so that it spares one."""


class VaryingSize(NamedTuple):
    """A dimension that had several sizes."""

    tensor: str
    """As the program writes it: `x`, `cache.layers[0].keys`."""
    dim: int
    sizes: tuple[str, ...]
    is_argument: bool
    """The tensor is itself an argument of the compiled function."""

    @property
    def mark(self) -> str:
        """The statement that keeps the dimension open."""
        call = f"torch._dynamo.mark_dynamic({self.tensor}, {self.dim})"
        return f"if {self.tensor}.shape[{self.dim}] > 1:\n    {call}" if {"0", "1"} & {*self.sizes} else call


def varying_sizes(changes: Iterable[ChangedInput]) -> list[VaryingSize]:
    """The dimensions that changed, each once, in the order in which they were met.

    What changes between two sizes of which one is 0 or 1 is left out: torch makes a graph of their own for these in any case.
    """
    sizes: dict[str, list[str]] = {}
    for change in changes:
        if change.kind == "size":
            sizes.setdefault(change.source, []).extend((*change.before, change.after))
    found = []
    for source, values in sizes.items():
        match = _SIZE.match(source)
        if match is None or _UNNAMED.search(source) or len({*values} - {"0", "1"}) < FEWEST:
            continue
        name = re.sub(r"^self\b", "model", in_words(match["tensor"]))
        is_argument = _ARGUMENT.fullmatch(match["tensor"]) is not None
        found.append(VaryingSize(name, int(match["dim"]), tuple(dict.fromkeys(values)), is_argument))
    return found


def mark_statements(sizes: Iterable[VaryingSize]) -> str:
    """Statements that keep all of them open before the first call; items of one list in a loop over it.

    >>> print(mark_statements([VaryingSize(f"cache[{layer}].keys", 2, ("6", "7"), False) for layer in range(3)]))
    for item in cache:
        torch._dynamo.mark_dynamic(item.keys, 2)
    """
    return "\n".join(_statements(list(sizes)))


def axes_of(sizes: Iterable[VaryingSize]) -> dict[str, dict[int, str]] | None:
    """The axes for `ShapeBuckets`; what had the same sizes is one axis. `None` where something else than arguments varies.

    >>> axes_of([VaryingSize("ids", 1, ("7", "9"), True), VaryingSize("mask", 1, ("7", "9"), True)])
    {'ids': {1: 'length'}, 'mask': {1: 'length'}}
    """
    names: dict[tuple[str, ...], str] = {}
    axes: dict[str, dict[int, str]] = {}
    for size in sizes:
        if not size.is_argument:
            return None
        plain = "batch" if size.dim == 0 else "length"
        taken = plain in names.values() and size.sizes not in names
        name = names.setdefault(size.sizes, f"{plain}_{len(names) + 1}" if taken else plain)
        axes.setdefault(size.tensor, {})[size.dim] = name
    return axes or None


def _statements(sizes: Sequence[VaryingSize]) -> Iterator[str]:
    """One per size, or per list and what is marked of its items."""
    lists: dict[str, dict[tuple[str, int], list[VaryingSize]]] = {}
    for size in sizes:
        match = _ITEM.search(size.tensor)
        owner, rest = (size.tensor[: match.start()], size.tensor[match.end() :]) if match else ("", "")
        key = (rest, size.dim) if match else (size.tensor, size.dim)
        lists.setdefault(owner, {}).setdefault(key, []).append(size)
    for owner, parts in lists.items():
        if owner and all(len(items) > 1 for items in parts.values()):
            yield f"for item in {owner}:\n" + "\n".join(_looped(parts))
        else:
            yield from (size.mark for items in parts.values() for size in items)


def _looped(parts: Mapping[tuple[str, int], Sequence[VaryingSize]]) -> Iterator[str]:
    for (rest, _), (first, *_others) in parts.items():
        yield "\n".join(f"    {line}" for line in first._replace(tensor=f"item{rest}").mark.splitlines())


def alike_changes(changes: Iterable[ChangedInput]) -> list[list[ChangedInput]]:
    """Changes of one kind with the same values together; strides that follow from a size are left out.

    >>> length, other = (
    ...     ChangedInput(source=f"L['{name}'].size()[1]", name=f"{name}, dimension 1", kind="size", before=["7"], after="9")
    ...     for name in ("ids", "mask")
    ... )
    >>> stride = ChangedInput(source="L['ids'].stride()[0]", name="ids, stride of dimension 0", kind="stride", before=["7"], after="9")
    >>> [[change.name for change in alike] for alike in alike_changes([length, stride, other])]
    [['ids, dimension 1', 'mask, dimension 1']]
    """
    listed = list(changes)
    resized = {change.source.partition(".size()")[0] for change in listed if change.kind == "size"}
    groups: dict[tuple[object, ...], list[ChangedInput]] = {}
    for change in listed:
        if change.kind != "stride" or change.source.partition(".stride()")[0] not in resized:
            key = (change.kind, *change.before, change.after, change.became_dynamic)
            groups.setdefault(key, []).append(change)
    return list(groups.values())
