"""Failing guards of a live compilation, in the words of torch's reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from pyrometer.compiler.private.cache_entries import CacheEntry, FailingLeaf, failing_leaves
from pyrometer.compiler.recompiles.facts import Facts, TensorCheck, tensor_check
from pyrometer.compiler.recompiles.failing import tensor_failures
from pyrometer.compiler.recompiles.tree import Guard, split_comment, spoken

_MISMATCH = re.compile(
    r"(?P<what>tensor .* mismatch at index \d+)\. expected (?P<expected>-?\d+), actual (?P<actual>-?\d+)$"
)
_SHOWN = 6


def failing_guards(entry: CacheEntry, f_locals: Mapping[str, Any]) -> list[str]:
    """Every guard of a compilation that fails for these locals; torch's first one is the first.

    Args:
        entry: the compilation.
        f_locals: the function's locals at its call.
    """
    first = entry.first_failing(f_locals)
    texts = [] if first is None else [_plain(first)]
    for leaf in failing_leaves(entry, f_locals):
        texts += [
            text for text in _words(leaf) if not (text.startswith("GLOBAL_STATE") and _has_state(texts))
        ]
    return list(dict.fromkeys(texts))


def in_short(texts: Iterable[str]) -> list[str]:
    """Sizes that differ from call to call and from compilation to compilation, in one line per dimension.

    >>> in_short(f"tensor 'x' size mismatch at index 0. expected {old}, actual 9" for old in (2, 3))
    ["tensor 'x' size mismatch at index 0. expected 2 or 3, actual 9"]
    """
    merged: dict[str, tuple[list[str], list[str]]] = {}
    for text in texts:
        match = _MISMATCH.match(text)
        expected, actual = merged.setdefault(text if match is None else match["what"], ([], []))
        if match is not None:
            expected.append(match["expected"])
            actual.append(match["actual"])
    return [
        f"{what}. expected {_listed(expected)}, actual {_listed(actual)}" if expected else what
        for what, (expected, actual) in merged.items()
    ]


def _listed(values: list[str]) -> str:
    unique = sorted(set(values), key=int)
    text = " or ".join(unique[:_SHOWN])
    return text if len(unique) <= _SHOWN else f"{text} or {len(unique) - _SHOWN} more"


def _words(leaf: FailingLeaf) -> list[str]:
    if leaf.type == "GLOBAL_STATE":
        return ["GLOBAL_STATE changed"]
    if leaf.type != "TENSOR_MATCH":
        return [_plain(part) for part in leaf.parts]
    guard = Guard(leaf.type, split_comment(leaf.parts[0])[0], leaf.source)
    if not isinstance(leaf.value, torch.Tensor):
        return [
            f"expected type of '{spoken(leaf.source)}' to be a tensor type, ' but found {type(leaf.value)}"
        ]
    check = tensor_check(guard)
    if check is None:
        return [guard.words]
    texts = [failure.text for failure in tensor_failures(check, guard, _facts(check, leaf.value))]
    return texts or [guard.words]


def _facts(check: TensorCheck, tensor: torch.Tensor) -> Facts:
    """What a guard speaks of, of this tensor."""
    facts, name = Facts(), check.name
    facts.texts = {
        f"{name}.dtype": str(tensor.dtype),
        f"{name}.device": str(tensor.device.index),
        f"{name}.requires_grad": str(tensor.requires_grad),
        f"{name}.dim()": str(tensor.dim()),
    }
    for part, numbers in (("size", tensor.shape), ("stride", tensor.stride())):
        facts.texts.update((f"{name}.{part}()[{index}]", str(number)) for index, number in enumerate(numbers))
    return facts


def _has_state(texts: list[str]) -> bool:
    return any(text.startswith("GLOBAL_STATE") for text in texts)


def _plain(text: str) -> str:
    return spoken(split_comment(text)[0]).strip()
