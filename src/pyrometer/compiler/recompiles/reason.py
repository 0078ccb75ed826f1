"""A reason for a recompilation as torch words it: which compilation did not fit, and by which guard."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from pyrometer.compiler.recompiles.facts import DISPATCH_KEYS, GLOBAL, equation, identity, part_of
from pyrometer.compiler.recompiles.kinds import kind_of
from pyrometer.compiler.recompiles.tree import Guard, origin, split_comment, spoken
from pyrometer.compiler.stack import printed_stack
from pyrometer.place import Place

_HEAD = re.compile(r"(?P<id>!?[\d/]+(?:_\d+)?): (?P<rest>.*)", re.DOTALL)
_STACK = "\nUser stack trace:\n"
_SIZES = re.compile(r"L\[['\"]\w+['\"]\][^\s,<>=!*+]*?\.(?:size|stride)\(\)\[\d+\]")
_ROOT = re.compile(r"(?P<root>[A-Za-z_]\w*)")
_PARTS = {
    "size": "size()",
    "stride": "stride()",
    "rank": "dim()",
    "dtype": "dtype",
    "requires_grad": "requires_grad",
    "dispatch key set": DISPATCH_KEYS,
    "Tensor device index": "device",
}
_SIGNS = {
    "Duplicate tensor": "aliasing",
    "_dynamo_": "marking",
    "_has_dynamo_dim_marking": "marking",
    "BACKEND_MATCH": "backend",
    "CURRENT_DEVICE": "global_state",
    "torch_function_mode_stack": "global_state",
    "saved_tensors_hooks": "global_state",
    "nvalidated": "invalidated",
    "deallocated": "invalidated",
}
"""What the words of guards hold that no other pattern fits, and their kind."""


class Reported(NamedTuple):
    """The first guard that failed, as torch told it."""

    entry: str
    """Id of the compilation that did not fit, as torch writes it; empty where the text names none."""
    guard: str
    kind: str
    subjects: tuple[str, ...] = ()
    """What was different, as expressions."""
    before: str | None = None
    after: str | None = None
    """Values that the text itself names."""
    place: Place | None = None


class _Meaning(NamedTuple):
    """What the words of a guard say."""

    kind: str = "unknown"
    subjects: tuple[str, ...] = ()
    before: str | None = None
    after: str | None = None
    comment: str = ""
    """Behind the guard that the words are of, where that is known."""


def read_reason(text: str, guards: Collection[Guard] = (), files: Collection[str] = ()) -> Reported:
    """Take a reason apart.

    Args:
        text: one reason, as the log holds it.
        guards: of the compilation that did not fit, to find the guard that the text repeats.
        files: names of files to complete shortened ones from.

    >>> reported = read_reason("0/1: tensor 'x' size mismatch at index 0. expected 2, actual 3")
    >>> reported.entry, reported.kind, reported.subjects, reported.before, reported.after
    ('0/1', 'size', ("L['x'].size()[0]",), '2', '3')
    """
    head = _HEAD.match(text)
    entry, rest = (head["id"], head["rest"]) if head is not None else ("", text)
    rest, _, stack = rest.partition(_STACK)
    condition, comment = split_comment(rest.strip())
    words = spoken(condition)
    meaning = _meaning(words, guards)
    return Reported(
        entry=entry,
        guard=words,
        kind=meaning.kind,
        subjects=meaning.subjects,
        before=meaning.before,
        after=meaning.after,
        place=next(reversed(printed_stack(stack)), None)
        or origin(comment, files)
        or origin(meaning.comment, files),
    )


def _meaning(words: str, guards: Collection[Guard]) -> _Meaning:
    for pattern, read in _READERS.items():
        if (match := pattern.match(words)) is not None:
            return read(match, guards)
    for guard in guards:
        if guard.words == words:
            return _of_guard(guard)
    return _Meaning(next((kind for sign, kind in _SIGNS.items() if sign in words), "unknown"))


def _tensor(match: re.Match[str], guards: Collection[Guard]) -> _Meaning:
    holder = _holder(match["name"], guards)
    source = _expression(match["name"]) if holder is None else holder.source
    subject = part_of(source, _PARTS[match["part"]]) + (f"[{match['index']}]" if match["index"] else "")
    kind = kind_of(subject, tensor=match["index"] is None)
    return _Meaning(
        kind, (subject,), match["before"], match["after"], "" if holder is None else holder.comment
    )


def _wrong_type(match: re.Match[str], guards: Collection[Guard]) -> _Meaning:
    name = match["name"].removesuffix(".__code__")
    holder = _holder(name, guards)
    source = _expression(name) if holder is None else holder.source
    after = match.groupdict().get("after")
    return _Meaning("type", (f"type({source})",), None, after, "" if holder is None else holder.comment)


def _wrong_length(match: re.Match[str], guards: Collection[Guard]) -> _Meaning:
    holder = _holder(match["name"], guards)
    source = _expression(match["name"]) if holder is None else holder.source
    return _Meaning("length", (f"len({source})",), match["before"], f"not {match['before']}")


def _state(match: re.Match[str], _guards: Collection[Guard]) -> _Meaning:
    return _Meaning("global_state", tuple(GLOBAL + name for name in match["names"].split()))


_READERS: Mapping[re.Pattern[str], Callable[[re.Match[str], Collection[Guard]], _Meaning]] = {
    re.compile(
        r"tensor '(?P<name>.+?)' (?P<part>size|stride|rank|dtype|requires_grad|dispatch key set|Tensor device index) mismatch"
        r"(?: at index (?P<index>\d+))?"
        r"(?:\. (?:expected|Expected device index to be) (?:requires_grad=)?(?P<before>.+?))?"
        r"(?:,? (?:actual|but found) (?P<after>.+?)(?: instead\.)?)?$"
    ): _tensor,
    re.compile(
        r"expected type of '(?P<name>.+?)' to be a tensor type, ' but found (?P<after>.+)"
    ): _wrong_type,
    re.compile(r"(?:TYPE_MISMATCH\(|\w+: Not a function on )(?P<name>.+?)\)?$"): _wrong_type,
    re.compile(r"len\((?P<name>.+)\) != (?P<before>\d+)$"): _wrong_length,
    re.compile(r"GLOBAL_STATE changed: (?P<names>.*)"): _state,
}


def _of_guard(guard: Guard) -> _Meaning:
    """A guard that the words repeat."""
    known = identity(guard)
    if known is not None:
        subject = f"type({guard.source})" if guard.type == "TYPE_MATCH" else known[0]
        return _Meaning(kind_of(subject), (subject,), comment=guard.comment)
    sides = equation(guard.text)
    if sides is not None and guard.type != "LAMBDA_GUARD":
        kind = kind_of(sides[0])
        after = {"True": "False", "False": "True"}.get(sides[1]) if kind == "training" else None
        return _Meaning(kind, (sides[0],), sides[1], after, guard.comment)
    if guard.text.endswith(" is None"):
        subject = guard.text.removesuffix(" is None")
        return _Meaning(kind_of(subject), (subject,), "None", comment=guard.comment)
    sizes = tuple(dict.fromkeys(_SIZES.findall(guard.text)))
    kind = kind_of(sizes[0]) if sizes else kind_of(guard.source) if guard.source else "unknown"
    return _Meaning(kind, sizes, comment=guard.comment)


def _holder(name: str, guards: Collection[Guard]) -> Guard | None:
    """The guard on the value that a name in torch's words stands for."""
    return next((guard for guard in guards if guard.source and spoken(guard.source) == name), None)


def _expression(name: str) -> str:
    match = _ROOT.match(name)
    if match is None or match["root"] in {"G", "list", "len"}:
        return name
    return f"L['{match['root']}']" + name[match.end() :]
