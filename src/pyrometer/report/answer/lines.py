"""A short answer on a terminal: at most a screen of lines, none wider than the screen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import TextWrapper

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from pyrometer.report.answer.short import Fix, Part, ShortAnswer, Whole
from pyrometer.report.glyphs import Portable

MOST_LINES = 25
WIDEST = 100
"""Cells of a line, however wide the screen."""

MOST_FIXES = 3
MOST_ROWS = 8
MOST_ALERTS = 2
MOST_GOALS = 2

SENTENCE_LINES, CODE_LINES = 3, 5
"""Of one fix, where there is room."""

MOST_COMMAND_LINES = 5
FLAG = re.compile(r"(--[\w-]+) (?=[^\s-])")
"""A flag and its value stay on one line."""

FEWEST_CELLS = 24
"""For a part that is cut: with less nothing would be told of it."""

NAME_CELLS = 34
"""Of the name of a part."""

TONES = {"faster": "bold green", "slower": "bold red", "undecided": "bold yellow", "failed": "bold red"}


class Screen:
    """Lays a short answer out for the width that there is."""

    def __init__(self, answer: ShortAnswer) -> None:
        self.answer = answer

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Portable(Text("\n").join(screen(self.answer, options.max_width)))


def screen(answer: ShortAnswer, width: int) -> list[Text]:
    """The lines, at most a screen of them: what the fixes may take is what all else leaves."""
    width = min(width, WIDEST)
    top = _headline(answer, width)
    top += [Text(flowing(answer.bound, width))] if answer.bound else []
    top += [line for goal in answer.goals[:MOST_GOALS] for line in _goal(goal, width)]
    top += [line for alert in answer.alerts[:MOST_ALERTS] for line in _alert(alert, width)]
    bottom = _foot(answer, width)
    rows = [] if answer.whole is None else [Text(), *_rows(answer.whole, width)]
    spaced = [*rows, Text()]
    room = MOST_LINES - len(top) - len(spaced) - len(bottom)
    return [*top, *_fixes(answer, width, room), *spaced, *bottom]


def _headline(answer: ShortAnswer, width: int) -> list[Text]:
    tone = TONES.get(answer.tone, "bold")
    first = answer.figure.partition(" · ")[0]
    if cell_len(answer.name) + 3 + cell_len(first) > width:  # the figure is never cut for a name
        lines = [(shortened(answer.name, width), "bold")]
        lines += [(line, tone) for line in cut(wrapped(answer.figure, width), 2, width)]
        return [Text(*line) for line in lines]
    figure = flowing(answer.figure, width - cell_len(answer.name) - 3)
    below = []
    if figure.endswith("…"):  # what follows the first figure has a line of its own
        below = [Text(flowing(answer.figure.removeprefix(f"{first} · "), width), tone)]
        figure = first
    return [Text.assemble((answer.name, "bold"), "   ", (figure, tone)), *below]


def _goal(said: str, width: int) -> list[Text]:
    tone = {"✓": "green", "✗": "red"}.get(said[:1], "yellow")
    return [Text(line, tone) for line in cut(wrapped(said, width), 2, width)]


def _alert(said: str, width: int) -> list[Text]:
    lines = cut(wrapped(said, width - 2), 2, width - 2)
    return [Text(f"{'  ' if number else '! '}{line}", "yellow") for number, line in enumerate(lines)]


def _nothing(answer: ShortAnswer, width: int) -> list[Text]:
    """In one line, else what goes on from there in one of its own."""
    indent = cell_len(answer.fixes_title) + 3
    remarks = f"{answer.remarks}: {answer.more}" if answer.remarks else ""
    said = " · ".join(filter(None, [answer.nothing, remarks]))
    whole = " · ".join(filter(None, [said, answer.tries]))
    first, *below = [whole] if indent + cell_len(whole) <= width or not answer.tries else [said, answer.tries]
    title = Text.assemble((answer.fixes_title, "bold"), "   ", flowing(first, width - indent))
    return [Text(), title, *(Text(f"{'':{indent}}{clipped(line, width - indent)}") for line in below)]


def _fixes(answer: ShortAnswer, width: int, room: int) -> list[Text]:
    """The fixes in as many lines as there is room for; the last ones give way first."""
    if not answer.fixes:
        return _nothing(answer, width) if answer.nothing else []
    shown = list(answer.fixes[:MOST_FIXES])
    heads = [_head(number, fix, width) for number, fix in enumerate(shown, 1)]
    bodies = [[_sentence(fix, width), _code(fix, width)] for fix in shown]
    limits = [[len(lines) for lines in body] for body in bodies]
    left = room - 2  # a blank line and the title
    while sum(map(len, heads)) + sum(map(sum, limits)) > left:
        if not _give_way(limits):
            if len(shown) == 1:
                break
            for held in (shown, heads, bodies, limits):
                held.pop()
    more = len(answer.fixes) - len(shown)
    title = Text.assemble(
        (answer.fixes_title, "bold"), (f"   and {more} more: {answer.more}" if more else "", "dim")
    )
    lines = [Text(), title]
    for head, (sentence, code), (most, most_code) in zip(heads, bodies, limits, strict=True):
        lines += head
        lines += [Text(f"  {line}") for line in cut(sentence, most, width - 2)]
        lines += [Text(f"  {line}", "green") for line in cut(code, most_code, width - 2)]
    return lines


def _give_way(limits: list[list[int]]) -> bool:
    """Take one line from the longest text, of the last fix that has one; false where each has a single one left.

    What to write for the first fix stays whole as long as there are others: cut, it would be of no use.
    """
    spared = limits[0][1] if len(limits) > 1 else 0
    texts = [(lines, which, part) for which, limit in enumerate(limits) for part, lines in enumerate(limit)]
    texts = [text for text in texts if text[0] > 1 and not (spared and text[1:] == (0, 1))]
    if not texts:
        return False
    longest = max(lines for lines, _, _ in texts)
    _, which, part = min((text for text in texts if text[0] == longest), key=lambda text: (-text[1], text[2]))
    limits[which][part] -= 1
    return True


def _head(number: int, fix: Fix, width: int) -> list[Text]:
    """Its name, gain and code, and the place beside them where it fits."""
    tail = [word for word in (fix.gain, fix.code) if word]
    rest = sum(cell_len(word) + 2 for word in tail)
    name = clipped(fix.name, width - 2 - rest)
    head = Text.assemble(f"{number} ", (name, "bold"), "  " if fix.gain else "", (fix.gain, "green"))
    head.append(f"  {fix.code}" if fix.code else "")
    if not fix.place:
        return [head]
    if head.cell_len + 2 + cell_len(fix.place) <= width:
        return [head.append(f"  {fix.place}", "cyan")]
    return [head, Text(f"  {shortened(fix.place, width - 2)}", "cyan")]


def _sentence(fix: Fix, width: int) -> list[str]:
    return cut(wrapped(fix.sentence, width - 2), SENTENCE_LINES, width - 2)


def _code(fix: Fix, width: int) -> list[str]:
    """What to write, line by line; what is too long for a line goes on in the next."""
    lines = [part for line in fix.write.splitlines() if line.strip() for part in wrapped(line, width - 2)]
    return cut(lines, CODE_LINES, width - 2)


def _rows(whole: Whole, width: int) -> list[Text]:
    """A row per part: its name, figure, share, and a bar or a note."""
    parts = list(whole.parts)
    left = len(parts) - MOST_ROWS
    parts = parts[:MOST_ROWS]
    names = min(NAME_CELLS, max((cell_len(part.name) for part in parts), default=0))
    figures = min(width // 3, max((cell_len(part.figure) for part in parts), default=0))
    title = Text(whole.title, "bold")
    if whole.unit:
        title.append(f"  {whole.unit.rjust(names + figures - cell_len(whole.title))}", "dim")
    if left > 0:
        title.append(f"   and {left} more: --full", "dim")
    return [title, *(_row(part, names, figures, width) for part in parts)]


def _row(part: Part, names: int, figures: int, width: int) -> Text:
    name = set_cell_size(shortened(part.name, names), names)
    figure = clipped(part.figure, figures)
    if not figure:
        return Text.assemble(name, "  ", clipped(part.note, width - names - 2))
    row = Text.assemble(name, "  ", " " * (figures - cell_len(figure)), figure)
    if part.share is not None:
        percent = f"{part.share * 100:.0f} %".rjust(7)
        room = max(0, min(40, width - row.cell_len - 9))
        row.append(percent, "dim").append(f"  {'█' * round(part.share * room)}", "cyan")
    if part.note:
        row.append(f"  {clipped(part.note, width - row.cell_len - 2)}", "dim")
    row.rstrip()
    return row


def _foot(answer: ShortAnswer, width: int) -> list[Text]:
    """The trust with the command that improves it, and where all of it is."""
    foot = []
    label = 8
    if answer.trust:
        foot.append(Text.assemble(("Trust   ", "bold"), flowing(answer.trust, width - label)))
    whole = FLAG.sub("\\1\xa0", answer.improve)
    advice = [line.replace("\xa0", " ") for line in wrapped(whole, width - label)] if whole else []
    for number, line in enumerate(cut(advice, MOST_COMMAND_LINES, width - label)):
        lead = " " * label if number or answer.trust else "Trust   "
        foot.append(Text.assemble((lead, "bold"), (line, "green")))
    kept = [f"{what:<8}{where}" for what, where in answer.kept.items()]
    lines = [line for text in kept[:1] for line in _folded(text, width, label)]
    if not lines:
        return [*foot, Text(f"{'All':<8}{answer.full}")]
    if cell_len(lines[-1]) + 3 + cell_len(answer.full) <= width:
        lines[-1] += f" · {answer.full}"
    return [*foot, *(Text.assemble((line[:label], "bold"), line[label:]) for line in lines)]


def _folded(text: str, width: int, indent: int) -> list[str]:
    """A path over as many lines as it takes: one with something left out could not be opened."""
    if cell_len(text) <= width:
        return [text]
    first, *rest = chop_cells(text, width)
    return [first, *(" " * indent + part for part in chop_cells("".join(rest), width - indent))]


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines of so many cells, wide characters counted as two; its own indent stays.

    >>> wrapped("a model of layers", 9), wrapped("中文字", 4)
    (['a model', 'of layers'], ['中文', '字'])
    """
    if cell_len(text) <= width:
        return [text]
    if len(text) < cell_len(text):
        return chop_cells(text, width)
    indent = " " * (len(text) - len(text.lstrip()))
    return TextWrapper(width=width, subsequent_indent=indent, break_on_hyphens=False).wrap(text)


def cut(lines: Sequence[str], most: int, width: int) -> list[str]:
    """At most so many lines; the last one says that there were more.

    >>> cut(["one two", "three"], 1, 7)
    ['one tw…']
    """
    if len(lines) <= most:
        return list(lines)
    kept = list(lines[:most])
    room = width - 1
    return [
        *kept[:-1],
        *(f"{set_cell_size(line, min(cell_len(line), room)).rstrip()}…" for line in kept[-1:]),
    ]


def clipped(text: str, cells: int) -> str:
    """A text of at most so many cells, its end left out.

    >>> clipped("convolution", 5), clipped("卷积算子", 5)
    ('conv…', '卷积…')
    """
    if cell_len(text) <= cells:
        return text
    return f"{set_cell_size(text, max(cells - 1, 0)).rstrip()}…"


def shortened(text: str, cells: int) -> str:
    """A text of at most so many cells, its middle left out: names and paths differ at their ends.

    >>> shortened("camera.backbone.0.conv1, net.py:96", 20)
    'camera.bac…net.py:96'
    """
    if cell_len(text) <= cells:
        return text
    tail = max((cells - 1) // 2, 0)
    end = text[len(text) - tail :] if tail else ""
    while cell_len(end) > tail:
        end = end[1:]
    return f"{set_cell_size(text, max(cells - 1 - cell_len(end), 0)).rstrip()}…{end}"


def flowing(text: str, cells: int) -> str:
    """As many parts as fit, the first in any case.

    >>> flowing("38.2 ms · 4.4 · 2.6", 14)
    '38.2 ms · 4.4'
    """
    first, *rest = text.split(" · ")
    said = clipped(first, cells)
    for part in rest:
        if cell_len(said) + 3 + cell_len(part) > cells:
            room = cells - cell_len(said) - 3
            return f"{said} · {clipped(part, room)}" if room >= FEWEST_CELLS else said
        said += f" · {part}"
    return said
