"""The step sleeps, or waits for a lock, an event or a queue.

## What it does
Adds up what the user's lines spend in `time.sleep` and in waiting for locks, events, threads and queues, by samples of the host's
time, and speaks where that is a good part of the step. Where the step waits for another thread of the program, it is no waiting
while that thread works; where that thread sleeps, or waits for a set time, its line is told.

## Why it costs
While the thread waits it issues nothing. A polling loop waits on average half of its interval for something that is already
there.

## Example
```python
while not worker.ready():
    time.sleep(0.01)
batch = worker.take()
```

## Use instead
Wait for the event itself, and ask for the next batch before this one is worked on.
```python
batch = waiting.result()
waiting = executor.submit(worker.take)
```

## Fix safety
No fix is applied: what the wait protects is for the program to say.

## References
- Python, `concurrent.futures`: https://docs.python.org/3/library/concurrent.futures.html
- Python, `threading.Condition`: https://docs.python.org/3/library/threading.html#condition-objects
"""

from __future__ import annotations

from pyrometer.rules.host.patterns.spending import WAITING, spending, spending_finding
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR124",
    severity="warning",
    fix_class="semantic",
    limits=(Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),),
)


@RULE.in_evidence("host")
def explain(case: Case) -> Findings:
    """Where all of it together takes a good part of the step."""
    spent = spending(case, WAITING, case.limit(RULE, "min_share"))
    if spent is not None:
        yield spending_finding(
            RULE,
            case,
            spent,
            what="Waiting",
            stays=0.4,
            advice="Ask for what is waited for one step ahead, in a thread or process, so that it is there when it is needed; wait for a `Future`, "
            "`Event` or `Queue` itself instead of polling with `sleep`; hold a lock only for what it protects.",
        )
