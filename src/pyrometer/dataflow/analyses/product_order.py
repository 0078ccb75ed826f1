"""Products of three matrices in the order that takes more: (a b) c, where a (b c) is the same.

With a of n x k, b of k x m and c of m x p the one takes n m (k + p) multiplications and the other k p (n + m); for a product from the
other side it is the same with the letters of that side. Attention without a softmax is such a product, with n = m of thousands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from pyrometer.dataflow.analyses.late_linear import PASSING
from pyrometer.dataflow.graph import Call, FlowGraph, Ref
from pyrometer.dataflow.report import ProductOrder
from pyrometer.quantity import Ratio

MIN_SHARE = 0.02
"""Of the operators' time of a step: less is not told."""

MOST_LEFT = 0.5
"""Of the multiplications, in the other order: above that rounding and memory decide."""

PRODUCTS = {"aten::mm": (0, 1), "aten::bmm": (0, 1), "aten::addmm": (1, 2), "aten::baddbmm": (1, 2)}
"""The positions of both operands."""

PLAIN = ("aten::mm", "aten::bmm")
"""Products that add nothing, so that another may be made of theirs first."""

SCALING = frozenset({"aten::mul", "aten::div", "aten::neg"})
"""With a number they commute with products."""

SUMS = frozenset({"aten::sum", "aten::mean"})
"""Products with ones."""


def product_orders(graph: FlowGraph) -> list[ProductOrder]:
    """Such products by line, the dearest first."""
    spent: dict[tuple[str | None, int | None], list[tuple[Call, list[Call], Ratio]]] = defaultdict(list)
    for call in graph.calls:
        if call.name not in PLAIN or call.backward or call.optimizer or not call.writes:
            continue
        readers = list(_readers(graph, call.writes[0]))
        left = _left(graph, call, readers)
        if left is not None and left <= MOST_LEFT:
            spent[call.where.file, call.where.line].append((call, readers, left))
    facts = [_fact(graph, each) for each in spent.values()]
    return sorted((fact for fact in facts if fact.share >= MIN_SHARE), key=lambda fact: -fact.share)


def _readers(graph: FlowGraph, number: int) -> Iterator[Call]:
    """What reads a value in the forward pass, through views, copies and scaling, with these."""
    for reader in graph.readers[number]:
        call = graph.calls[reader]
        if call.backward:
            continue
        yield call
        if _passes(graph, call):
            yield from _readers(graph, call.writes[0])


def _passes(graph: FlowGraph, call: Call) -> bool:
    """Whether a call hands the product on with all its elements."""
    if not call.writes or len(call.reads) != 1 or call.mutates:
        return False
    whole = graph.values[call.writes[0]].numel == graph.values[call.reads[0]].numel
    return whole and (graph.is_view(call) or call.name in PASSING or call.name in SCALING)


def _left(graph: FlowGraph, product: Call, readers: Sequence[Call]) -> Ratio | None:
    """What is left of the multiplications in the other order; `None` where something else needs the product itself."""
    held = [product.writes[0], *(call.writes[0] for call in readers if _passes(graph, call))]
    if any(graph.values[number].is_escaped or graph.values[number].is_alive for number in held):
        return None
    second = [call for call in readers if call.name in PRODUCTS]
    needed = [
        call for call in readers if call not in second and not _passes(graph, call) and call.name not in SUMS
    ]
    inner = _operand(graph, product, 0)
    if not second or needed or inner is None:
        return None
    n, k = inner[-2:]
    m = graph.values[product.writes[0]].shape[-1]
    before = after = 0
    for call in second:
        p = _other_side(graph, call, set(held))
        if p is None:
            return None
        before, after = before + n * m * (k + p), after + k * p * (n + m)
    return after / before


def _operand(graph: FlowGraph, call: Call, which: int) -> tuple[int, ...] | None:
    argument = call.argument(PRODUCTS[call.name][which])
    return graph.values[argument.value].shape if isinstance(argument, Ref) else None


def _other_side(graph: FlowGraph, call: Call, held: set[int]) -> int | None:
    """The size that a second product brings with it; `None` where both or neither of its operands are the first."""
    left, right = (call.argument(place) for place in PRODUCTS[call.name])
    first = [isinstance(each, Ref) and each.value in held for each in (left, right)]
    if sum(first) != 1:
        return None
    return graph.values[call.writes[0]].shape[-1 if first[0] else -2]


def _fact(graph: FlowGraph, spent: list[tuple[Call, list[Call], Ratio]]) -> ProductOrder:
    seconds = 0.0
    for product, readers, left in spent:
        calls = [product, *readers]
        backward = [
            graph.calls[number] for call in calls for number in graph.backward_of.get(call.number, ())
        ]
        seconds += (1 - left) * sum(call.seconds for call in (*calls, *backward))
    product, readers, left = min(spent, key=lambda each: each[2])
    second = next(call for call in readers if call.name in PRODUCTS)
    return ProductOrder(
        where=product.where,
        second=second.where,
        shape=list(graph.values[product.writes[0]].shape),
        left=left,
        seconds_per_step=seconds / max(graph.num_steps, 1),
        share=graph.share(seconds),
    )
