"""In what two keys of a compile cache differ, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from pyrometer.compiler.costs.keys import INPUTS, Component, Key

_TENSOR_FIELD = re.compile(r"(\w+)=((?:[^,()\[\]]|\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\])+)")
_SIZES = re.compile(r"torch\.Size\((.*)\)$")

CONFIGS = ("inductor_config", "autograd_config", "functorch_config")

_WORDS = {
    "gm": "graph",
    INPUTS: "input",
    "fx_kwargs": "option",
    "inductor_config": "config",
    "autograd_config": "AOTAutograd config",
    "functorch_config": "AOTAutograd config",
    "system_info": "system: device, driver or toolkit",
    "torch_version": "torch version",
}
_UNTOLD = frozenset({"gm", "torch_version", "system_info"})
"""Components whose value is no reading matter."""

_READ_LAST = ("gm", INPUTS, "fx_kwargs")

_TENSOR_WORDS = {
    "shape": "size",
    "dtype": "dtype",
    "device": "device",
    "stride": "stride",
    "storage_offset": "storage offset",
    "requires_grad": "requires_grad",
}
"""Fields of a tensor by how telling they are; a new size brings a new stride along."""

MOST_INPUTS = 8
"""How many differing inputs are named; the rest is counted."""

MOST_TEXT = 60
"""Longer values are not shown."""


def differences(key: Key, other: Key) -> list[str]:
    """In what a key differs from another, in words; `other → key` where the values are short.

    >>> one = Key(["[a] inductor_config[max_autotune]: False", "[b] gm: GraphModule()"])
    >>> two = Key(["[c] inductor_config[max_autotune]: True", "[b] gm: GraphModule()"])
    >>> differences(two, one)
    ['config max_autotune (False → True)']
    """
    found: list[str] = []
    for group in sorted(dict.fromkeys([*other.groups, *key.groups]), key=_reading_order):
        here, there = key.groups.get(group, ()), other.groups.get(group, ())
        found += _inputs(here, there) if group == INPUTS else _items(group, here, there)
    if any(text.startswith("input ") for text in found):
        # Which inputs stay in place follows from which inputs there are.
        found = [text for text in found if not text.startswith("option static_input_idxs")]
    return found


def _reading_order(group: str) -> int:
    """Settings and surroundings first: beside them a different graph is no surprise."""
    return 0 if group in CONFIGS else 1 if group not in _READ_LAST else 2 + _READ_LAST.index(group)


def _items(group: str, here: Sequence[Component], there: Sequence[Component]) -> Iterator[str]:
    mine, others = ({part.item: part for part in parts} for parts in (here, there))
    for item in dict.fromkeys([*others, *mine]):
        own, other = mine.get(item), others.get(item)
        if own is not None and other is not None and own.hash == other.hash:
            continue
        name = _WORDS.get(group, group.strip("_").replace("_", " "))
        if item and group not in _UNTOLD:
            name = f"{name} {item}"
        yield name + ("" if group in _UNTOLD else _change(other and other.value, own and own.value))


def _change(before: str | None, after: str | None) -> str:
    shown = ["none" if text is None else text for text in (before, after)]
    if shown[0] == shown[1] or any(len(text) > MOST_TEXT or " at 0x" in text for text in shown):
        return ""
    return f" ({shown[0]} → {shown[1]})"


def _inputs(here: Sequence[Component], there: Sequence[Component]) -> list[str]:
    """Differing inputs; one that was put in between does not make all behind it differ."""
    inputs: list[str] = []
    for start, end, own_start, own_end in _unequal(
        [part.hash for part in there], [part.hash for part in here]
    ):
        before, after = there[start:end], here[own_start:own_end]
        for is_tensor in (True, False):
            old, new = (
                [part for part in parts if _is_tensor(part) == is_tensor] for parts in (before, after)
            )
            inputs += [
                f"input {part.item} {_input_change(past.value, part.value)}"
                for past, part in zip(old, new, strict=False)
            ]
            inputs += [f"input {part.item} is new" for part in new[len(old) :]]
            inputs += [f"input {part.item} is gone" for part in old[len(new) :]]
    if len(inputs) > MOST_INPUTS:
        inputs[MOST_INPUTS:] = [f"{len(inputs) - MOST_INPUTS} more inputs"]
    return inputs


def _unequal(before: list[str], after: list[str]) -> list[tuple[int, int, int, int]]:
    """Stretches that differ: from where to where, before and after.

    Equal ends are set aside first: matching takes long where inputs are many and alike.
    """
    shorter, head, tail = min(len(before), len(after)), 0, 0
    while head < shorter and before[head] == after[head]:
        head += 1
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    middle = before[head : len(before) - tail], after[head : len(after) - tail]
    return [
        (head + start, head + end, head + own_start, head + own_end)
        for tag, start, end, own_start, own_end in SequenceMatcher(
            None, *middle, autojunk=False
        ).get_opcodes()
        if tag != "equal"
    ]


def _is_tensor(part: Component) -> bool:
    return part.value.startswith("TensorMetadata")


def _input_change(before: str, after: str) -> str:
    """What of an input changed: `size ([2, 16] → [2, 24])`."""
    old, new = _tensor_fields(before), _tensor_fields(after)
    changed = [
        name for name in (*_TENSOR_WORDS, *old) if name in new and old.get(name, new[name]) != new[name]
    ]
    if not changed:
        return f"value{_change(before, after)}"
    name = changed[0]
    return _TENSOR_WORDS.get(name, name) + _change(old[name], new[name])


def _tensor_fields(text: str) -> dict[str, str]:
    """Fields of `TensorMetadata(dtype=torch.float32, shape=torch.Size([2, 16]), …)`; empty for anything else.

    >>> _tensor_fields("TensorMetadata(dtype=torch.float32, shape=torch.Size([2, s0]), device=device(type='cpu'))")
    {'dtype': 'float32', 'shape': '[2, s0]', 'device': "device(type='cpu')"}
    """
    tensor_fields: dict[str, str] = {}
    for name, value in _TENSOR_FIELD.findall(text.partition("(")[2][:-1]):
        sizes = _SIZES.match(value)
        tensor_fields[name] = sizes[1] if sizes else value.removeprefix("torch.")
    return tensor_fields
