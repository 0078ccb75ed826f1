"""A `non_blocking` copy to the host is read before it has finished.

## What it does
Finds `y = x.to("cpu", non_blocking=True)` where `y` is read (`.numpy()`, `.tolist()`, `.item()`, `float(y)`, `print(y)`) with
no synchronisation in between.

## Why it costs
It costs correctness. A copy to the host with `non_blocking=True` returns before the bytes are there, and nothing on the host
waits for them: what is read is whatever the memory held before. It often goes well in a test and wrong under load.

## Example
```python
import torch

scores = model(batch).to("cpu", non_blocking=True)
best = scores.numpy().argmax(axis=1)
```

## Use instead
Wait before the first read, or leave the copy to wait by itself.
```python
import torch

scores = model(batch).to("cpu", non_blocking=True)
torch.cuda.current_stream().synchronize()
best = scores.numpy().argmax(axis=1)
```

## Fix safety
No fix is applied: where to wait is for the program to say. Leaving `non_blocking=True` out is always right.

## References
- PyTorch, "A guide on good usage of non_blocking and pin_memory()": https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrometer.rules.host.patterns.reads import copies_to_host, goes_to_cpu, is_non_blocking, scalar_reads
from pyrometer.rules.host.patterns.shown import prints
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR119", about_devices=True, severity="error", fix_class="exact")

ADVICE = "Leave `non_blocking=True` out, or wait (`torch.cuda.current_stream().synchronize()`) before the first read."
WAITS = frozenset({"synchronize", "wait", "query", "elapsed_time", "item", "tolist", "cpu", "nonzero"})
"""Methods that return only when the device is done, and so are the copies before them."""


@RULE.in_source
def find(module: Module) -> Matches:
    """Reads of copies that may not have arrived."""
    reads = {
        read.subject: read for search in (scalar_reads, copies_to_host, prints) for read in search(module)
    }
    for copy in module.method_calls("to"):
        if not is_non_blocking(module, copy) or not goes_to_cpu(module, copy) or module.region(copy).test:
            continue
        subject = next((use for use in _later(module, copy) if use in reads), None)
        if subject is not None:
            text = reads[subject].text
            message = f"`{text}` reads a copy that line {copy.lineno} started and nothing has waited for: it may not have arrived"
            yield match(reads[subject].node, message, advice=ADVICE, confidence="medium")


def _later(module: Module, copy: ast.Call) -> Iterator[ast.expr]:
    """The copy itself and, until something waits, the uses of the name that it is given in the same block."""
    yield copy
    statement = module.statement_of(copy)
    if not isinstance(statement, ast.Assign) or statement.value is not copy or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return
    for following in _after(module, statement):
        nodes = [node for node in ast.walk(following) if isinstance(node, ast.Name | ast.Call)]
        for node in sorted(nodes, key=lambda inner: (inner.lineno, inner.col_offset)):
            if isinstance(node, ast.Name) and node.id == target.id:
                if isinstance(node.ctx, ast.Store):
                    return
                yield node
            elif isinstance(node, ast.Call) and _waits(node, target.id):
                return


def _waits(call: ast.Call, name: str) -> bool:
    """Whether a call makes the host wait for the device; a read of the copy itself does not."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in WAITS:
        return False
    return not (isinstance(function.value, ast.Name) and function.value.id == name)


def _after(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that follow in the same block."""
    block = module.parent(statement)
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(block, field, None)
        if isinstance(statements, list) and statement in statements:
            return statements[statements.index(statement) + 1 :]
    return []
