"""Operators of a trace: their share of the time, their shapes, and the line of the program that calls them."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from pyrometer.advice import Cost
from pyrometer.place import Place, place_text
from pyrometer.rules.joining import Located, function_at
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Module
from pyrometer.source.index import last_name
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.host.profile import LeafKind
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.reporting.totals import LineTotal, OpTotal, RoofPoint
    from pyrometer.workload.program.record import ModuleFact

MATRIX_PRODUCTS = frozenset(
    ["aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::matmul", "aten::linear"]
)
CONVOLUTIONS = frozenset(
    ["aten::convolution", "aten::_convolution", "aten::mkldnn_convolution", "aten::cudnn_convolution",
     "aten::convolution_backward",
        "aten::cudnn_convolution_backward",
        "aten::mkldnn_convolution_backward",
        "aten::cudnn_convolution_transpose", "aten::cudnn_convolution_relu", "aten::conv1d", "aten::conv2d", "aten::conv3d",
     "aten::_slow_conv2d_forward", "aten::thnn_conv2d", "aten::miopen_convolution", "aten::conv_transpose2d"]
)  # fmt: skip
SINGLE = frozenset(["float"])
POINTWISE = frozenset(
    f"aten::{name}{ending}"
    for name in words("""
        add sub rsub mul div pow neg abs exp expm1 log log1p sqrt rsqrt reciprocal sin cos tanh sigmoid relu gelu silu
        leaky_relu elu hardswish hardtanh softplus erf clamp clamp_min clamp_max where maximum minimum lerp addcmul addcdiv
        square sign floor ceil round logical_and logical_or logical_not eq ne lt le gt ge masked_fill threshold mish
        """)
    for ending in ("", "_")
)
"""Operators that do a few operations on each element, so that moving it takes most of their time."""


OF_TORCH: frozenset[LeafKind] = frozenset({"operator", "backward"})
"""Kinds of leaves of the host's profile in which operators run."""


def on_device(trace: RankReport) -> bool:
    """Whether a device did work; shares are then of the span that its kernels take."""
    return trace.num_kernels > 0


def own_share(trace: RankReport, op: OpTotal) -> float:
    """What an operator itself takes of the span, on the device if there is one, else on the host."""
    return op.device_share if on_device(trace) else op.host_share


def total_share(trace: RankReport, names: Collection[str]) -> float:
    """What an operator takes of the span with what it calls.

    The names are those of its layers (`batch_norm` calls `native_batch_norm`): the outermost that the table lists counts.
    """
    device = on_device(trace)
    spent = [op.device_total_ns if device else op.host_total_ns for op in trace.top_ops if op.name in names]
    return min(1.0, max(spent, default=0) / max(trace.span_ns, 1))


def self_share(trace: RankReport, names: Collection[str]) -> float:
    """What operators themselves take of the span, apart from what they call."""
    return min(1.0, sum(own_share(trace, op) for op in trace.top_ops if op.name in names))


def index_of(trace: RankReport, names: Collection[str]) -> str | None:
    """The pointer to the first of these operators in the stored document."""
    found = [f"/trace/top_ops/{i}" for i, op in enumerate(trace.top_ops) if op.name in names]
    return found[0] if found else None


def calls_per_step(case: Case, calls: int) -> float:
    """Calls in the trace over its steps."""
    return calls / case.num_traced_steps


def cost_of(case: Case, share: float, method: str) -> Cost:
    """A share of the traced span as a cost; seconds are that share of the measured step."""
    how = f"{method}; seconds are this share of a step as measured without the profiler"
    return case.cost_of(share, how)


def roof_points(trace: RankReport, names: Collection[str]) -> Iterator[tuple[int, RoofPoint]]:
    """The calls of operators by shape, with their row; the most time first."""
    return ((i, point) for i, point in enumerate(trace.roofline) if point.op in names)


def span_share(trace: RankReport, point: RoofPoint) -> float:
    """A row of the roofline over the span."""
    return min(1.0, point.time_ns / max(trace.span_ns, 1))


def shapes_of(point: RoofPoint) -> list[list[int]]:
    """The shapes of the tensors of a call, scalars and lists of tensors left out.

    >>> shapes_of(None)
    []
    """
    return [
        shape
        for shape in _list(getattr(point, "shapes", None))
        if shape and all(isinstance(n, int) for n in shape)
    ]


def dtypes_of(point: RoofPoint) -> set[str]:
    """The types of its tensors, as torch spells them, such as c10::Half."""
    return {
        name
        for name in _list(point.dtypes)
        if isinstance(name, str) and name not in {"", "Scalar", "TensorList"}
    }


def _list(text: str | None) -> list[Any]:
    try:
        document = json.loads(text or "[]")
    except ValueError:
        return []
    return document if isinstance(document, list) else []


def callers_of(trace: RankReport, names: Collection[str]) -> Iterator[tuple[LineTotal, int]]:
    """Functions of the program that these operators take time in, with that time; the most first."""
    device = on_device(trace)
    found = [
        (line, sum(op.device_ns if device else op.host_ns for op in line.top_ops if op.name in names))
        for line in trace.top_lines
    ]
    return iter(sorted(((line, ns) for line, ns in found if ns), key=lambda one: -one[1]))


def place_of_operator(case: Case, op: str) -> Place:
    """Where an operator is called most: the exact line where the function calls one of that name, else its first."""
    if case.trace is None:
        return Place(op=op)
    line, _ = next(callers_of(case.trace, {op}), (None, 0))
    if line is None:
        return Place(op=op)
    there = [
        _line_within(case, point, op)
        for point in case.trace.roofline
        if point.op == op and (point.file, point.line) == (line.file, line.line)
    ]
    found = there[0] if len(set(there)) == 1 else _line_within(case, line, op)
    return place_of(case, line, line=found, op=op)


def place_of_point(case: Case, point: RoofPoint) -> Place:
    """Where an operator is called with these shapes; where the trace does not say, where it is called most."""
    op = point.op or ""
    if point.file is None and point.module is None:
        return place_of_operator(case, op)
    return place_of(case, point, line=_line_within(case, point, op), op=op)


def module_words(case: Case, place: Place) -> str:
    """The module in which an operator runs, what it is, and where it is called, within a sentence; empty where it is not known."""
    if not place.module:
        return ""
    facts = case.program.modules if case.program is not None else []
    fact = next((fact for fact in facts if fact.path == place.module), None)
    called = f", called at {place_text(place.file, place.line)}" if place.file is not None else ""
    return f" in {place.module}{_kind(fact)}{called}"


def _kind(fact: ModuleFact | None) -> str:
    """The class of a module, and its channels or features."""
    if fact is None:
        return ""
    sizes = [
        fact.settings.get(f"{side}_{unit}") for unit in ("channels", "features") for side in ("in", "out")
    ]
    known = [str(size) for size in sizes if size is not None]
    return f", {fact.type_name.rpartition('.')[2]} {'→'.join(known)}".rstrip()


def _line_within(case: Case, where: Located, op: str) -> int | None:
    """The line of a function that calls an operator.

    It is the only one with a call of that name, else the one that calls the module it ran in, else the one sampled most there.
    """
    name = op.rpartition("::")[2].strip("_")
    exact = _calling_line(case, where, {name, f"{name}_"})
    parts = (getattr(where, "module", None) or "").split(".")
    for part in reversed(parts):  # `backbone` of camera.backbone.0, which a sequence of modules calls
        exact = exact or _calling_line(case, where, {part})
    function = function_at(where, case.modules)
    if exact is not None or function is None or case.host is None:
        return exact
    sampled = [
        (sum(leaf.seconds_per_step for leaf in line.leaves if leaf.kind in OF_TORCH), line.where.line)
        for line in case.host.lines
        if function_at(line.where, case.modules) == function
    ]
    return max(sampled, key=lambda found: found[0], default=(0.0, None))[1]


def _calling_line(case: Case, where: Located, names: Collection[str]) -> int | None:
    """The line of the only call of one of these names in a function."""
    function = function_at(where, case.modules)
    if function is None:
        return None
    lines = [
        node.lineno
        for node in ast.walk(function[1])
        if isinstance(node, ast.Call) and last_name(node.func) in names
    ]
    return lines[0] if len(set(lines)) == 1 else None


def same_function(case: Case, line: LineTotal, module: Module, number: int) -> bool:
    """Whether a line of a file belongs to the function that a trace names."""
    function = function_at(line, case.modules)
    if function is None or function[0] is not module:
        return False
    return function[1].lineno <= number <= (function[1].end_lineno or function[1].lineno)
