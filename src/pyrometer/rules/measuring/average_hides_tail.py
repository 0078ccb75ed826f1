"""Latencies are reduced to their mean.

## What it does
Finds a list of latencies of which only the mean is taken: no quantile, median, maximum or sorted order of it anywhere in the file.

## Why it costs
A mean hides both ends: a service that answers in 10 ms, but once in fifty times in 500 ms, has a mean of 20 ms that no request ever sees.
What users wait for, and what a deadline breaks on, is in the tail.

## Example
```python
import statistics

import torch


def summary(latencies: list[float]) -> str:
    return f"latency {statistics.mean(latencies)}"
```

## Use instead
```python
import statistics

import torch


def summary(latencies: list[float]) -> str:
    cuts = statistics.quantiles(latencies, n=100)
    return f"latency P50 {cuts[49]}, P99 {cuts[98]}, mean {statistics.mean(latencies)}"
```

## Fix safety
Left to a person: a figure is added, none is taken away.

## References
- NVIDIA Triton documentation, performance analyzer: https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/index.html
- Dean and Barroso, The Tail at Scale, 2013: https://research.google/pubs/the-tail-at-scale/
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR014", severity="info", fix_class="semantic")

MEANS = ("numpy.mean", "numpy.average", "statistics.mean", "statistics.fmean")
TAILS = frozenset(
    [
        "quantile",
        "quantiles",
        "percentile",
        "percentiles",
        "nanpercentile",
        "median",
        "sorted",
        "sort",
        "max",
        "amax",
        "histogram",
        "hist",
        "topk",
        "nlargest",
        "describe",
        "std",
        "stdev",
        "boxplot",
    ]
)
"""Functions after which more than the mean is known."""


@RULE.in_source
def find(module: Module) -> Matches:
    """Means of latencies in files that take nothing else of them."""
    found = [(call, name) for call, name in _means(module) if "latenc" in name.lower()]
    if not found or _looks_at_tails(module):
        return
    for call, name in found:
        yield match(
            call,
            f"only the mean of {name} is taken, which hides the slow ones",
            advice=f"Quote P50 and P99 of {name} beside the mean, for example numpy.percentile({name}, [50, 99]).",
            confidence="medium",
        )


def _means(module: Module) -> Iterator[tuple[ast.Call | ast.BinOp, str]]:
    for call in module.calls(*MEANS):
        if call.args and (name := _name(call.args[0])):
            yield call, name
    for node in module.nodes(ast.BinOp):
        if not isinstance(node.op, ast.Div) or not isinstance(node.left, ast.Call):
            continue
        total = node.left
        if module.name_of(total.func) == "sum" and total.args and (name := _name(total.args[0])):
            yield node, name


def _looks_at_tails(module: Module) -> bool:
    """Whether any word of the file speaks of quantiles or extremes: then the tail is not forgotten."""
    for node in module.nodes(ast.Call):
        word = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if word in TAILS:
            return True
    return False


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
