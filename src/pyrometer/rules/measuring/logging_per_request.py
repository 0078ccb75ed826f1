"""Metrics are logged, or a file is opened, for every step or request.

## What it does
Finds calls of loggers of metrics (`wandb.log`, `add_scalar`, `mlflow.log_metric`), of `logging` at level info, and `open` of the same
file for writing, that run unconditionally once per step or request.

## Why it costs
The call itself is host time that a device may wait for, and most loggers read the tensors that they are given, which waits for the device.
On two CPU cores a record of `logging` into a file took 13 µs and opening a file to append a line 17 µs, where the forward pass of a
small multilayer perceptron takes 31 µs. Network loggers and shared file systems take far longer.

## Example
```python
import torch
import wandb
from torch.utils.data import DataLoader


def train(model: torch.nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        wandb.log({"loss": loss})
```

## Use instead
```python
import torch
import wandb
from torch.utils.data import DataLoader


def train(model: torch.nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for step, (x, y) in enumerate(loader):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            wandb.log({"loss": loss})
```

## Fix safety
Left to a person: fewer points are logged. To keep all of them, collect detached tensors and log them together.

## References
- PyTorch tutorials, Performance Tuning Guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- Python documentation, Logging HOWTO, optimization: https://docs.python.org/3/howto/logging.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.rules.match import Matches, match
from pyrometer.rules.measuring.patterns.timed_work import is_over_loader
from pyrometer.rules.rule import declare

if TYPE_CHECKING:
    from pyrometer.source.module import Hot, Module

RULE = declare(code="PYR006", severity="info", fix_class="semantic")

SERVICES = ("wandb.log", "mlflow.log_metric", "mlflow.log_metrics")
WRITERS = ("add_scalar", "add_scalars", "add_histogram", "add_image")
LOGGERS = frozenset({"log", "logger", "_logger", "LOG", "LOGGER", "logging"})


@RULE.in_source
def find(module: Module) -> Matches:
    """Logging that nothing makes rare, in code that runs for every step or request."""
    if not module.imports_torch:
        return
    for call, what in [*_metrics(module), *_records(module), *_files(module)]:
        hot = module.hot(call)
        if hot is None or hot.per not in {"step", "request"} or module.is_rare(call):
            continue
        if module.region(call).test or _is_conditional(module, call, hot):
            continue
        yield match(
            call,
            f"{what}: {hot.why}",
            advice="Log every 50th or so, or collect detached tensors and log them together once per epoch.",
            confidence="medium",
            hot=hot.why,
        )


def _metrics(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Calls of loggers of metrics."""
    for call in module.calls(*SERVICES):
        yield call, f"{module.source(call.func)}() is called for every step"
    for call in module.method_calls(*WRITERS):
        if len(call.args) + len(call.keywords) >= 2:
            yield call, f"{module.source(call.func)}() is called for every step"


def _records(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Records of `logging`, where the very loop over a loader or the request handler is around them."""
    for call in module.method_calls("info"):
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        hot = module.hot(call) if isinstance(receiver, ast.Name) and receiver.id in LOGGERS else None
        if hot is not None and (
            hot.per == "request" or (isinstance(hot.loop, ast.For) and is_over_loader(module, hot.loop))
        ):
            yield call, f"{module.source(call.func)}() is called for every step"


def _files(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Files that are opened again and again for writing."""
    for call in module.calls("open"):
        if _writes_same_file(module, call):
            yield call, f"{module.source(call.args[0])} is opened for writing in every step"


def _writes_same_file(module: Module, call: ast.Call) -> bool:
    """Whether a file is opened for writing whose path does not depend on what the loop changes."""
    mode = (
        module.literal(call.args[1]) if len(call.args) > 1 else module.literal(module.keyword(call, "mode"))
    )
    if not call.args or not isinstance(mode, str) or not set(mode) & set("aw"):
        return False
    path = call.args[0]
    if isinstance(module.literal(path), str):
        return True
    if not isinstance(path, ast.Name):
        return False
    changed = {
        node.id
        for loop in module.loops_around(call)
        for node in ast.walk(loop)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return bool(module.assignments(path.id, call)) and path.id not in changed


def _is_conditional(module: Module, call: ast.Call, hot: Hot) -> bool:
    """Whether a condition or a handler stands between the hot code and the call: then nobody knows how often it runs."""
    for above in module.ancestors(call):
        if above is hot.loop or isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        if isinstance(above, ast.If | ast.IfExp | ast.ExceptHandler | ast.match_case | ast.BoolOp):
            return True
    return False
