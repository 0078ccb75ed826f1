"""Dropout sets elements to zero in inference, so that results are random.

## What it does
Finds calls of `functional.dropout` in a module that do not pass `training`, which is true unless told otherwise, and inferences
whose observed step drew a dropout.

## Why it costs
`model.eval()` switches `nn.Dropout` off, but it does not reach a function: `functional.dropout(x)` drops in evaluation and in
production, too. Each answer is then random, metrics are too low, and the random numbers take time. A dropout that is switched off
costs its call, about three microseconds, and nothing else.

## Example
```python
from torch import nn
from torch.nn import functional

class Head(nn.Module):
    def forward(self, x):
        return functional.dropout(x, 0.1)
```

## Use instead
```python
from torch import nn
from torch.nn import functional

class Head(nn.Module):
    def forward(self, x):
        return functional.dropout(x, 0.1, training=self.training)
```

## Fix safety
The fix changes what is computed in eval mode, which is its purpose; training stays as it is. Where dropout in inference is meant
(Monte Carlo dropout), say so by passing `training=True`.

## References
- PyTorch, torch.nn.functional.dropout: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html
- PyTorch, torch.nn.Module.eval: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.quantity import counted, format_percent
from pyrometer.rules.kernels.patterns.operators import cost_of, total_share
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.source.edit import Edit
from pyrometer.source.rare import conditions

RULE = declare(
    code="PYR509",
    severity="error",
    fix_class="semantic",
    lever="drop_dropout",
    limits=(
        Limit(
            "min_identity_share", 0.01, "a dropout that is switched off is worth a word from one percent on"
        ),
    ),
)

FUNCTIONS = tuple(
    f"torch.nn.functional.{name}"
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
)
DEFAULT_OFF = frozenset(f"torch.nn.functional.{name}" for name in ("alpha_dropout", "feature_alpha_dropout"))
"""These two do nothing unless told to."""

IDENTITY_S = 3.4e-6
"""What calling an nn.Dropout takes that is switched off, on one CPU core."""

DROPOUT = frozenset(["aten::dropout", "aten::native_dropout", "aten::alpha_dropout", "aten::feature_dropout"])


@RULE.in_source
def find(module: Module) -> Matches:
    """Functional dropouts in methods of a module that are on in evaluation."""
    for call in _always_on(module):
        yield match(
            call,
            "dropout is on in evaluation, too: `training` is true unless it is passed",
            advice="Pass `training=self.training`; or `training=True` if the answers shall be random.",
            fix=_fix(module, call),
        )


def _always_on(module: Module) -> Iterator[ast.Call]:
    return (call for call in module.calls(*FUNCTIONS) if _is_always_on(module, call))


def _written_at(case: Case) -> Place | None:
    """The first call in the source that never is off; what the record counts is that one, as far as can be told."""
    calls = ((module.path, call.lineno) for module in case.modules for call in _always_on(module))
    file, line = next(calls, (None, None))
    return None if file is None else Place(file=file, line=line)


def _is_always_on(module: Module, call: ast.Call) -> bool:
    if (
        module.name_of(call.func) in DEFAULT_OFF
        or len(call.args) > 2
        or module.keyword(call, "training") is not None
    ):
        return False
    if any(keyword.arg is None for keyword in call.keywords) or any(
        isinstance(arg, ast.Starred) for arg in call.args
    ):
        return False
    rate = call.args[1] if len(call.args) > 1 else module.keyword(call, "p")
    if rate is not None and module.literal(rate) == 0:
        return False
    return _is_method_of_module(module, call) and not _is_for_training(module, call)


def _is_method_of_module(module: Module, call: ast.Call) -> bool:
    kind, function = module.class_of(call), module.function_of(call)
    if kind is None or function is None or not function.args.args or function.args.args[0].arg != "self":
        return False
    bases = [module.name_of(base) or "" for base in kind.bases]
    methods = {statement.name for statement in kind.body if isinstance(statement, ast.FunctionDef)}
    return (
        any(base.rpartition(".")[2].endswith(("Module", "PreTrainedModel")) for base in bases)
        or "forward" in methods
    )


def _is_for_training(module: Module, call: ast.Call) -> bool:
    """Under `if self.training` or a switch that the caller sets, or in a step of training."""
    function = module.function_of(call)
    if function is not None and function.name.startswith("training"):
        return True
    return any(
        isinstance(above, (ast.If, ast.IfExp))
        and (
            any(isinstance(node, ast.Attribute) and node.attr == "training" for node in ast.walk(above.test))
            or any(isinstance(part, ast.Name) for part in conditions(above.test))
        )
        for above in module.ancestors(call)
    )


def _fix(module: Module, call: ast.Call) -> Fix:
    _, _, line, column = module.span(call)
    column -= 1  # before the closing bracket
    before = module.source(call)[:-1].rstrip()
    text = " training=self.training" if before.endswith(",") else ", training=self.training"
    edit = Edit(line=line, column=column, end_line=line, end_column=column, text=text)
    return Fix(fix_class="semantic", title="Pass training=self.training", edits=[edit])


@RULE.in_evidence("program")
def explain(case: Case) -> Findings:
    """Dropouts that drew random numbers in an inference, and those that cost something though they are off."""
    program, trace = case.program, case.trace
    if program is None or program.kind != "inference" or program.active_dropouts is None:
        return
    share = 0.0 if trace is None else total_share(trace, DROPOUT)
    place = Place(file=program.model_file, line=program.model_line)
    if program.active_dropouts:
        yield RULE.finding(
            message=f"{counted(program.active_dropouts, 'functional dropout')} set elements to zero in one step of an "
            "inference: the results are random.",
            where=_written_at(case) or place,
            evidence={"active_dropouts": program.active_dropouts, "share": share},
            links=["/program/active_dropouts"],
            cost=cost_of(case, share, "time of dropout in the trace") if share else None,
            gain=Gain(ratio_low=1 - share, ratio_high=1.0, method="removal of dropout") if share else None,
            confidence="high",
            advice="Pass `training=self.training` to each functional dropout; if the answers shall be random (Monte Carlo "
            "dropout), ignore this finding.",
            resource="op:aten::dropout",
        )
        return
    modules = [module for module in program.modules if "Dropout" in module.type_name and module.calls]
    spent_s = IDENTITY_S * sum(module.calls or 0 for module in modules)
    if (
        program.device in {"cpu", "none"}
        and case.step_s
        and spent_s >= case.limit(RULE, "min_identity_share") * case.step_s
    ):
        share = min(1.0, spent_s / case.step_s)
        method = "3.4 µs per call, as measured on one core"
        yield RULE.finding(
            severity="info",
            message=f"{counted(len(modules), 'dropout')} that are switched off are still called, for about "
            f"{format_percent(share, 2)} of the time.",
            where=place,
            evidence={"modules": [module.path for module in modules[:20]], "share": share},
            cost=Cost(seconds_per_step=spent_s, share=share, method=method),
            gain=Gain(ratio_low=1 - share, ratio_high=1.0, method=f"removal of the calls: {method}"),
            fix_class="exact",
            confidence="medium",
            advice="Take them out when the model is loaded for inference; nn.Identity in their place saves a part of it.",
            resource="op:aten::dropout",
        )
