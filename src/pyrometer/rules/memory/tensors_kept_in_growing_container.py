"""Tensors are put into a container that is never emptied.

## What it does
Finds tensors that hot code appends to an attribute or a global that begins as an empty container without a bound, where
nothing in the file takes entries out again or replaces it. From a leak report it finds containers that grew by tensors
without a graph.

## Why it costs
Each entry holds its whole storage, also where it is a view of a larger tensor, and the memory is never given back while
the program runs. On two CPU cores, a dictionary with one output of a linear layer of 64 features and a batch of 8 per step
grew by 2 KiB with every step.

## Example
```python
import torch


class Controller:
    def __init__(self):
        self.history = []

    def run(self, model, sensors):
        while True:
            plan = model(sensors.read()).detach()
            self.history.append(plan)
```

## Use instead
```python
from collections import deque

import torch


class Controller:
    def __init__(self):
        self.history = deque(maxlen=100)

    def run(self, model, sensors):
        while True:
            plan = model(sensors.read()).detach()
            self.history.append(plan)
```

## Fix safety
Semantic: old entries are not there any more for whoever reads them.

## References
- PyTorch FAQ, "My model reports cuda runtime error(2): out of memory": https://pytorch.org/docs/stable/notes/faq.html
- Python documentation, collections.deque: https://docs.python.org/3/library/collections.html#collections.deque
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Matches, match
from pyrometer.rules.memory.patterns.accumulating import (
    Addition,
    additions,
    begins_empty,
    is_collected,
    is_trimmed,
)
from pyrometer.rules.memory.patterns.leaking import leak_finding, rate, sites
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.value import Kind

RULE = declare(code="PYR203", severity="warning", fix_class="semantic")


@RULE.in_source
def find(module: Module) -> Matches:
    """Containers that outlive their function and only grow."""
    if not module.imports_torch:
        return
    for addition in additions(module):
        if addition.how != "append" or (
            addition.is_local and addition.loop is not None and not _is_endless(module, addition)
        ):
            continue
        tensors = [
            part for part in addition.parts if module.value_of(part).kind in (Kind.TENSOR, Kind.TENSORS)
        ]
        graph = any(module.value_of(part).graph for part in tensors)
        if not tensors or graph or is_trimmed(module, addition) or not begins_empty(module, addition):
            continue
        if is_collected(module, addition):
            continue
        kept = ", ".join(f"`{module.source(part)}`" for part in tensors)
        container = module.source(addition.target)
        yield match(
            addition.node,
            f"{kept} is added to `{container}`{addition.hot.during}, and nothing takes it out again",
            advice=f"Give `{container}` a bound, such as deque(maxlen=...), or empty it when its entries have been used.",
            confidence="medium",
            hot=addition.hot.why,
        )


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """Containers that grew, of tensors without a graph."""
    for number, site in sites(case, "container"):
        yield leak_finding(
            RULE,
            case,
            number,
            site,
            message=f"{rate(site)} stay in {site.holder or 'a container'}, a {site.container} that nothing empties",
            advice=f"Give the {(site.container or 'container').split()[0]} a bound, or empty it when its entries have been used.",
        )


def _is_endless(module: Module, addition: Addition) -> bool:
    """Whether a local container grows in a loop without an end."""
    return (
        isinstance(addition.loop, ast.While)
        and bool(module.literal(addition.loop.test))
        and not any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(addition.loop))
        and not _is_joined_after(module, addition.target, addition.loop)
    )


def _is_joined_after(module: Module, container: ast.expr, loop: ast.While) -> bool:
    """Whether the function gives the container to a call after the loop: that ends by an exception then."""
    end, function = loop.end_lineno or loop.lineno, module.function_of(loop)
    return isinstance(container, ast.Name) and any(
        use.lineno > end and isinstance(module.parent(use), ast.Call) and module.function_of(use) is function
        for use in module.uses(container.id, container)
    )
