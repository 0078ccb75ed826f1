r"""The step waits for logs, files, other processes or the network.

## What it does
Adds up what the user's lines spend on logging, printing, files, `os.fsync`, sockets and other processes, by samples of the host's
time, and speaks where that is a good part of the step.

## Why it costs
A line of a log costs microseconds to format and a system call to write; `os.fsync` waits until the disk has it, which takes
milliseconds. Meanwhile no operator is issued. Writing a line with `fsync` in each step made a small training
25 times as slow.

## Example
```python
for inputs, targets in loader:
    loss = train_step(inputs, targets)
    log.write(f"{loss}\n")
    log.flush()
    os.fsync(log.fileno())
```

## Use instead
Collect, and write once every hundred steps; a log that is flushed survives the end of the process, `fsync` only adds safety
from a failure of the machine.
```python
lines = []
for step, (inputs, targets) in enumerate(loader):
    lines.append(f"{train_step(inputs, targets)}\n")
    if step % 100 == 99:
        log.writelines(lines)
        log.flush()
        lines.clear()
log.writelines(lines)
log.flush()
```
Where each line must leave at once, `logging.handlers.QueueHandler` hands it to another thread.

## Fix safety
No fix is applied: what a log must survive is for the program to say. The lines are the same, and are written later.

## References
- Python, `logging.handlers.QueueHandler`: https://docs.python.org/3/library/logging.handlers.html#queuehandler
- Python, `os.fsync`: https://docs.python.org/3/library/os.html#os.fsync
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.rules.host.patterns.spending import INPUT_OUTPUT, spending, spending_finding
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLine

RULE = declare(
    code="PYR120",
    severity="warning",
    fix_class="exact",
    limits=(Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),),
)

LESS_OFTEN = "Do it once every N steps or after the loop, or hand it to another thread"
BY_KIND = {
    "fsync": "Leave `fsync` to the end: what is flushed survives the process, and only a failure of the machine loses it. Collect "
    "what is to be written and write it once every N steps.",
    "logging": f"{LESS_OFTEN} (`logging.handlers.QueueHandler`); where the level is off, do not format.",
    "print": f"{LESS_OFTEN}: collect what is to be printed. An f-string makes its text even where the log drops it, and that of a tensor reads all "
    'that it shows: pass what is logged as arguments (`log.debug("%s", x)`), or its shape.',
    "file": f"{LESS_OFTEN}; keep the file open and write in larger pieces.",
    "process": "Start the process once, outside of the step, and talk to it; or do in Python what it does.",
    "network": f"{LESS_OFTEN}: keep the connection, and send what has come together in one piece.",
}


def _advice(line: HostLine) -> str:
    """What to do about what takes the most of a line."""
    return BY_KIND[next(leaf.kind for leaf in line.leaves if leaf.kind in INPUT_OUTPUT)]


@RULE.in_evidence("host")
def explain(case: Case) -> Findings:
    """Where all of it together takes a good part of the step."""
    spent = spending(case, INPUT_OUTPUT, case.limit(RULE, "min_share"))
    if spent is not None:
        yield spending_finding(
            RULE, case, spent, what="Input and output", stays=0.15, advice=_advice(spent.line)
        )
