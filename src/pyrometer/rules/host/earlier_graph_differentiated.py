"""Each backward pass walks the graphs of earlier rounds again.

## What it does
Finds backward passes that keep their graph (`retain_graph=True`) because a value is carried from one round to the next with it: the
state of a recurrent network, a memory, a running average. It speaks where these passes take a good part of the step.

## Why it costs
The graph that a round makes hangs on that of the round before, and that on the one before it: the tenth pass walks ten graphs, and all of
them stay in memory. Text in ten windows of 20 characters took 1.8 times as long as with a detached state.

## Example
```python
state = torch.zeros(1, 8)
for x, y in windows:
    state = torch.tanh(layer(x) + state)
    loss = (state - y).square().mean()
    loss.backward(retain_graph=True)
```

## Use instead
```python
state = torch.zeros(1, 8)
for x, y in windows:
    state = torch.tanh(layer(x) + state)
    loss = (state - y).square().mean()
    loss.backward()
    state = state.detach()
```

## Fix safety
No fix is applied: gradients no longer reach earlier rounds. They did so several times over, since each pass adds those of all earlier
rounds again; where they shall reach back some rounds, add up the losses of these and go backward once.

## References
- PyTorch, torch.Tensor.backward, `retain_graph`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
- Williams and Peng, "An Efficient Gradient-Based Algorithm for On-Line Training of Recurrent Network Trajectories" (1990)
"""

from __future__ import annotations

from pyrometer.advice import Gain
from pyrometer.quantity import format_percent
from pyrometer.rules.host.patterns.carried_graphs import carried_graphs
from pyrometer.rules.host.patterns.spending import costly_lines, spread
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR135",
    severity="warning",
    fix_class="semantic",
    limits=(Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),),
)

LEFT_AT_BEST = 0.1
"""Of the passes' time: one graph of about twenty."""

LEFT_AT_WORST = 0.75
"""Of the passes' time: the second pass walks two graphs, where two came before."""


@RULE.in_evidence("host", "source")
def explain(case: Case) -> Findings:
    """Lines with such a pass, by their share of the sampled steps."""
    assert case.host is not None
    for module, line, link, share in costly_lines(case, case.limit(RULE, "min_share"), "backward"):
        graph = next((graph for graph in carried_graphs(module) if graph.holds(line.where.line)), None)
        if graph is None:
            continue
        certain = spread(case.host, share)
        yield RULE.finding(
            message=f"each backward pass walks the graphs of earlier rounds again, since `{graph.names[0]}` (line {graph.carried_at}) carries them from one round to the next; it takes "
            f"{format_percent(share)} of the step",
            where=place_of(case, line.where),
            evidence={"share": share, "carried": list(graph.names)},
            links=[link],
            cost=case.cost_of(share, "samples of the host's time in the backward pass"),
            gain=Gain(
                ratio_low=1 - (1 - LEFT_AT_BEST) * certain.most,
                ratio_high=1 - (1 - LEFT_AT_WORST) * certain.least,
                method="removal: all but the last graph of each pass; at worst one of two",
            ),
            confidence="high",
            advice=f"Let the graph go after the pass: `{graph.names[0]} = {graph.names[0]}.detach()`, each of a tuple, and leave out `retain_graph=True`. Where "
            "gradients shall reach back several rounds, add up their losses and go backward once.",
        )
