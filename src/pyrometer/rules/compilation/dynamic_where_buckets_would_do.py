"""Code is compiled for dynamic shapes although only a few sizes occur.

## What it does

Reports `torch.compile(..., dynamic=True)` in a file that pads its inputs to one length, or to multiples of one; and a batch
dimension that torch opened only because the last batch of an epoch is smaller, with the loader that makes it.

## Why it costs

Code for any size knows no size: loops keep their remainders, tiles and vector widths cannot be chosen for the length, index
arithmetic stays in kernels, and CUDA graphs are recorded per size all the same. A graph per size is faster where sizes are few, and
costs one compilation each.

## Example

```python
import torch

batch = tokenizer(texts, padding="max_length", max_length=128, return_tensors="pt")
model = torch.compile(model, dynamic=True)
model(**batch)
```

## Use instead

Compile for the sizes that occur; pad to a few where they vary.

```python
import torch

batch = tokenizer(texts, padding="max_length", max_length=128, return_tensors="pt")
model = torch.compile(model)
model(**batch)
```

## Fix safety

Tolerance for `dynamic`: other code for the same computation. Semantic for `drop_last=True`: the last, smaller batch of an epoch is
left out; padding it keeps its samples, if the loss masks what was added.

## References

- PyTorch documentation, torch.compile: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- PyTorch documentation, DataLoader: https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

import ast

from pyrometer.place import Place
from pyrometer.quantity import format_seconds
from pyrometer.rules.compilation.patterns.compile_calls import compile_calls
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.compilation.patterns.recompilations import Recompilations, recompilations
from pyrometer.rules.compilation.patterns.spread import RESOURCE
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.rewriting import rewritten, with_keywords

RULE = declare(code="PYR407", severity="info", fix_class="semantic", lever="shape_buckets")

LOADER = "torch.utils.data.DataLoader"
BATCH = ".size()[0]"


@RULE.in_source
def find(module: Module) -> Matches:
    """`dynamic=True` beside padding to a fixed length."""
    padding = _fixed_padding(module)
    if padding is None:
        return
    for call in compile_calls(module):
        if call.option("dynamic") is True and not module.region(call.node).test:
            yield match(
                call.node,
                f"dynamic=True keeps every size open, although line {padding.lineno} pads to fixed lengths",
                advice="Leave dynamic out: one graph per padded length, each compiled once.",
                confidence="medium",
            )


@RULE.in_evidence("compiled", "source")
def explain(case: Case) -> Findings:
    """A batch dimension that was opened for the last batch of an epoch."""
    report = case.compiled
    if report is None or is_hypothetical(report):
        return
    for group in recompilations(report, "other"):
        sizes = _two_batch_sizes(group)
        loader = None if sizes is None else _loader(case, max(sizes))
        if sizes is None or loader is None:
            continue
        module, call = loader
        yield RULE.finding(
            message=f"Batches of {max(sizes)} and a last one of {min(sizes)}: the smaller one triggered a recompilation for "
            f"any batch size, which took {format_seconds(group.compile_s)}",
            where=Place(file=module.path, line=call.lineno),
            evidence={
                "batch_size": max(sizes),
                "last_batch_size": min(sizes),
                "compile_s": group.compile_s,
                "function": group.last.function,
            },
            links=group.links,
            confidence="medium",
            advice="Leave the smaller batch out, or pad it, so that all steps run the graph that was compiled for their size.",
            rewrite=rewritten(module, with_keywords(module, call, {"drop_last": "True"})) or "drop_last=True",
            resource=RESOURCE,
        )


def _fixed_padding(module: Module) -> ast.keyword | None:
    """The argument that pads to one length or to multiples; `None` where none does, or others pad to the longest."""
    fixed: ast.keyword | None = None
    for keyword in module.nodes(ast.keyword):
        value = module.literal(keyword.value) if keyword.arg in {"padding", "pad_to_multiple_of"} else None
        if keyword.arg == "padding" and (value is True or value == "longest"):
            return None
        if value == "max_length" or (keyword.arg == "pad_to_multiple_of" and isinstance(value, int)):
            fixed = fixed or keyword
    return fixed


def _two_batch_sizes(group: Recompilations) -> tuple[int, int] | None:
    """The only two sizes of a first dimension that was opened; the smaller one came second."""
    changed = group.changed
    if changed is None or not changed.became_dynamic or not changed.source.endswith(BATCH):
        return None
    if len(group.recompiles) > 1 or len(changed.before) != 1:
        return None
    texts = (changed.before[0], changed.after)
    if not all(text.isdigit() for text in texts) or int(texts[1]) >= int(texts[0]):
        return None
    return int(texts[0]), int(texts[1])


def _loader(case: Case, batch_size: int) -> tuple[Module, ast.Call] | None:
    """The only loader of the user's files with this batch size, if it keeps the last batch."""
    found = [
        (module, call)
        for module in case.modules
        for call in module.calls(LOADER)
        if (size := _argument(module, call)) is not None and module.literal(size) == batch_size
    ]
    if len(found) != 1:
        return None
    module, call = found[0]
    drops = module.keyword(call, "drop_last")
    return None if drops is not None and module.literal(drops) is not False else found[0]


def _argument(module: Module, call: ast.Call) -> ast.expr | None:
    """The batch size that a loader is given."""
    position = 1
    return call.args[position] if len(call.args) > position else module.keyword(call, "batch_size")
