"""All readings of a flow graph, as one report."""

from __future__ import annotations

from pyrometer.dataflow.analyses.constant_tails import constant_tails
from pyrometer.dataflow.analyses.late_linear import late_linear
from pyrometer.dataflow.analyses.lookups import lookups
from pyrometer.dataflow.analyses.mostly_zero import mostly_zero
from pyrometer.dataflow.analyses.partly_used import partly_used
from pyrometer.dataflow.analyses.repeated import repeated
from pyrometer.dataflow.analyses.unread import unread
from pyrometer.dataflow.graph import FlowGraph
from pyrometer.dataflow.report import DataflowReport

INCOMPLETE = "not all values could be followed, so that nothing is said of what nobody reads"


def build_report(graph: FlowGraph) -> DataflowReport:
    """Ask every analysis."""
    return DataflowReport(
        num_steps=graph.num_steps,
        calls_per_step=len(graph.calls) / max(graph.num_steps, 1),
        step_operator_s=min(graph.step_seconds, default=0.0),
        unread=unread(graph) if graph.complete else [],
        partly_used=partly_used(graph),
        mostly_zero=mostly_zero(graph),
        constant_tails=constant_tails(graph),
        lookups=lookups(graph),
        repeated=repeated(graph),
        late_linear=late_linear(graph),
        notes=[*graph.notes, *([] if graph.complete else [INCOMPLETE])],
    )
