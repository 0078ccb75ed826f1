"""Torch's text of one compilation's guards, read line by line.

The text is a tree: a line `GuardManager: source=…` for each value that is guarded, and below it one line per guard,
`EQUALS_MATCH: L['b'] == 1   # the user's line  # file:line in function`. The text is made for people and has no contract, so
that a line of another shape is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyrometer.place import Place

_LINE = re.compile(r"(?P<bars>(?:\| )*)\+- (?P<body>.*)")
_LEAF = re.compile(r"(?P<type>[A-Z][A-Z_]*[A-Z])(?:: (?P<text>.*))?$", re.DOTALL)
_SOURCE = re.compile(
    r"\bsource=(?P<source>.*?)(?:, accessed_by=.*?)?(?:, type=(?P<type>.*?))?(?:, tag_safe=.*)?$"
)
_ORIGIN = re.compile(r"(?P<file>[^\s#:][^#:\n]*):(?P<line>\d+) in (?P<function><?\w+>?)")
_LOCAL = re.compile(r"L\[\s*['\"](.*?)['\"]\s*\]")
_ADDRESS = re.compile(r"(___check_(?:obj|type)_id\(.*), \d+\)")
FIRST_USE = "(user code shown is first use"
"""What torch writes behind a line that only happens to be the first to use a value; the guard is not due to it."""


class Guard(NamedTuple):
    """One guard, as torch wrote it down."""

    type: str
    text: str
    """The condition, without the comment behind it."""
    source: str = ""
    """The guarded value, as an expression over the function's locals; empty for what hangs on no value."""
    value_type: str = ""
    """Type of that value, such as `<class 'int'>`."""
    comment: str = ""

    @property
    def words(self) -> str:
        """The condition as torch says it in the reason of a recompilation.

        >>> Guard("EQUALS_MATCH", "L['self'].k == 1").words
        'self.k == 1'
        """
        return spoken(self.text)


def read_tree(text: str) -> list[Guard]:
    r"""The guards of one compilation, in torch's order.

    >>> read_tree("| +- GuardManager: source=L['b'], type=<class 'int'>\n| | +- EQUALS_MATCH: L['b'] == 1   # y = x + b")
    [Guard(type='EQUALS_MATCH', text="L['b'] == 1", source="L['b']", value_type="<class 'int'>", comment='y = x + b')]
    """
    return list(_guards(text.splitlines()))


def read_types(text: str) -> dict[str, str]:
    """Type of every guarded value, by its source; also of those whose guards all hang below them."""
    matches = (_SOURCE.search(line) for line in text.splitlines() if "source=" in line)
    return {match["source"]: match["type"] for match in matches if match is not None and match["type"]}


def _guards(lines: Iterable[str]) -> Iterator[Guard]:
    holders: list[tuple[int, str, str]] = []  # the values above this line: depth, source, type
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        depth = len(match["bars"])
        while holders and holders[-1][0] >= depth:
            holders.pop()
        leaf = _LEAF.match(match["body"])
        if leaf is None:
            named = _SOURCE.search(match["body"])
            if named is not None:
                holders.append((depth, named["source"], named["type"] or ""))
            continue
        condition, comment = split_comment(leaf["text"] or "")
        _, source, value_type = holders[-1] if holders else (0, "", "")
        yield Guard(leaf["type"], condition, source, value_type, comment)


def split_comment(text: str) -> tuple[str, str]:
    """A condition, and the comment behind it: the user's line, its place, and torch's hints.

    >>> split_comment("L['s'].mode == 'a  # b'     # if s.mode:  # model.py:8 in forward")
    ("L['s'].mode == 'a  # b'", 'if s.mode:  # model.py:8 in forward')
    """
    start = 0
    while (at := text.find("  # ", start)) >= 0:
        if not _inside_quotes(text[:at]):
            return text[:at].rstrip(), text[at + 4 :].strip()
        start = at + 1
    condition, hint, rest = text.partition(" (HINT: ")
    return condition.rstrip(), (hint + rest).strip()


def spoken(text: str) -> str:
    """As torch writes in reasons, `L['x']` as `x`; less the addresses, which are others in every process.

    >>> spoken("___check_type_id(L['x'], 94074760404752), type=<class 'int'>")
    "___check_type_id(x), type=<class 'int'>"
    """
    return _ADDRESS.sub(r"\1)", _LOCAL.sub(r"\1", text))


def origin(comment: str, files: Iterable[str] = ()) -> Place | None:
    """The user's line that a guard comes from, as the comment behind the guard tells it.

    Torch shortens the file's name in a way that may cut it in the middle; `files` are the names to complete it from.
    """
    matches = list(_ORIGIN.finditer(comment))
    if not matches:
        return None
    due = [match for match in matches if not comment[match.end() :].lstrip().startswith(FIRST_USE)]
    match = (due or matches)[0]
    short = match["file"].strip()
    whole = {name for name in files if name.endswith(short)}
    before = comment[: match.start()].removesuffix("# ").rpartition(") and ")[2]
    return Place(
        file=whole.pop() if len(whole) == 1 else short,
        line=int(match["line"]),
        function=match["function"],
        source=before.rstrip(" #").lstrip(),
    )


def _inside_quotes(text: str) -> bool:
    """Whether a string literal is open at the end of a piece of Python."""
    if '"' not in text and "\\" not in text:  # nearly always, and there may be thousands of guards
        return text.count("'") % 2 == 1
    quote, escaped = "", False
    for letter in text:
        if escaped:
            escaped = False
        elif quote and letter == "\\":
            escaped = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
    return bool(quote)
