"""A drawing as SVG: one text that stands alone in a file or within a page, for light and dark grounds, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Literal

from pyrometer.compiler.graphs.annotation import short_dtype
from pyrometer.compiler.graphs.ops import KINDS
from pyrometer.compiler.graphs.record import GraphLayout, LayoutBox, LayoutEdge
from pyrometer.errors import InputError
from pyrometer.quantity import counted, format_bytes

ColourBy = Literal["kind", "dtype", "group"]
_COLOUR_BY = ("kind", "dtype", "group")

_COLOURS = {
    "orange": ("#d97706", "#f0a94a"),
    "blue": ("#0b69b0", "#5aa9e6"),
    "green": ("#00805b", "#45c49a"),
    "pink": ("#b4568c", "#dd92bd"),
    "red": ("#c2410c", "#f78b57"),
    "sky": ("#2795c4", "#7fcdf2"),
    "violet": ("#6d4fa3", "#ab93dd"),
    "olive": ("#7d6b00", "#c4b24a"),
    "grey": ("#7b828d", "#8f98a5"),
    "ink": ("#33383f", "#c9ced6"),
}
"""On a light and on a dark ground; told apart with the common kinds of colour blindness too."""

_OF_KIND = {
    "matmul": "orange",
    "convolution": "red",
    "attention": "olive",
    "normalization": "green",
    "reduction": "violet",
    "pooling": "violet",
    "pointwise": "blue",
    "view": "grey",
    "copy": "sky",
    "creation": "sky",
    "random": "pink",
    "collective": "pink",
    "triton": "pink",
    "control": "ink",
    "symbol": "grey",
    "input": "ink",
    "output": "ink",
    "attribute": "ink",
    "mixed": "ink",
}
_CYCLE = ("blue", "orange", "green", "pink", "sky", "violet", "red", "olive")
_NONE = "grey"
_LEGEND_HEIGHT = 34.0
_CHAR = 6.6

_ARROW = (
    '<defs><marker id="fx-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
    '<path class="fx-arrow" d="M0 0.8 8 4 0 7.2z"/></marker></defs>'
)
_STYLE = """
.fx{--fx-ground:#fcfbf9;--fx-panel:#fff;--fx-ink:#1b1d21;--fx-soft:#5a616c;--fx-line:#9aa1ab;--fx-mark:#b3400a;%s
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","Liberation Sans",Arial,sans-serif;background:var(--fx-ground)}
@media screen and (prefers-color-scheme:dark){.fx{--fx-ground:#131518;--fx-panel:#1d2126;--fx-ink:#e9eaec;--fx-soft:#a5adb9;--fx-line:#646d79;--fx-mark:#ff9466;%s}}
.fx-title{font-size:13px;font-weight:600;fill:var(--fx-ink)}
.fx-soft{font-size:11px;fill:var(--fx-soft)}
.fx-label{font-size:12.5px;font-weight:600;fill:var(--fx-ink)}
.fx-detail{font:10.5px ui-monospace,"SF Mono","Cascadia Code",Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--fx-soft)}
.fx-box rect{fill:var(--fx-panel);stroke:var(--fx-colour);stroke-width:1.2}
.fx-box .fx-tint{fill:var(--fx-colour);fill-opacity:.11;stroke:none}
.fx-box .fx-bar{fill:var(--fx-colour);stroke:none}
.fx-round rect{stroke-dasharray:4 3}
.fx-marked rect{stroke:var(--fx-mark);stroke-width:2.6}
.fx-mark{font-size:11px;font-weight:600;fill:var(--fx-mark)}
.fx-edge{fill:none;stroke:var(--fx-line);stroke-width:1.3;stroke-opacity:.85}
.fx-edge:hover{stroke:var(--fx-ink);stroke-width:2.4}
.fx-result path{stroke:var(--fx-line);stroke-width:1.3}
.fx-result circle{fill:var(--fx-ground);stroke:var(--fx-line);stroke-width:1.3}
.fx-arrow{fill:var(--fx-line)}
.fx-box:hover rect{stroke-width:2.4}
"""


def graph_svg(
    layout: GraphLayout,
    *,
    colour_by: ColourBy = "kind",
    marks: Mapping[str, str] | None = None,
) -> str:
    """Draw a layout as SVG.

    Args:
        layout: of `lay_out`.
        colour_by: what boxes are coloured by: the class of their operations, the dtype of their results, or the fused group.
        marks: notes on nodes by name, or on user lines by `file:line`, such as the reason of a graph break; their boxes are
            framed.

    Raises:
        InputError: `colour_by` is none of these.
    """
    if colour_by not in _COLOUR_BY:
        raise InputError(f"colour_by={colour_by!r}: one of {', '.join(_COLOUR_BY)}")
    keys = {box.name: _key(box, colour_by) for box in layout.boxes}
    colours = _colours(keys, colour_by)
    width = max(layout.width, 42 + len(layout.title) * 8.4 + len(_said(layout)) * _CHAR)
    legend = _legend(colours, width)
    height = layout.height + 2 * _LEGEND_HEIGHT + legend[1]
    inner = [
        *(_edge(edge) for edge in layout.edges),
        *(_box(box, colours[keys[box.name]], _notes(box, marks or {})) for box in layout.boxes),
    ]
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="fx" role="img" {size} aria-label="{_attribute(layout.title)}">',
            f"<style>{_style()}</style>",
            _ARROW,
            '<rect width="100%" height="100%" style="fill:var(--fx-ground)"/>',
            _heading(layout),
            f'<g transform="translate({(width - layout.width) / 2:.1f} {_LEGEND_HEIGHT:.0f})">',
            *inner,
            "</g>",
            f'<g transform="translate(16 {layout.height + _LEGEND_HEIGHT:.0f})">{legend[0]}</g>',
            "</svg>",
        ]
    )


def _style() -> str:
    light, dark = (
        "".join(f"--fx-{name}:{shades[ground]};" for name, shades in _COLOURS.items()) for ground in (0, 1)
    )
    return _STYLE % (light, dark)


def _heading(layout: GraphLayout) -> str:
    return (
        f'<text x="16" y="24"><tspan class="fx-title">{_text(layout.title)}</tspan>'
        f'<tspan class="fx-soft" dx="10">{_text(_said(layout))}</tspan></text>'
    )


def _said(layout: GraphLayout) -> str:
    operations = (
        "operation by operation" if layout.collapsed_by == "none" else f"collapsed by {layout.collapsed_by}"
    )
    returned = sum(box.num_results for box in layout.boxes)
    more = f"; {returned} more results at ○" if returned else ""
    return f"{layout.num_nodes} nodes in {len(layout.boxes)} boxes, {operations}{more}"


def _key(box: LayoutBox, colour_by: ColourBy) -> str:
    if colour_by == "kind":
        return box.kind
    return (short_dtype(box.dtype) if colour_by == "dtype" else box.group) or "–"


def _colours(keys: Mapping[str, str], colour_by: ColourBy) -> dict[str, str]:
    """A colour for each key that occurs, in the order of the legend."""
    met = list(dict.fromkeys(keys.values()))
    if colour_by == "kind":
        ordered = sorted(met, key=lambda kind: KINDS.index(kind) if kind in KINDS else len(KINDS))
        return {kind: _OF_KIND.get(kind, _NONE) for kind in ordered}
    named = (
        sorted(key for key in met if key != "–")
        if colour_by == "dtype"
        else [key for key in met if key != "–"]
    )
    found = {key: _CYCLE[place % len(_CYCLE)] for place, key in enumerate(named)}
    return found | ({"–": _NONE} if "–" in met else {})


def _legend(colours: Mapping[str, str], width: float) -> tuple[str, float]:
    """The legend, and how much taller than a line it is."""
    parts, x, y = list[str](), 0.0, 14.0
    for key, colour in colours.items():
        length = 26 + len(key) * _CHAR
        if x and x + length > width - 32:
            x, y = 0.0, y + 20
        parts.append(
            f'<rect x="{x:.0f}" y="{y - 9:.0f}" width="12" height="12" rx="3" style="fill:var(--fx-{colour})"/>'
            f'<text class="fx-soft" x="{x + 17:.0f}" y="{y + 1:.0f}">{_text(key)}</text>'
        )
        x += length + 8
    return "".join(parts), y - 14


def _box(box: LayoutBox, colour: str, notes: Sequence[str]) -> str:
    rounded = box.kind in {"input", "output", "attribute"}
    classes = " ".join(["fx-box", *(["fx-round"] if rounded else []), *(["fx-marked"] if notes else [])])
    place = f'x="{box.x:.1f}" y="{box.y:.1f}"'
    size = f'width="{box.width:.1f}" height="{box.height:.1f}"'
    radius = box.height / 2 if rounded else 6
    middle = box.x + box.width / 2
    first = box.y + (17 if box.detail else box.height / 2 + 4.5)
    lines = [
        f'<g class="{classes}" style="--fx-colour:var(--fx-{colour})" data-box="{_attribute(box.name)}">',
        f"<title>{_text(_title(box, notes))}</title>",
        f'<rect {place} {size} rx="{radius:.0f}"/><rect class="fx-tint" {place} {size} rx="{radius:.0f}"/>',
    ]
    owner = f'<tspan class="fx-detail" dx="6">{_text(box.owner)}</tspan>' if box.owner else ""
    if not rounded:
        lines.append(
            f'<rect class="fx-bar" x="{box.x:.1f}" y="{box.y + 6:.1f}" width="3.5" height="{box.height - 12:.1f}"/>'
        )
    lines.append(
        f'<text class="fx-label" x="{middle:.1f}" y="{first:.1f}" text-anchor="middle">{_text(box.label)}{owner}</text>'
    )
    if box.detail:
        lines.append(
            f'<text class="fx-detail" x="{middle:.1f}" y="{box.y + 32:.1f}" text-anchor="middle">{_text(box.detail)}</text>'
        )
    if box.num_results:
        text = f"{counted(box.num_results, 'result')} of the graph"
        side, level = box.x + box.width, box.y + box.height / 2
        lines.append(
            f'<g class="fx-result"><title>{text}</title><path d="M{side:.1f} {level:.1f}h5"/>'
            f'<circle cx="{side + 8:.1f}" cy="{level:.1f}" r="3"/></g>'
        )
    if notes:
        lines.append(f'<text class="fx-mark" x="{box.x + box.width - 14:.1f}" y="{box.y + 14:.1f}">!</text>')
    return "".join([*lines, "</g>"])


def _title(box: LayoutBox, notes: Sequence[str]) -> str:
    size = f"hands on {format_bytes(box.num_bytes)}" if box.num_bytes is not None else ""
    parts = [*notes, f"module {box.module}" if box.module else "", size, box.tooltip]
    return "\n".join(part for part in parts if part)


def _notes(box: LayoutBox, marks: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(marks[key] for key in (*box.nodes, *box.places) if key in marks))


def _edge(edge: LayoutEdge) -> str:
    """A smooth line: upright at every point, so that it passes straight between the boxes of a row."""
    (x, y), *rest = edge.points
    path = [f"M{x:g} {y:g}"]
    for to_x, to_y in rest:
        if to_x == x:
            path.append(f"V{to_y:g}")
        else:
            half = (y + to_y) / 2
            path.append(f"C{x:g} {half:g} {to_x:g} {half:g} {to_x:g} {to_y:g}")
        x, y = to_x, to_y
    size = f" · {format_bytes(edge.num_bytes)}" if edge.num_bytes is not None else ""
    names = ", ".join(edge.nodes[:8]) + (f" and {len(edge.nodes) - 8} more" if len(edge.nodes) > 8 else "")
    return f'<path class="fx-edge" marker-end="url(#fx-arrow)" d="{"".join(path)}"><title>{_text(names + size)}</title></path>'


def _text(text: str) -> str:
    return escape(_printable(text), quote=False)


def _attribute(text: str) -> str:
    return escape(_printable(text), quote=True)


def _printable(text: str) -> str:
    """Without what XML does not allow."""
    return "".join(
        letter if letter in "\n\t" or letter.isprintable() or letter == " " else "�" for letter in text
    )
