"""A loop calls short operators for each element, and takes a good part of the step.

## What it does
Takes the loops and comprehensions of the user's in which samples of the host's time were found, and speaks where one with many
rounds takes a good part of the step and spends it in calls of torch that are mostly short: in helper functions, methods and
modules that it calls, too. It says what the loop goes over and how many rounds a step has.

## Why it costs
Every operator costs some microseconds of dispatch, however few numbers it works on, and each call of a module as much again in
Python.

## Example
```python
class Trees(torch.nn.Module):
    def forward(self, x):
        return torch.cat([torch.sigmoid(gate(x)) for gate in self.gates], dim=1)
```

## Use instead
```python
class Trees(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(self.gates(x))  # one torch.nn.Linear with a row for each gate
```
`torch.vmap` runs a function of one element on all of them; `torch.func.stack_module_state` stacks the weights of equal modules for it.

## Fix safety
No fix is applied: operators on whole tensors may round differently, and only the program knows what the rounds share.

## References
- PyTorch, `torch.vmap`: https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
- PyTorch, Model ensembling: https://docs.pytorch.org/tutorials/intermediate/ensembling.html
"""

from __future__ import annotations

from pyrometer.rules.host.patterns.loop_runs import LoopRun, loop_finding, loop_runs
from pyrometer.rules.host.patterns.prefixes import prefixes
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR126",
    severity="warning",
    fix_class="tolerance",
    lever="compile",
    limits=(
        Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),
        Limit(
            "min_operators", 0.5, "of the loop's time: where Python takes more of it, it is what to look at"
        ),
        Limit(
            "max_round_s",
            2e-4,
            "a round of some ten short operators; longer ones do work that is worth a call",
        ),
        Limit(
            "max_op_s",
            2e-5,
            "of the mean operator of the function under the profiler, for longer rounds: some times what dispatch costs",
        ),
    ),
)

ALL_AT_ONCE = (
    "Do it for all elements at once: stack them, give reductions a `dim=`, let the rest broadcast, or pass the body to `torch.vmap`; where "
    "each round calls a module of its own, stack their weights (`torch.func.stack_module_state`). Else compile what the loop calls."
)
ONE_AFTER_ANOTHER = (
    "The rounds depend on each other: where they work on single numbers, take all of these out before by `.tolist()` and loop over plain "
    "numbers; else do before the loop, for all of them, what does not (products with inputs, masks, constants), use the ready-made layer "
    "where there is one (`nn.LSTM`, `nn.GRU`, `torch.cumsum`), and compile the rest."
)


@RULE.in_evidence("host")
def explain(case: Case) -> Findings:
    """Loops that are mostly short operators."""
    for run in loop_runs(case, case.limit(RULE, "min_share")):
        in_operators = run.operators + run.elsewhere >= case.limit(RULE, "min_operators")
        if run.element is not None or not in_operators or run.operators < run.elsewhere:
            continue
        if _is_short(case, run) and not _repeats_prefix(run):  # which has a rule of its own
            yield loop_finding(
                RULE,
                case,
                run,
                what="calls short operators",
                advice=ONE_AFTER_ANOTHER if run.is_carried else ALL_AT_ONCE,
            )


def _is_short(case: Case, run: LoopRun) -> bool:
    """Whether the rounds are short, or made of operators that are."""
    if not run.rounds:
        return False  # they may be layers
    if run.total_s <= case.limit(RULE, "max_round_s") * run.rounds:
        return True
    traced = run.traced
    return traced is not None and 0 < traced.self_ns * 1e-9 <= case.limit(RULE, "max_op_s") * traced.num_ops


def _repeats_prefix(run: LoopRun) -> bool:
    """Whether the rounds compute again all that those before did."""
    return run.found is not None and any(prefix.loop is run.found[1] for prefix in prefixes(run.found[0]))
