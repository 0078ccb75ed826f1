"""All readings of a flow graph, as one report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyrometer.dataflow.analyses.constant_tails import constant_tails
from pyrometer.dataflow.analyses.late_linear import late_linear
from pyrometer.dataflow.analyses.lookups import lookups
from pyrometer.dataflow.analyses.mostly_zero import mostly_zero
from pyrometer.dataflow.analyses.partly_used import partly_used
from pyrometer.dataflow.analyses.product_order import product_orders
from pyrometer.dataflow.analyses.repeated import repeated
from pyrometer.dataflow.analyses.subnormal import subnormal
from pyrometer.dataflow.analyses.unread import unread
from pyrometer.dataflow.graph import FlowGraph
from pyrometer.dataflow.report import DataflowReport
from pyrometer.workload.failure import described

Fact = TypeVar("Fact")

INCOMPLETE = "not all values could be followed, so that nothing is said of what nobody reads"


def build_report(graph: FlowGraph) -> DataflowReport:
    """Ask every analysis."""
    notes = [*graph.notes, *([] if graph.complete else [INCOMPLETE])]

    def asked(analysis: Callable[[FlowGraph], list[Fact]]) -> list[Fact]:
        try:
            return analysis(graph)
        except Exception as error:  # noqa: BLE001 - operators of a kind that was not thought of leave the rest of the check
            notes.append(f"{analysis.__name__.replace('_', ' ')} could not be read: {described(error)}")
            return []

    return DataflowReport(
        num_steps=graph.num_steps,
        calls_per_step=len(graph.calls) / max(graph.num_steps, 1),
        step_operator_s=min(graph.step_seconds, default=0.0),
        unread=asked(unread) if graph.complete else [],
        partly_used=asked(partly_used),
        mostly_zero=asked(mostly_zero),
        constant_tails=asked(constant_tails),
        lookups=asked(lookups),
        repeated=asked(repeated),
        late_linear=asked(late_linear),
        product_orders=asked(product_orders),
        subnormal=asked(subnormal),
        notes=notes,
    )
