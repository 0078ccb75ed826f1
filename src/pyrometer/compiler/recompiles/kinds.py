"""What kind of thing a guard ties down, from the expression that it is on; and the expression in words."""

from __future__ import annotations

import re

from pyrometer.compiler.recompiles.facts import DISPATCH_KEYS, GLOBAL
from pyrometer.compiler.recompiles.tree import spoken

_KINDS = {
    re.compile(r"^global\.|CURRENT_DEVICE|saved_tensors_hooks"): "global_state",
    re.compile(r"\.size\(\)\[\d+\]$"): "size",
    re.compile(r"\.stride\(\)\[\d+\]$"): "stride",
    re.compile(r"\.storage_offset\(\)$"): "storage_offset",
    re.compile(r"^list\(dict\.keys\(|___dict_contains\("): "keys",
    re.compile(rf"^torch\._C\.{DISPATCH_KEYS}\("): "dispatch",
    re.compile(r"^len\("): "length",
    re.compile(r"^type(?:id)?\("): "type",
    re.compile(r"^id\("): "identity",
    re.compile(r"\.training$"): "training",
}
_TENSOR_KINDS = {
    "dtype": "dtype",
    "device": "device",
    "requires_grad": "requires_grad",
    "dim()": "rank",
}
_WORDS = {
    re.compile(r"(?P<name>.+)\.size\(\)\[(?P<index>\d+)\]$"): "{name}, dimension {index}",
    re.compile(r"(?P<name>.+)\.stride\(\)\[(?P<index>\d+)\]$"): "{name}, stride of dimension {index}",
    re.compile(r"(?P<name>.+)\.dim\(\)$"): "{name}, number of dimensions",
    re.compile(r"(?P<name>L\[.+)\.(?P<part>dtype|device|requires_grad)$"): "{name}, {part}",
    re.compile(rf"torch\._C\.{DISPATCH_KEYS}\((?P<name>.+)\)$"): "{name}, dispatch keys",
    re.compile(r"list\(dict\.keys\((?P<name>.+)\)\)\[(?P<index>\d+)\]$"): "key {index} of {name}",
    re.compile(r"___dict_contains\((?P<key>.+?), (?P<name>.+)\)$"): "whether {name} has {key}",
    re.compile(r"len\((?P<name>.+)\)$"): "length of {name}",
    re.compile(r"type(?:id)?\((?P<name>.+)\)$"): "type of {name}",
    re.compile(r"id\((?P<name>.+)\)$"): "{name}",
}
_CHILD = re.compile(r"\._(?:modules|parameters|buffers)\[['\"]([^'\"]+)['\"]\]")
_HANDED_OVER = re.compile(r"\b___stack(\d+)")
"""What Dynamo hands to the rest behind a break: it has no name in the program."""
_GLOBAL_NAME = re.compile(r"G\[['\"](\w+)['\"]\]")


def kind_of(subject: str, *, tensor: bool = False) -> str:
    """The kind of an expression; `tensor` says that it is a part of a tensor.

    >>> [kind_of(text) for text in ("L['x'].size()[0]", "L['b']", "L['self'].k", "L['self'].training", "len(L['l'])")]
    ['size', 'value', 'attribute', 'training', 'length']
    """
    if tensor:
        kind = _TENSOR_KINDS.get(subject.rpartition(".")[2])
        if kind is not None:
            return kind
    for pattern, kind in _KINDS.items():
        if pattern.search(subject) is not None:
            return kind
    if tensor:
        return "unknown"
    return "attribute" if "." in spoken(subject) else "value"


def in_words(subject: str) -> str:
    """An expression as a person would say it.

    >>> in_words("L['x'].size()[0]"), in_words("len(L['l'])"), in_words("L['self']._modules['drop'].training")
    ('x, dimension 0', 'length of l', 'self.drop.training')
    >>> in_words("L['___stack0']"), in_words("L['cache'].keys.size()[2]")
    ('unnamed value 0', 'cache.keys, dimension 2')
    """
    for pattern, words in _WORDS.items():
        if (match := pattern.match(subject)) is not None:
            return words.format(**{**match.groupdict(), "name": in_words(match["name"])})
    name = subject.removeprefix(GLOBAL).replace("_", " ") if subject.startswith(GLOBAL) else spoken(subject)
    name = _HANDED_OVER.sub(r"unnamed value \1", name)
    return _GLOBAL_NAME.sub(r"global \1", _CHILD.sub(r".\1", name))
