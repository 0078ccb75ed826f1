"""A finding as a record: line, operator, container, graph and fix."""

from __future__ import annotations

from itertools import groupby

from pyrometer.memory.holders.record import Holder
from pyrometer.memory.holders.roots import shown_file
from pyrometer.memory.leaks.births import MadeAt
from pyrometer.memory.leaks.findings import Finding
from pyrometer.memory.profile import LeakSite
from pyrometer.workload.whereabouts.lines import Site, site_of

CYCLE = "reference cycle"
OWN_GRAD_FIX = "gradients = torch.autograd.grad(loss, parameters, create_graph=True)"


def leak_site(finding: Finding) -> LeakSite:
    """The record of a finding, at the line that made what the holder keeps itself."""
    holder, graph = finding.holder, finding.tensor_graph
    site = finding.growths[0].site
    line = line_of(finding)
    return LeakSite(
        file=shown_file(line.file) if line else None,
        line=line.line if line else None,
        source=line.source if line else None,
        operator=site.operator if isinstance(site, MadeAt) else None,
        holder=_words(finding),
        root=_root(finding),
        holder_place=f"{holder.file}:{holder.line}" if holder and holder.file and holder.line else None,
        container=_container(holder) if holder else None,
        chain=shortened(holder.chain) if holder else [],
        bytes_per_step=finding.bytes_per_step,
        graph_bytes=finding.graph_bytes,
        graph_state=_graph_state(finding),
        graph_nodes=graph.nodes if graph else 0,
        nodes_per_step=finding.nodes_per_step,
        period=finding.period,
        kind=finding.kind,
        operators=len(finding.growths),
        fix=finding.fix or (OWN_GRAD_FIX if finding.own_grad else None),
    )


def line_of(finding: Finding) -> Site | None:
    """The first line that is known of those that made what the finding keeps."""
    for growth in finding.growths:
        if isinstance(growth.site, MadeAt) and growth.site.point is not None:
            return site_of(growth.site.point)
    return None


def _words(finding: Finding) -> str | None:
    """Who holds it; for what only an autograd graph holds that nobody has, the way through that graph."""
    holder = finding.holder
    if holder is None:
        return None
    if holder.path or not holder.held_by_graph:
        is_said = holder.kept_by is None or holder.kept_by in holder.path
        return (holder.path if is_said else f"{holder.path}, kept by {holder.kept_by}") or None
    if finding.own_grad:
        return "a .grad whose graph leads back to its tensor, a cycle that backward(create_graph=True) makes"
    return f"an autograd graph that only holds itself ({' → '.join(shortened(holder.chain[1:]))})"


def _root(finding: Finding) -> str | None:
    """What kind of thing keeps it; a graph that nobody has leads back to itself, which is a cycle."""
    holder = finding.holder
    if holder is None:
        return None
    return CYCLE if holder.held_by_graph and not holder.path else holder.root


def shortened(chain: list[str]) -> list[str]:
    """A chain whose way through a long autograd graph is told by its length.

    >>> shortened(["hidden", "Tensor: grad_fn", "AddBackward0: next", "MulBackward0: next", "AddBackward0: saved other"])
    ['hidden', 'Tensor: grad_fn', '2 nodes of the graph', 'AddBackward0: saved other']
    """
    through = [": next" in hop for hop in chain]
    short = []
    for is_node, hops in groupby(zip(through, chain, strict=True), key=lambda pair: pair[0]):
        names = [hop for _, hop in hops]
        short += [f"{len(names)} nodes of the graph"] if is_node and len(names) > 1 else names
    return short


def _graph_state(finding: Finding) -> str:
    if finding.graph_rate:
        return "alive"
    return finding.tensor_graph.state if finding.tensor_graph else "none"


def _container(holder: Holder) -> str | None:
    if holder.container is None or holder.length is None:
        return holder.container
    limit = f" of at most {holder.maxlen:,}" if holder.maxlen is not None else ""
    name = "lru_cache" if holder.root == "lru_cache" else holder.container
    return f"{name} of {holder.length:,}{limit}"
