"""Mending the text of one JSON object that a decoder refuses.

A tolerant walk over its tokens that writes a valid object and names what it changed. What it cannot make sense of stays
refused; the caller decodes what comes back, so a wrong guess is found out and counts as lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from typing import NamedTuple

KNOWN_KEYS = (
    rb"name|cat|ph|ts|tts|pid|tid|dur|tdur|id|id2|args|s|bp|sf|cname|scope|bind_id|flow_in|flow_out"
    rb"|External id|Record function id|Sequence number|Fwd thread id|Ev Idx|Input Dims|Input dims|Input type"
    rb"|Input Strides|Concrete Inputs|Call stack|Module Hierarchy|Python id|Python parent id|Python module id"
    rb"|Python thread|Collective name|cbid|correlation|device|context|stream|queued|grid|block"
    rb"|registers per thread|shared memory|blocks per SM|warps per SM|est\. achieved occupancy %"
)
"""Keys after which a quote surely closed a string: Chrome's of an event, and the commonest of Kineto's arguments."""

_LATER = rb"\s*(?:\}\s*(?:\Z|[,}\]])|\Z)"
_CLOSES_SURELY = re.compile(rb'\s*,\s*"(?:' + KNOWN_KEYS + rb')"\s*:|' + _LATER)
_CLOSES_PERHAPS = re.compile(rb'\s*,\s*"[^"\n]{0,80}"\s*:\s*["\d\[{tfnN-]|' + _LATER)
_EVENT_KEY = re.compile(rb'"(name|cat|ph|ts|pid|tid|dur|id|args)"\s*:')
_CLOSES_KEY = re.compile(rb"\s*:")
_CLOSES_ITEM = re.compile(rb'\s*(?:,\s*(?:["\[{\d-]|null|true|false)|\]\s*(?:\Z|[,}\]]))')
_SPACE = re.compile(rb"\s*")
_BARE = re.compile(rb'[^,:{}\[\]"\n]+')
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_STRAY_ESCAPE = re.compile(rb'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')
_LONE_SURROGATE = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_WORDS = {b"true": b"true", b"false": b"false", b"null": b"null", b"True": b"true", b"False": b"false"}
_PAIR = {b"}": b"{", b"]": b"["}
_CLOSING = {b"{": b"}", b"[": b"]"}


class Mended(NamedTuple):
    """A valid object, where it ended in the damaged text, what had to be changed, and which of an event's keys it has."""

    text: bytes
    end: int
    codes: frozenset[str]
    keys: frozenset[bytes]


class _Unmendable(Exception):  # noqa: N818  # control flow, never seen outside
    pass


def attempts(text: bytes, *, insert: bool | None = None) -> Iterator[Mended]:
    r"""Ways to read the object at the start of a text, the likeliest first.

    Args:
        text: begins with the object.
        insert: put in brackets and commas that are missing; by default after the ways without.

    >>> mended = next(attempts(b'{"name": "a"b", "dur": NaN,}, ...'))
    >>> mended.text, sorted(mended.codes)
    (b'{"name": "a\\"b","dur": null}', ['bare_value', 'trailing_comma', 'unescaped_quote'])
    """
    inserting = (False, True) if insert is None else (insert,)
    for inserts, guessing, surely in product(inserting, (False, True), (False, True)):
        mended = _Walk(text, surely=surely, insert=inserts, trusting=not guessing).object_or_none()
        if mended is not None:
            yield mended


def event_keys(text: bytes) -> frozenset[bytes]:
    """The keys of an event that a text seems to hold, at any depth."""
    return frozenset(_EVENT_KEY.findall(text))


class _Walk:
    """One pass over a text.

    Args:
        text: begins with the object.
        surely: a quote ends a string only where a known key follows, or the object ends.
        insert: put in brackets and commas that are missing.
        trusting: a quote after a backslash does not end a string.
    """

    def __init__(self, text: bytes, *, surely: bool, insert: bool, trusting: bool) -> None:
        self.text = text
        self.insert = insert
        self.trusting = trusting
        self.keys: set[bytes] = set()
        self.closes_value = _CLOSES_SURELY if surely else _CLOSES_PERHAPS
        self.out: list[bytes] = []
        self.open: list[bytes] = []
        self.codes: set[str] = set()

    def object_or_none(self) -> Mended | None:
        """The object, if the text makes sense this way."""
        try:
            return self.object()
        except _Unmendable:
            return None

    def object(self) -> Mended:
        """Walk to the end of the object."""
        at = 0
        while True:
            space = _SPACE.match(self.text, at)
            at = space.end() if space else at
            token = self.text[at : at + 1]
            if token in b"{[" and token:
                self._begin_value()
                self.open.append(token)
                self.out.append(token)
            elif token in b"}]" and token:
                self._close(token)
                if not self.open:
                    return self._mended(at + 1)
            elif token in b",:" and token:
                self._punctuate(token)
            elif token == b'"':
                at = self._string(at)
                continue
            elif token:
                at = self._bare(at)
                continue
            elif self.insert and self.open:
                self.codes.add("missing_bracket")
                while self.open:
                    self._close(_CLOSING[self.open[-1]])
                return self._mended(at)
            else:
                raise _Unmendable
            at += 1

    def _mended(self, end: int) -> Mended:
        text = b"".join(self.out)
        try:
            text.decode()
        except UnicodeDecodeError:
            self.codes.add("bad_utf8")
            text = text.decode(errors="replace").encode()
        return Mended(text, end, frozenset(self.codes), frozenset(self.keys))

    def _last(self) -> bytes:
        return self.out[-1] if self.out else b""

    def _begin_value(self) -> None:
        if not self.open and self.out:
            raise _Unmendable
        if self.open and self._last() not in {b"{", b"[", b",", b": "}:
            if not self.insert:
                raise _Unmendable
            self.codes.add("missing_comma")
            self.out.append(b",")

    def _punctuate(self, token: bytes) -> None:
        if token == b":":
            self.out.append(b": ")
            return
        if self._last() in {b",", b"{", b"["}:
            self.codes.add("trailing_comma")
            return
        self._fill()
        self.out.append(b",")

    def _fill(self) -> None:
        if self._last() == b": ":
            self.codes.add("missing_value")
            self.out.append(b"null")

    def _close(self, token: bytes) -> None:
        if self._last() == b",":
            self.codes.add("trailing_comma")
            self.out.pop()
        self._fill()
        while self.open and self.open[-1] != _PAIR[token]:
            if not self.insert:
                raise _Unmendable
            self.codes.add("missing_bracket")
            self.out.append(_CLOSING[self.open.pop()])
        if not self.open:
            raise _Unmendable
        self.open.pop()
        self.out.append(token)

    def _bare(self, at: int) -> int:
        match = _BARE.match(self.text, at)
        if match is None:
            raise _Unmendable
        word = match[0].strip()
        self._begin_value()
        if _NUMBER.match(word):
            self.out.append(word)
        else:
            plain = _WORDS.get(word) or _number(word) or b"null"
            if plain != word:
                self.codes.add("bare_value")
            self.out.append(plain)
        return match.end()

    def _string(self, at: int) -> int:
        is_key = bool(self.open) and self.open[-1] == b"{" and self._last() != b": "
        end = self._end_of_string(at + 1, is_key=is_key)
        if is_key and len(self.open) == 1:
            self.keys |= event_keys(self.text[at : end + 1] + b":")
        self._begin_value()
        self.out.append(b'"' + self._content(self.text[at + 1 : end]) + b'"')
        return end + 1

    def _end_of_string(self, at: int, *, is_key: bool) -> int:
        in_list = bool(self.open) and self.open[-1] == b"["
        closes = _CLOSES_KEY if is_key else _CLOSES_ITEM if in_list else self.closes_value
        escaped = -1
        quote = self.text.find(b'"', at)
        while quote >= 0:
            if closes.match(self.text, quote + 1):
                if not self.trusting or not _is_escaped(self.text, quote, at):
                    return quote
                escaped = quote if escaped < 0 else escaped
            quote = self.text.find(b'"', quote + 1)
        if escaped < 0:
            raise _Unmendable
        return escaped  # a path that ends in a backslash

    def _content(self, raw: bytes) -> bytes:
        text = _STRAY_ESCAPE.sub(self._escape, raw)
        if b"\\u" in text:
            text = _LONE_SURROGATE.sub(self._surrogate, text)
        if _CONTROL.search(text):
            self.codes.add("control_character")
            text = _CONTROL.sub(lambda match: b"\\u%04x" % match[0][0], text)
        if b'"' in text:
            parts = re.split(rb'((?:\\.)|")', text)
            if b'"' in parts:
                self.codes.add("unescaped_quote")
                text = b"".join(b'\\"' if part == b'"' else part for part in parts)
        return text

    def _escape(self, match: re.Match[bytes]) -> bytes:
        if match[1] is not None:
            return match[0]
        self.codes.add("bad_escape")
        return b"\\\\"

    def _surrogate(self, match: re.Match[bytes]) -> bytes:
        if match[1] is not None:
            return match[0]
        self.codes.add("bad_escape")
        return b"\\ufffd"


def _number(word: bytes) -> bytes | None:
    """A number that JSON writes otherwise, such as +5, .5 or 007."""
    try:
        value = Decimal(word.decode())
    except (ArithmeticError, UnicodeDecodeError):
        return None
    return format(value, "f").encode() if value.is_finite() else None


def _is_escaped(text: bytes, quote: int, start: int) -> bool:
    before = quote
    while before > start and text[before - 1] == 0x5C:
        before -= 1
    return (quote - before) % 2 == 1
