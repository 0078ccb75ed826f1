"""A graph as its block holds it: columns, texts as rows of one list, and every level that the reader can open."""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc


class NodeColumns(Record, frozen=True, kw_only=True):
    """The nodes in the order of the graph."""

    name: list[str]
    target: Annotated[list[int], doc("row of texts; of what computes nothing, what it is: input, output")]
    type: Annotated[list[int], doc("row of texts: f32[8, 512]")]
    num_bytes: Annotated[list[int], doc("of the result; -1 where unknown")]
    module: Annotated[list[int], doc("row of texts")]
    place: Annotated[list[int], doc("row of places; -1 where unknown")]
    group: Annotated[list[int], doc("row of texts: the fused group")]
    role: Annotated[list[int], doc("row of texts: what an input is")]
    inputs: Annotated[list[list[int]], doc("numbers of the nodes that it reads")]


class PlaceColumns(Record, frozen=True, kw_only=True):
    """The user's lines."""

    file: Annotated[list[int], doc("row of texts")] = []
    line: list[int] = []
    source: Annotated[list[int], doc("row of texts")] = []


class BoxColumns(Record, frozen=True, kw_only=True):
    """Boxes: what is written in them, and what they can be coloured by. Lengths are CSS pixels."""

    label: Annotated[list[int], doc("row of texts")]
    detail: Annotated[list[int], doc("row of texts")]
    owner: Annotated[list[int], doc("row of texts: module whose parameters it reads")]
    kind: Annotated[list[int], doc("row of texts: class of its operations")]
    dtype: Annotated[list[int], doc("row of texts: of its result; empty if mixed or none")]
    group: Annotated[list[int], doc("row of texts: the fused group; empty if none or several")]
    module: Annotated[list[int], doc("row of texts")]
    num_bytes: Annotated[list[int], doc("of the results that leave it; -1 where unknown")]
    width: list[float]
    height: list[float]


class Unit(Record, frozen=True, kw_only=True):
    """Operations with their own parameters: the finest boxes there are."""

    boxes: BoxColumns
    nodes: Annotated[list[list[int]], doc("numbers of the nodes in each")]
    source: Annotated[list[int], doc("of each line between two, by number")]
    target: list[int]
    num_bytes: Annotated[list[int], doc("that pass along it; -1 where unknown")]


class Level(Record, frozen=True, kw_only=True):
    """A drawing whose coordinates are known."""

    title: str
    collapsed_by: Annotated[str, doc("none, module, line or range")]
    width: float
    height: float
    boxes: BoxColumns
    x: list[float]
    y: list[float]
    units: Annotated[
        list[list[int]], doc("units in each box; none for what stands for the rest of the graph")
    ]
    outside: Annotated[
        list[list[int]],
        doc("of each box that stands for the rest of the graph: the units there; none for all others"),
    ]
    opens: Annotated[
        list[int], doc("the level that shows its inside; -1: small, arranged where it is opened")
    ]
    source: list[int]
    target: list[int]
    num_bytes: list[int]
    points: Annotated[list[list[float]], doc("x and y in turn")]


class PortSizes(Record, frozen=True, kw_only=True):
    """What stands at the edge of an opened part for the rest of the graph; lengths are CSS pixels."""

    most: Annotated[int, doc("on either side; more share the last one")]
    label_length: Annotated[int, doc("characters; longer labels are cut")]
    height: float
    padding: float
    label_char: Annotated[float, doc("width of a character of the label")]
    owner_char: Annotated[float, doc("width of a character of the module whose parameters it reads")]


class GraphMark(Record, frozen=True, kw_only=True):
    """A break, a recompilation or a finding at a line that operations come from."""

    kind: Annotated[str, doc("break, recompile or finding")]
    text: str
    units: list[int]
    code: Annotated[str, doc("of a finding; empty otherwise")] = ""


class GraphContent(Record, frozen=True, kw_only=True):
    """One graph: a block `graph/<n>`."""

    title: str
    texts: Annotated[list[str], doc("the first is empty")]
    nodes: NodeColumns
    places: PlaceColumns
    units: Unit
    levels: Annotated[list[Level], doc("the first is what is seen first")]
    flat: Annotated[
        int,
        doc("the level of all operations; -1: small enough to be arranged there, -2: too large to be drawn"),
    ] = -1
    marks: list[GraphMark] = []
    ports: PortSizes


class GraphEntry(Record, frozen=True, kw_only=True):
    """A graph that can be opened."""

    block: str
    compile_id: str
    stage: str
    stage_title: str
    function: str
    place: Annotated[str, doc("file:line of the function, short")]
    num_ops: int
    num_boxes: Annotated[int, doc("units of it")]
    num_marks: int


class GraphIndex(Record, frozen=True, kw_only=True):
    """All graphs of a page: the block `graphs`."""

    graphs: list[GraphEntry]
    first: Annotated[int, doc("the one to open first")] = 0
    same: Annotated[list[str], doc("stages that are left out because they equal another one")] = []
    left_out: Annotated[int, doc("graphs that the page has no room for")] = 0
