r"""Control characters where a reader can see them: names come out of programs, and may hold what turns or hides text.

Line breaks and tabs stay. All else that has no shape, or that changes the direction of what follows, is written as an
escape: a name with U+202E in it reads `\u202e`.
"""

from __future__ import annotations

import re
from typing import TypeVar

_T = TypeVar("_T")

_UNSEEN = "\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
_CONTROL = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f{_UNSEEN}]|\r(?!\n)")
_IN_JSON = re.compile(rf'\\(?:["\\/nrt]|(?P<short>[bf])|u(?P<code>[0-9a-fA-F]{{4}}))|(?P<raw>[{_UNSEEN}])')
_MAYBE = re.compile(
    rb"\\[bfu]|\x7f|\xc2[\x80-\x9f\xad]|\xd8\x9c|\xe2\x80[\x8b\x8e\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xef\xbf[\xb9-\xbb]"
)
_SHORT = {"b": "\b", "f": "\f"}


def visible(text: str) -> str:
    r"""A text with its control characters as escapes.

    >>> print(visible("gemm\u202etxt.exe\x1b[31m"))
    gemm\u202etxt.exe\x1b[31m
    """
    return _CONTROL.sub(lambda match: _escape(match[0]), text)


def for_template(value: _T) -> _T | str:
    """What a template shows: our own markup as it is, of texts the control characters as well."""
    return visible(value) if isinstance(value, str) and type(value) is str else value


def visible_json(content: bytes) -> bytes:
    r"""JSON whose texts have their control characters as escapes; the same bytes where there are none.

    >>> print(visible_json(b'["a\\u001b", "\xe2\x80\xae", "\\n", "C:\\\\u001b"]').decode())
    ["a\\x1b", "\\u202e", "\n", "C:\\u001b"]
    """
    if _MAYBE.search(content) is None:
        return content
    return _IN_JSON.sub(_in_json, content.decode()).encode()


def _in_json(match: re.Match[str]) -> str:
    character = match["raw"] or (_SHORT[match["short"]] if match["short"] else None)
    if match["code"] is not None:
        character = chr(int(match["code"], 16))
    if character is None or visible(character) == character:
        return match[0]
    return f"\\{_escape(character)}"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
