"""A throughput counts padding as if it were data.

## What it does
Reads the share of padding that was measured where the workload names a mask or lengths. In source text it finds a number of tokens that
is taken from a shape (`batch_size * seq_len`, `x.numel()`), divided by a time, where the same function has a mask or lengths.

## Why it costs
Padded places are computed and thrown away. A throughput that counts them rises when more padding is added, and so hides the waste
that it should show; figures of two ways of batching cannot be compared.

## Example
```python
import time

import torch


def rate(model: torch.nn.Module, ids: torch.Tensor, attention_mask: torch.Tensor) -> float:
    start = time.perf_counter()
    model(ids, attention_mask)
    return ids.numel() / (time.perf_counter() - start)
```

## Use instead
```python
import time

import torch


def rate(model: torch.nn.Module, ids: torch.Tensor, attention_mask: torch.Tensor) -> float:
    start = time.perf_counter()
    model(ids, attention_mask)
    return attention_mask.sum().item() / (time.perf_counter() - start)
```

## Fix safety
Left to a person: the figure changes its meaning, and older ones cannot be compared with it.

## References
- PyTorch documentation, torch.nn.utils.rnn.pad_sequence: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyrometer.place import Place
from pyrometer.quantity import format_percent, format_rate
from pyrometer.rules.match import Matches, match
from pyrometer.rules.measuring.patterns.timed import Timing, assigned_name, timings
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

RULE = declare(
    code="PYR007",
    severity="info",
    fix_class="semantic",
    limits=(Limit("min_padding", 0.1, "below a tenth, both figures say about the same"),),
)

LENGTHS = re.compile(r"(^|_)(seq_?len|sequence_length|max_len|max_length|block_size|context_length)$")
MASKS = re.compile(
    r"(^|_)(attention_mask|attn_mask|pad(ding)?_mask|src_mask|lengths|seq_?lens|input_lengths)$"
)
COUNTED = frozenset({"numel", "nelement"})


@RULE.in_evidence("measurement")
def explain(case: Case) -> Findings:
    """The padding of a measured workload, and both throughputs."""
    measured = case.measurement
    if measured is None or measured.padding_ratio is None:
        return
    share = measured.padding_ratio
    if not case.limit(RULE, "min_padding") <= share < 1:
        return
    padded = measured.throughput / (1 - share)
    yield RULE.finding(
        message=f"{format_percent(share, 2)} of the places are padding: {format_rate(padded, measured.unit + '/s')} by shape are "
        f"{format_rate(measured.throughput, measured.unit + '/s')} of data",
        where=Place(),
        evidence={
            "padding_ratio": share,
            "throughput_by_shape": padded,
            "throughput": measured.throughput,
            "unit": measured.unit,
        },
        links=["/measurement/padding_ratio", "/measurement/throughput"],
        confidence="high",
        advice=f"Quote {format_rate(measured.throughput, measured.unit + '/s')}, and beside it the share of padding.",
    )


@RULE.in_source
def find(module: Module) -> Matches:
    """Numbers of tokens by shape over a time, beside a mask."""
    for timing in timings(module):
        names = set(_names(timing.scope)) if timing.scope is not None else set()
        mask = next((name for name in sorted(names) if MASKS.search(name)), None)
        if mask is None:
            continue
        for quotient in _quotients(module, timing):
            if _is_by_shape(quotient.left):
                yield match(
                    quotient,
                    f"`{module.source(quotient.left)}` counts padding, although `{mask}` tells what is none",
                    advice=f"Count what `{mask}` marks as data, and quote the share of padding beside it.",
                    confidence="medium",
                )


def _quotients(module: Module, timing: Timing) -> Iterator[ast.BinOp]:
    name = assigned_name(module.statement_of(timing.difference))
    for node in module.nodes(ast.BinOp):
        if isinstance(node.op, ast.Div) and module.function_of(node) is timing.scope:
            parts = list(ast.walk(node.right))
            if timing.difference in parts or any(
                isinstance(part, ast.Name) and part.id == name for part in parts
            ):
                yield node


def _is_by_shape(count: ast.expr) -> bool:
    """Whether a number is a product with a sequence length, or the number of elements of a tensor."""
    parts = list(ast.walk(count))
    words = {part.id for part in parts if isinstance(part, ast.Name)} | {
        part.attr for part in parts if isinstance(part, ast.Attribute)
    }
    if any(MASKS.search(word) for word in words):
        return False
    multiplied = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) for part in parts)
    return bool(words & COUNTED) or (multiplied and any(LENGTHS.search(word) for word in words))


def _names(scope: ast.AST) -> Iterator[str]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
