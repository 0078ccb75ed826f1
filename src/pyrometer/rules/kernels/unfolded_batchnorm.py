"""Batch norm is not folded into the weights of its convolution for inference.

## What it does
Finds, in one observed step of an inference, batch norms in eval mode that take the output of a convolution or linear layer which
nothing else reads.

## Why it costs
In eval mode batch norm multiplies and adds constants per channel: weights and bias of the layer before can hold them. Left as it
is, it reads and writes every activation once more. On one CPU core a small ResNet took 0.90 to 1.03 of its time when folded, so
that the gain is the time that the trace shows for batch norm, and no more.

## Example
```python
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU()).eval()
```

## Use instead
```python
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU()).eval()
model = nn.Sequential(fuse_conv_bn_eval(model[0], model[1]), model[2])
```

## Fix safety
The same function up to rounding, in eval mode only: a folded model cannot be trained on. torch.compile with freezing, and export
to other runtimes, fold by themselves.

## References
- PyTorch, torch.nn.utils.fusion.fuse_conv_bn_eval: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.fuse_conv_bn_eval.html
- PyTorch, "Building a Convolution/Batch Norm fuser with torch.compile": https://docs.pytorch.org/tutorials/intermediate/torch_compile_conv_bn_fuser.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import counted, format_percent
from pyrometer.rules.kernels.patterns.operators import cost_of, index_of, total_share
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.untraced import untraced

if TYPE_CHECKING:
    from pyrometer.workload.program.record import ModuleFact, Program

RULE = declare(
    code="PYR508",
    severity="warning",
    fix_class="tolerance",
    lever="fold_batchnorm",
    limits=(
        Limit("min_share", 0.01, "where a trace shows less for batch norm, folding cannot be measured"),
        Limit("serious_share", 0.05, "of the step, from which on it is more than a remark"),
    ),
)

FOLDED_INTO = {
    "BatchNorm1d": {"Linear", "Conv1d"},
    "BatchNorm2d": {"Conv2d", "ConvTranspose2d"},
    "BatchNorm3d": {"Conv3d", "ConvTranspose3d"},
}
NORM = frozenset(
    ["aten::batch_norm", "aten::_batch_norm_impl_index", "aten::native_batch_norm", "aten::cudnn_batch_norm"]
)


@RULE.in_evidence("program")
def explain(case: Case) -> Findings:
    """All batch norms that could be folded, as one finding."""
    program, trace = case.program, case.trace
    if program is None or program.kind != "inference" or program.compiled:
        return
    pairs = foldable(program)
    if not pairs:
        return
    normed = [module for module in program.modules if module.type_name in FOLDED_INTO and module.calls]
    share = None if trace is None else total_share(trace, NORM) * len(pairs) / len(normed)
    if share is not None and share < case.limit(RULE, "min_share"):
        return
    layer, norm = pairs[0]
    takes = "" if share is None else f" and takes {format_percent(share)} of the time"
    yield RULE.finding(
        severity="info" if share is None or share < case.limit(RULE, "serious_share") else "warning",
        message=f"Batch norm runs after {counted(len(pairs), 'layer')} that could hold it{takes}, first {norm.path} after "
        f"{layer.path}.",
        where=Place(file=program.model_file, line=program.model_line, module=norm.path),
        evidence={
            "pairs": [f"{layer.path} {norm.path}" for layer, norm in pairs[:20]],
            "num_pairs": len(pairs),
        },
        links=[] if trace is None else [index for index in [index_of(trace, NORM)] if index is not None],
        cost=None
        if share is None
        else cost_of(case, share, "time of batch norm, by number of those that can go"),
        gain=None
        if share is None
        else untraced(case, share).gain(
            "removal of batch norm; at worst half of it, as the host's part may stay", worst=0.5
        ),
        confidence="high" if share is not None else "medium",
        advice="Fold each batch norm into the layer before it once, when the model is loaded, and put nn.Identity in its place.",
        sketch=f'model.set_submodule("{layer.path}", fuse_conv_bn_eval(model.get_submodule("{layer.path}"), '
        f'model.get_submodule("{norm.path}"))); model.set_submodule("{norm.path}", nn.Identity())',
        resource="op:aten::batch_norm",
    )


def foldable(program: Program) -> list[tuple[ModuleFact, ModuleFact]]:
    """Layers and the batch norms that alone read them, both called once in the step."""
    by_path = {module.path: module for module in program.modules}
    found = []
    for norm in program.modules:
        layer = by_path.get(norm.follows or "") if norm.follows is not None else None
        if (
            layer is not None
            and layer.type_name in FOLDED_INTO.get(norm.type_name, ())
            and not norm.training
            and norm.settings.get("track_running_stats")
            and norm.calls == layer.calls == 1
        ):
            found.append((layer, norm))
    return found
