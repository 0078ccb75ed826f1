"""Parametrised weights are recomputed in every call, although nothing trains them.

## What it does
Adds up the time of the modules that `torch.nn.utils.parametrize` puts before a weight (orthogonal, spectral and weight norm, and those
of the program's own), and of the older `weight_norm`, in traces without a backward pass through them. It names the line that registers
the first of them.

## Why it costs
A parametrisation computes the weight from the parameters that are trained, whenever the weight is read: an orthogonal weight
takes a decomposition or a solve of its size. In inference the parameters stay as they are, and so does the weight.

## Example
```python
layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(64, 64))
layer.eval()
y = layer(x)
```

## Use instead
```python
layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(64, 64))
layer.eval()
torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
y = layer(x)
```
Where the model is trained on afterwards, read it within `torch.nn.utils.parametrize.cached()`, which computes each weight once.

## Fix safety
No fix is applied: without its parametrisation a weight that is trained on no longer keeps to it, and the names in the state change.

## References
- PyTorch, Parametrizations tutorial: https://docs.pytorch.org/tutorials/intermediate/parametrizations.html
- PyTorch, remove_parametrizations: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.remove_parametrizations.html
"""

from __future__ import annotations

import ast
import re

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import counted, format_percent
from pyrometer.rules.kernels.patterns.operators import cost_of, total_share
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.untraced import Share, untraced

RULE = declare(
    code="PYR519",
    severity="warning",
    fix_class="exact",
    limits=(Limit("min_share", 0.03, "of the time: less does not repay another step in deployment"),),
)

LIST = re.compile(r"(.*\.)?parametrizations\.\w+|ParametrizationList_\d+")
"""The module that computes one weight, as a trace of our own names it, and as the profiler does."""

WEIGHT_NORM = frozenset({"aten::_weight_norm", "aten::_weight_norm_interface"})

REST_STAYS = 0.4
"""Of the traced time of the rest of the model, at least, where the profiler made the step longer."""

REGISTERING = (
    *(f"torch.nn.utils.parametrizations.{name}" for name in ("orthogonal", "spectral_norm", "weight_norm")),
    "torch.nn.utils.parametrize.register_parametrization",
    "torch.nn.utils.weight_norm",
    "torch.nn.utils.spectral_norm",
)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """All of them together, where no gradient passes through them."""
    trace = case.trace
    if trace is None or not trace.span_ns or (case.program is not None and case.program.kind == "training"):
        return
    lists = [module for module in trace.top_modules if LIST.fullmatch(module.module or "")]
    if any(module.backward_ns for module in lists) or any("Backward" in op.name for op in trace.top_ops):
        return
    spent = sum(module.forward_device_ns or module.forward_ns for module in lists) / trace.span_ns
    share = min(1.0, max(spent, total_share(trace, WEIGHT_NORM)))
    if share < case.limit(RULE, "min_share"):
        return
    place = _registered_at(case)
    weights = counted(len(lists), "weight") if lists else "weights"
    yield RULE.finding(
        message=f"recomputing {weights} from parametrisations takes {format_percent(share)} of an inference; "
        f"they are registered{spoken(place) or ' in the model'}",
        where=place,
        evidence={"share": share, "modules": [module.module for module in lists[:20]]},
        links=["/trace/top_modules"],
        cost=cost_of(case, share, "time of the parametrisations in the trace"),
        gain=_gain(case, share),
        confidence="high",
        advice="When the model is loaded for inference, call `torch.nn.utils.parametrize.remove_parametrizations(module, name)` on each module "
        "that has one (`parametrize.is_parametrized(module)` tells); of the older ones `remove_weight_norm` or `remove_spectral_norm`.",
    )


def _gain(case: Case, share: float) -> Gain:
    """Removal; the profiler lengthens the rest of the model, too, of which at least a part is real."""
    known = untraced(case, share)
    most = min(known.most, share + (1 - share) * (1 - REST_STAYS))
    return Share(known.least, most).gain("removal: the weight is read as it is", worst=0.8)


def _registered_at(case: Case) -> Place:
    for module in case.modules:
        call = min(module.calls(*REGISTERING), key=lambda call: call.lineno, default=None)
        if isinstance(call, ast.Call):
            function = module.function_of(call)
            return Place(
                file=module.path, line=call.lineno, function=None if function is None else function.name
            )
    program = case.program
    return Place() if program is None else Place(file=program.model_file, line=program.model_line)
