"""A network that is not trained answers the same samples in each epoch.

## What it does
Finds calls of a network without gradients (a teacher, a frozen encoder) in a training loop within a loop over epochs, that are given
a batch as the loader made it. It speaks where such a call takes a good part of the step.

## Why it costs
Weights that stay give the same answer to the same sample. From the second epoch on all of that work is repetition: a teacher
that answered fixed clips in each of eight epochs took 70 % of a distillation.

## Example
```python
for epoch in range(epochs):
    for x, y in loader:
        with torch.no_grad():
            wanted = teacher(x)
        loss = loss_of(student(x), wanted, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
with torch.no_grad():
    wanted = torch.cat([teacher(x) for x in features.split(256)])
loader = DataLoader(TensorDataset(features, labels, wanted), batch_size=32, shuffle=True)
for epoch in range(epochs):
    for x, y, wanted in loader:
        loss = loss_of(student(x), wanted, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
```

## Fix safety
No fix is applied. It holds only where samples are the same in each epoch: random crops or noise in the dataset make new ones; there ask the
network for some variants of each sample. It must be in evaluation mode, so that dropout and batch norm do not change its answers.

## References
- PyTorch, Knowledge Distillation Tutorial: https://docs.pytorch.org/tutorials/beginner/knowledge_distillation_tutorial.html
- PyTorch, Transfer Learning for Computer Vision Tutorial: https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html
"""

from __future__ import annotations

import ast
import re
from itertools import takewhile

from pyrometer.advice import Gain
from pyrometer.quantity import format_percent
from pyrometer.rules.data.patterns.loaders import is_epoch_loop
from pyrometer.rules.host.patterns.spending import costly_lines, spread
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.source.index import last_name

RULE = declare(
    code="PYR318",
    severity="warning",
    fix_class="semantic",
    limits=(Limit("min_share", 0.2, "of the step: less does not repay keeping the answers"),),
)

LEFT_AT_WORST = 0.5
"""Of the calls: all of the first of two epochs."""

MOVES = frozenset({"to", "cuda", "float", "half", "bfloat16", "contiguous"})
FOLLOWS = re.compile(r"(?:^|[._])(?:ema|momentum|target|moving|slow)", re.IGNORECASE)
"""Names of networks that are made of the trained one again and again."""

BY_CHANCE = re.compile(r"\b(rand\w*|bernoulli|choice|shuffle|normal|augment\w*|noise\w*)\b", re.IGNORECASE)
TRANSFORMS = re.compile(r"\b(Random[A-Z]\w+|AutoAugment|ColorJitter|\w*augment\w*\()")


@RULE.in_evidence("host", "source")
def explain(case: Case) -> Findings:
    """The lines of such calls, by their share of the sampled steps."""
    assert case.host is not None
    for module, line, link, share in costly_lines(case, case.limit(RULE, "min_share")):
        calls = [call for call in module.nodes(ast.Call) if call.lineno == line.where.line]
        name = next((ast.unparse(call.func) for call in calls if _comes_back(module, call)), None)
        if name is None:
            continue
        certain = spread(case.host, share)
        yield RULE.finding(
            message=f"`{name}` is not trained, and answers the same samples again in each epoch: {format_percent(share)} of the step",
            where=place_of(case, line.where),
            evidence={"share": share},
            links=[link],
            cost=case.cost_of(share, "samples of the host's time in these calls"),
            gain=Gain(
                ratio_low=1 - certain.most,
                ratio_high=1 - (1 - LEFT_AT_WORST) * certain.least,
                method="removal: all epochs but the first; at worst one of two",
            ),
            confidence="medium",
            advice=f"Ask `{name}` once for each sample before training, in evaluation mode and large batches, and let the dataset give its answers with the samples. "
            "Where samples are augmented at random, keep its answers to some variants of each.",
        )


def _comes_back(module: Module, call: ast.Call) -> bool:
    """Whether an untrained network is given a batch as it came, in a loop that trains within one over epochs."""
    name, region = ast.unparse(call.func), module.region(call)
    if not (region.no_grad or region.inference_mode) or (module.name_of(call.func) or "").startswith(
        "torch."
    ):
        return False
    around = module.loops_around(call)
    loop = next(
        (loop for loop in around if isinstance(loop, ast.For) and module.heat.loops.trains(loop)), None
    )
    if loop is None or FOLLOWS.search(name) or not _is_in_epochs(module, loop):
        return False
    given = {part.id for argument in call.args for part in ast.walk(argument) if isinstance(part, ast.Name)}
    batch = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    mentions = sum(
        ast.unparse(part) == name for part in ast.walk(loop) if isinstance(part, ast.Name | ast.Attribute)
    )
    return (
        bool(given) and given <= batch - _changed(loop, call) and mentions == 1 and not _is_augmented(module)
    )


def _is_in_epochs(module: Module, loop: ast.For) -> bool:
    """Whether a loop over epochs holds it, or calls its function."""
    function = module.function_of(loop)
    calls = (call for call in module.nodes(ast.Call) if function and last_name(call.func) == function.name)
    loops = [*module.loops_around(loop), *(outer for call in calls for outer in module.loops_around(call))]
    return any(is_epoch_loop(outer) or _counts(outer) for outer in loops)


def _counts(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether it goes over `range(…)`: around a loop over batches that is one over epochs, whatever its variable is called."""
    return (
        isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) == "range"
    )


def _changed(loop: ast.For, call: ast.Call) -> set[str]:
    """Names that were given another value in a round before the call, moves to a device aside."""
    before = takewhile(lambda part: part.lineno < call.lineno, loop.body)
    assigned = [node for part in before for node in ast.walk(part) if isinstance(node, ast.Assign)]
    return {
        name.id
        for node in assigned
        if not (isinstance(node.value, ast.Call) and ast.unparse(node.value.func).rpartition(".")[2] in MOVES)
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }


def _is_augmented(module: Module) -> bool:
    """Whether samples are made anew by chance, in a dataset of the file or by transforms that it names."""
    methods = [node for node in module.nodes(ast.FunctionDef) if node.name in {"__getitem__", "__iter__"}]
    return any(BY_CHANCE.search(ast.unparse(method)) for method in methods) or bool(
        TRANSFORMS.search(module.text)
    )
