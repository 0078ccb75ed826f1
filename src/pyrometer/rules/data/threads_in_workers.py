"""Each worker of the loader keeps several CPUs busy.

## What it does
Carries the loader's own advice where workers use more CPU time than wall time: a library within them starts threads of its own.

## Why it costs
torch limits itself to one thread in a worker, but OpenCV, BLAS libraries and decoders start one per CPU. Eight workers with eight
threads each then take the CPUs from each other and from the training process, and spend time on switching.

## Example
```python
import cv2
from torch.utils.data import DataLoader

loader = DataLoader([b""] * 100, num_workers=8, collate_fn=list)
```

## Use instead
```python
import cv2
from torch.utils.data import DataLoader


def one_thread(worker: int) -> None:
    cv2.setNumThreads(0)


loader = DataLoader([b""] * 100, num_workers=8, collate_fn=list, worker_init_fn=one_thread)
```

## Fix safety
Left to a person: results of parallel sums may differ by rounding.

## References
- PyTorch documentation, torch.utils.data, worker_init_fn: https://docs.pytorch.org/docs/stable/data.html
- OpenCV documentation, setNumThreads: https://docs.opencv.org/4.x/db/de0/group__core__utils.html
"""

from __future__ import annotations

from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR315", severity="warning", fix_class="tolerance")


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The loader's advice to decode with one thread per worker."""
    yield from advised(RULE, case, "one-thread-per-worker", confidence="high")
