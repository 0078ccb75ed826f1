"""Sentences of findings, headlines, notes and values in Chinese, which the words of the interface alone would not make.

What rules and facts say is made of patterns with figures and names in them. A page is made in English; beside it travels what of
its own sentences is known in Chinese, and the script puts that in their place when the reader asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from html.parser import HTMLParser
from typing import NamedTuple

import msgspec

from pyrometer.report.inline import asset

UNIT = r"(?: ?(?:ns|µs|ms|s|min|h|B|[kKMGT]i?B|%|×|GB/s))?(?![A-Za-z])"
NUMBER = r"[±≥≤<≈~+−-]? ?\d[\d,.]*"
FIGURE = rf"{NUMBER}(?:–\d[\d,.]*)?{UNIT}"
ANYTHING = r".+?"

SLOT = re.compile(r"\{([a-n])\}")
FIGURES = "nmkji"
"""Names of slots that hold figures; all others hold what is looked up again."""

JOINTS = (("; ", "\uff1b"), (". ", "\u3002"), (": ", "\uff1a"), (", ", "\uff0c"))
"""What stands between parts of a sentence, the widest first, and how that is written in Chinese."""

ASIDE = " · "
NAMED = re.compile(r"[^\sA-Za-z]|`[^`]*`|\S*[\d_./\\=()\[\]<>:@#*-]\S*|[A-Z][A-Z0-9]+")
"""What is the same in every language: figures, code, identifiers, paths, abbreviations."""

LONGEST = 1200
WEAK = 9
"""Letters of a pattern, such as `{a} by {b}`, that says nothing unless all in its slots is said, too."""


class Pattern(NamedTuple):
    """A sentence with slots."""

    english: re.Pattern[str]
    chinese: str
    weight: int  # letters outside of its slots: the more, the better it fits


def chinese(text: str) -> str | None:
    """A sentence in Chinese; `None` where not all of it is known.

    >>> chinese("no leak in 60 steps · 56 % temporaries"), chinese("what nobody ever said")
    ('60 步内无泄漏 · 56 % 为临时张量', None)
    """
    if len(text) > LONGEST:
        return None
    asides = text.split(ASIDE)
    if len(asides) > 1:
        said = [_sentence(part.strip()) for part in asides]
        if all(one is None for one in said):
            return None
        return ASIDE.join(one or part for one, part in zip(said, asides, strict=True))
    return _sentence(text)


MOST_DEPTH = 12
"""Parts of a sentence that are looked up one after the other."""


@lru_cache(maxsize=4096)
def _sentence(text: str, depth: int = 0) -> str | None:
    whole = _whole(text, depth)
    if whole is not None or depth > MOST_DEPTH:
        return whole
    if text.endswith(".") and (rest := _sentence(text[:-1], depth + 1)) is not None:
        return f"{rest}。"
    for joint, written in JOINTS:
        place = text.find(joint)
        while place >= 0:
            said = _joined(text[:place], written, text[place + len(joint) :], depth)
            if said is not None:
                return said
            place = text.find(joint, place + 1)
    return None


def _joined(first: str, joint: str, rest: str, depth: int) -> str | None:
    """Two parts of a sentence, each of which is known or the same in both languages, and one of them known."""
    begins = _whole(first, depth) or _ended(first, depth)
    if begins is None and (begins := _unchanged(first)) is None:
        return None
    ends = _sentence(rest, depth + 1)
    if ends is None and (begins == first or (ends := _unchanged(rest)) is None):
        return None
    return f"{begins}{joint}{ends}"


def _ended(text: str, depth: int) -> str | None:
    """What is known as a sentence with a full stop."""
    said = _whole(f"{text}.", depth)
    return None if said is None else said.removesuffix("。")


def _whole(text: str, depth: int) -> str | None:
    """As one pattern has it: what fills its slots is looked up in turn, and else stays."""
    known = _words().get(text) or _words().get(text[:1].lower() + text[1:])
    if known is not None:
        return known
    for pattern in _patterns():
        found = pattern.english.fullmatch(text)
        if found is None:
            continue
        filled = {name: _slot(name, value, depth) for name, value in found.groupdict().items()}
        named = [name for name in filled if name not in FIGURES]
        if pattern.weight <= WEAK and not all(_is_said(found[name], filled[name]) for name in named):
            continue
        return SLOT.sub(lambda slot: filled[slot[1]], pattern.chinese)  # noqa: B023 - used at once
    return None


def _slot(name: str, value: str, depth: int) -> str:
    return value if name in FIGURES else _sentence(value, depth + 1) or value


def _is_said(english: str, said: str) -> bool:
    return english != said or _unchanged(english) is not None


def _unchanged(text: str) -> str | None:
    """A text that is the same in Chinese: names and figures only."""
    return text if not re.search("[A-Za-z]{2}", NAMED.sub("", text)) else None


@cache
def _pairs() -> list[tuple[str, str]]:
    lines = [line for line in asset("sentences.zh.txt").splitlines() if line and not line.startswith("#")]
    return list(zip(lines[::2], lines[1::2], strict=True))


@cache
def _words() -> Mapping[str, str]:
    """Sentences without slots, and the words of the interface."""
    interface = dict(
        zip(*(msgspec.json.decode(asset(f"{name}.json")) for name in ("english", "chinese")), strict=True)
    )
    return {**interface, **{english: said for english, said in _pairs() if not SLOT.search(english)}}


@cache
def _patterns() -> list[Pattern]:
    """Sentences with slots, those with the most words of their own first."""
    found = []
    for english, said in _pairs():
        if SLOT.search(english):
            found.append(Pattern(re.compile(_expression(english)), said, len(SLOT.sub("", english))))
    return sorted(found, key=lambda pattern: -pattern.weight)


def _expression(english: str) -> str:
    r"""The expression that a sentence with slots stands for; it may begin with a small letter or a capital.

    >>> bool(re.fullmatch(_expression("{n} steps, median {m}"), "10 steps, median 27.1 ms"))
    True
    """
    parts = SLOT.split(english)
    pieces = [
        re.escape(part) if i % 2 == 0 else f"(?P<{part}>{FIGURE if part in FIGURES else ANYTHING})"
        for i, part in enumerate(parts)
    ]
    if parts[0][:1].isalpha():
        first = parts[0][0]
        pieces[0] = f"[{first.lower()}{first.upper()}]" + re.escape(parts[0][1:])
    return "".join(pieces)


def sayings(page: str, more: Iterable[str] = ()) -> dict[str, str]:
    """What of a page is known in Chinese, by its English: texts of elements, and others that its script draws.

    Args:
        page: the body as it was made, in English.
        more: texts out of the data of its drawings.
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    own = {english for english, _ in _pairs()}
    found = {}
    for text in dict.fromkeys((*reader.texts, *more)):
        said = chinese(text) if re.search("[A-Za-z]{2}", text) else None
        if (
            said is not None and said != text and (text in own or text not in _words())
        ):  # the interface has its words already
            found[text] = said
    return found


WORDS_IN_DATA = re.compile(r"[A-Za-z]{2,} \S|\d [A-Za-z]{2,}")


def texts_in(data: object) -> Iterator[str]:
    """Texts of several words in the data of a drawing."""
    if isinstance(data, str):
        if WORDS_IN_DATA.search(data) and len(data) <= LONGEST:
            yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from texts_in(value)
    elif isinstance(data, list):
        for value in data:
            yield from texts_in(value)


APART = frozenset({"script", "style", "pre", "kbd"})
SAID_ALOUD = frozenset({"aria-label", "title", "alt"})
VOID = frozenset({"img", "input", "br", "hr", "meta", "link", "col"})


class _Reader(HTMLParser):
    """The texts of a page: each run of text and label as it stands, and of elements that hold code all of it, the code in backticks."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._open: list[tuple[str, list[str], bool]] = []  # name, texts, whether code stands in it

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [value for name, value in attrs if name in SAID_ALOUD and value]
        if tag not in VOID:
            self._open.append((tag, [], False))

    def handle_endtag(self, tag: str) -> None:
        if not any(name == tag for name, _, _ in self._open):
            return
        while self._open:
            name, texts, has_code = self._open.pop()
            text = re.sub(r"\s+", " ", "".join(texts)).strip()
            if has_code and text:
                self.texts.append(text)
            if name == "code" and self._open:
                above, held, _ = self._open[-1]
                self._open[-1] = above, [*held, f"`{text}`"], True
            if name == tag:
                return

    def handle_data(self, data: str) -> None:
        if not self._open or any(name in APART for name, _, _ in self._open):
            return
        self._open[-1][1].append(data)
        if (text := data.strip()) and self._open[-1][0] != "code":
            self.texts.append(text)
