"""Shared memory may not hold the batches that workers prepare.

## What it does
Compares the shared memory that a full queue of batches needs with what is free in `/dev/shm`.

## Why it costs
Workers hand over batches through shared memory. Where that is full, a worker dies with a bus error, in the middle of a run; containers often have no
more than 64 MiB of it.

## Example
```python
from torch.utils.data import DataLoader

loader = DataLoader([0.0] * 1000, batch_size=256, num_workers=16, prefetch_factor=8)
```

## Use instead
```python
from torch.utils.data import DataLoader

loader = DataLoader([0.0] * 1000, batch_size=256, num_workers=8, prefetch_factor=2)
```

## Fix safety
Nothing in the program changes if the container is given more; fewer batches ahead are the same batches.

## References
- PyTorch documentation, torch.utils.data: https://docs.pytorch.org/docs/stable/data.html
- Docker documentation, docker container run, shm-size: https://docs.docker.com/reference/cli/docker/container/run/
"""

from __future__ import annotations

from pyrometer.advice import Cost
from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR316", severity="warning", fix_class="exact")


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The loader's advice to give more shared memory; an error where a full queue does not fit at all."""
    report = case.loading
    if report is None or report.shm_free_bytes is None:
        return
    yield from advised(
        RULE,
        case,
        "shared-memory",
        severity="error" if report.shm_needed_bytes > report.shm_free_bytes else "warning",
        cost=Cost(
            bytes=report.shm_needed_bytes,
            method="size of one batch, times the batches of a full queue and the one in use",
        ),
        gain=None,
        confidence="high",
        resource="peak:shared",
    )
