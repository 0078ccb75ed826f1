"""A tensor is printed, formatted or logged in every step.

## What it does
Finds tensors that `print`, an f-string, `str`, a logger, a progress bar or a metric writer turns into text in code that runs
once per step.

## Why it costs
Text needs the values: formatting copies the tensor to the host and waits for all work that is queued on the device. Of a
tensor with several elements it also computes ranges and widths first, with dozens of small operators.

## Example
```python
import torch

for step, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets)
    print(f"step {step}: loss {loss}")
```

## Use instead
```python
import torch

for step, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets)
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
```

## Fix safety
No fix is applied: how often a value is wanted is for the program to say.

## References
- PyTorch, Performance Tuning Guide, "Avoid unnecessary CPU-GPU synchronization": https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

from pyrometer.rules.host.patterns.avoidable import only_checks
from pyrometer.rules.host.patterns.reads import during, sure_reads
from pyrometer.rules.host.patterns.shown import prints
from pyrometer.rules.host.patterns.waits import LIMITS, Stall, Told, stall_findings
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(
    code="PYR103",
    about_devices=True,
    severity="warning",
    fix_class="semantic",
    lever="remove_sync",
    limits=LIMITS,
)

ADVICE = "Show it every hundred steps (`if step % 100 == 0:`), as the number that is meant: `.item()` of a mean or a maximum."


@RULE.in_source
def find(module: Module) -> Matches:
    """Tensors that are turned into text in hot code."""
    for read, why, confidence in sure_reads(module, prints):
        if only_checks(module, read.node):
            continue  # The message of a check is made when it fails.
        subject = module.source(read.subject) if read.subject is not None else read.text
        message = f"`{read.text}` shows the tensor `{subject}`, and so waits for the device{during(why)}"
        yield match(read.node, message, advice=ADVICE, confidence=confidence, hot=why.why)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """What of it a trace shows, with what it costs."""

    def tell(_stall: Stall) -> Told:
        return Told(ADVICE)

    return stall_findings(RULE, case, tell)
