"""Drawing with characters: bars and distributions in a line, on streams that can encode them and on those that cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement as Width
from rich.segment import Segment
from rich.text import Text

PHASE_MARKS = "█▤▓▒▚░▥▞▦▧"
"""One mark per phase, so that a bar reads without colour."""

PHASE_COLOURS = (
    "yellow",
    "cyan",
    "blue",
    "magenta",
    "green",
    "bright_black",
    "red",
    "white",
    "bright_magenta",
    "bright_yellow",
)

BAR_CELLS = 100
"""No bar is wider, however wide the terminal."""

_LEVELS = " ▁▂▃▄▅▆▇█"

_ASCII = str.maketrans(
    {
        **dict(zip("▁▂▃▄▅▆▇█▤▓▒▚░▥▞▦▧", "._-:=+*#=%+@.H/&$", strict=True)),
        **dict(zip("·–×µ→…−─━●│", "|-xu>.--=o|", strict=True)),
        "±": "+-",
        "✓": "met",
        "✗": "missed",
        "≥": ">=",
        "≤": "<=",
        "∞": "inf",
        "°": " deg ",
    }
)


@lru_cache(maxsize=64)
def _encodable(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def portable(text: str, encoding: str) -> str:
    r"""The text as a stream of this encoding can show it; control characters never reach the terminal.

    >>> portable("32.0 µs · 1.42× ▁█", "ascii"), portable("32.0 µs", "utf-8"), portable("\x1b[31mred", "utf-8")
    ('32.0 us | 1.42x .#', '32.0 µs', '?[31mred')
    """
    shown = []
    for character in text:
        if character.isascii() and (character.isprintable() or character == "\n"):
            shown.append(character)
        elif character.isascii() or not character.isprintable():
            shown.append("?")
        else:
            shown.append(character if _encodable(character, encoding) else _fallback(character, encoding))
    return "".join(shown)


def _fallback(character: str, encoding: str) -> str:
    translated = character.translate(_ASCII)
    return translated if translated.isascii() else translated.encode(encoding, "replace").decode(encoding)


class Portable:
    """Wraps a renderable so that every character of it can be encoded by the stream it is printed on."""

    def __init__(self, renderable: RenderableType) -> None:
        self.renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.renderable, options):
            text = segment.text if segment.control else portable(segment.text, options.encoding)
            yield Segment(text, segment.style, segment.control)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Width:
        return Width.get(console, options, self.renderable)


class ShareBar:
    """A bar across the width, split by shares that add up to one; `slots` are their places in the palette."""

    def __init__(self, shares: Sequence[float], slots: Sequence[int]) -> None:
        self.shares = shares
        self.slots = slots

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bar = Text()
        width = min(options.max_width, BAR_CELLS)
        for slot, cells in zip(self.slots, split_cells(self.shares, width), strict=True):
            mark, colour = phase_mark(slot)
            bar.append(mark * cells, style=colour)
        yield bar

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Width:
        return Width(10, options.max_width)


class Flow:
    """Facts one after the other, broken into lines only between facts."""

    def __init__(self, parts: Sequence[Text], style: str = "") -> None:
        self.parts = parts
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = Text(style=self.style)
        for part in self.parts:
            joined = Text(" · ", style=self.style) + part if line else part
            if line and line.cell_len + joined.cell_len > options.max_width:
                yield line
                line, joined = Text(style=self.style), part
            line = line + joined
        yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Width:
        return Width(10, options.max_width)


def phase_mark(slot: int) -> tuple[str, str]:
    """Mark and colour of a phase by its slot in the palette."""
    return PHASE_MARKS[slot], PHASE_COLOURS[slot]


def split_cells(shares: Sequence[float], width: int) -> list[int]:
    """Divide `width` cells by shares, by largest remainder; a share above zero gets at least one cell.

    >>> split_cells([0.5, 0.3, 0.2], 11), split_cells([0.999, 0.001], 10)
    ([6, 3, 2], [9, 1])
    """
    total = sum(shares)
    if total <= 0:
        return [0 for _ in shares]
    exact = [share / total * width for share in shares]
    cells = [max(int(part), 1 if part > 0 else 0) for part in exact]
    order = sorted(range(len(shares)), key=lambda i: exact[i] - cells[i], reverse=True)
    for index in order[: max(0, width - sum(cells))]:
        cells[index] += 1
    while sum(cells) > width and max(cells) > 1:
        cells[cells.index(max(cells))] -= 1
    return cells


def sparkline(counts: Sequence[int]) -> str:
    """Counts as a line of blocks; a count above zero is always visible.

    >>> sparkline([0, 1, 50, 100, 3])
    ' ▁▄█▁'
    """
    highest = max(counts, default=0)
    return "".join(_LEVELS[0 if not count else max(1, round(count / highest * 8))] for count in counts)


def interval_line(places: Mapping[str, float], width: int) -> str:
    """An axis with an interval on it; `places` are positions from 0 to 1.

    Keys: `low`, `estimate`, `high` of the interval, `one` for no difference, `margin_low` and `margin_high`.

    >>> at = {"low": 0.1, "estimate": 0.2, "high": 0.3, "one": 0.8, "margin_low": 0.7, "margin_high": 0.9}
    >>> interval_line(at, 21)
    '──━━●━━───────░░│░░──'
    """
    cell = {name: round(place * (width - 1)) for name, place in places.items()}
    line = ["─"] * width
    for low, high, mark in (("margin_low", "margin_high", "░"), ("low", "high", "━"), ("one", "one", "│")):
        line[cell[low] : cell[high] + 1] = mark * (cell[high] - cell[low] + 1)
    line[cell["estimate"]] = "●"
    return "".join(line)
