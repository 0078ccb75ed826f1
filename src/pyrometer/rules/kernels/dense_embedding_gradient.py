"""A large embedding has dense gradients, though a step touches few of its rows.

## What it does
Looks for embeddings of which a training step looks up a small part, built without `sparse=True`, and adds up what their dense gradient
costs: zeros for the whole table in the backward pass, and the optimizer's update of every row.

## Why it costs
The gradient of a table is as large as the table. With 300,000 rows of 32 numbers and a batch of 128, Adam reads and writes 9.6 million
numbers several times each, for 128 rows that have a gradient; in one training that was 14 times the rest of the step.

## Example
```python
items = torch.nn.Embedding(300_000, 32)
optimizer = torch.optim.Adam(items.parameters())
```

## Use instead
```python
items = torch.nn.Embedding(300_000, 32, sparse=True)
optimizer = torch.optim.SparseAdam(items.parameters())
```
The other parameters keep their optimizer. `SGD` without momentum and `Adagrad` take sparse gradients as they are.

## Fix safety
No fix is applied. `SGD` without momentum gives the same result. `SparseAdam` leaves the moments of rows without a gradient as they are, so
that training runs differently; weight decay and clipping by norm need dense gradients.

## References
- PyTorch, `torch.nn.Embedding`: https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html
- PyTorch, `torch.optim.SparseAdam`: https://docs.pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import counted, format_percent
from pyrometer.rules.flowing import of_step
from pyrometer.rules.kernels.patterns.operators import cost_of
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.untraced import phase_share

if TYPE_CHECKING:
    from pyrometer.workload.program.record import ModuleFact, Program

RULE = declare(
    code="PYR518",
    severity="warning",
    fix_class="semantic",
    limits=(
        Limit("min_share", 0.1, "of the step: less does not repay a second optimizer"),
        Limit(
            "min_untouched",
            4,
            "rows for each that a step looks up: with fewer, sparse gradients save little",
        ),
    ),
)

TABLES = frozenset({"Embedding", "EmbeddingBag"})
LOOKED_UP = frozenset({"int64", "int32", "torch.int64", "torch.int32"})
BACKWARD = frozenset({"aten::embedding_dense_backward", "aten::_embedding_bag_dense_backward"})
SGD = "`sparse=True` is all it takes: SGD without momentum updates only the rows that have a gradient."
ADAM = (
    "Build it with `sparse=True`, give its weight to `torch.optim.SparseAdam` and the other parameters to the optimizer that they have; "
    "only rows with a gradient are then updated."
)


@RULE.in_evidence("trace", "program")
def explain(case: Case) -> Findings:
    """The largest such table."""
    program, trace = case.program, case.trace
    if program is None or trace is None or program.optimizer is None or not program.trainable_parameters:
        return
    least = case.limit(RULE, "min_untouched")
    tables = [
        module
        for module in program.modules
        if _is_sparse_in_truth(module, program, least * _looked_up(case, module, program))
    ]
    if not tables:
        return
    numbers = sum(module.num_parameters for module in tables)
    update = phase_share(case, "optimizer", unknown=0.0) * numbers / program.trainable_parameters
    zeros = sum(op.host_total_ns + op.device_total_ns for op in trace.top_ops if op.name in BACKWARD)
    share = min(1.0, update + max(zeros / max(trace.span_ns, 1), _seen_share(case, tables)))
    if share < case.limit(RULE, "min_share"):
        return
    table = max(tables, key=lambda module: module.num_parameters)
    ids = _looked_up(case, table, program)
    rows, place = int(table.settings.get("num_embeddings") or 0), _place(case, table)
    is_plain = program.optimizer.type_name == "SGD" and not program.optimizer.settings.get("momentum")
    others = f", and so is that of {counted(len(tables) - 1, 'other table')}" if tables[1:] else ""
    yield RULE.finding(
        message=f"the gradient of `{table.path}`{spoken(place)} is dense{others}: all of its {rows:,} rows are updated in each step, which looks up "
        f"at most {ids:,}; that takes {format_percent(share)} of the step{' together' if others else ''}",
        where=place,
        evidence={
            "rows": rows,
            "looked_up": ids,
            "update_share": update,
            "tables": [module.path for module in tables],
        },
        links=["/program/optimizer", "/program/modules"],
        cost=cost_of(case, share, "the table's part of the optimizer's phase, and zeros for its gradient"),
        gain=Gain(
            ratio_low=max(0.0, 1 - 1.15 * share),
            ratio_high=1 - 0.8 * share,
            method="removal: the update of rows that have no gradient; at best with what the memory for them costs elsewhere",
        ),
        confidence="high",
        advice=SGD if is_plain else ADAM,
        fix_class="exact" if is_plain else "semantic",
        resource="optimizer",
    )


def _seen_share(case: Case, tables: list[ModuleFact]) -> float:
    """What dense gradients of these tables take of a step, where its values were followed."""
    sizes = {
        (table.settings.get("num_embeddings"), table.settings.get("embedding_dim")): 0.0 for table in tables
    }
    for fact in case.dataflow.lookups if case.dataflow is not None else ():
        if (fact.rows, fact.width) in sizes:
            sizes[fact.rows, fact.width] = fact.gradient_share
    return of_step(case, sum(sizes.values()))


def _looked_up(case: Case, table: ModuleFact, program: Program) -> int:
    """Rows that a step looks up: as its values tell, else no more than the whole numbers that it is given."""
    rows = (table.settings.get("num_embeddings"), table.settings.get("embedding_dim"))
    seen = [
        fact.looked_up
        for fact in (case.dataflow.lookups if case.dataflow is not None else [])
        if (fact.rows, fact.width) == rows and fact.looked_up
    ]
    if seen:
        return round(max(seen))
    total = 0
    for tensor in program.inputs:
        count = 1
        for size in tensor.shape:
            count *= size
        total += count if tensor.dtype in LOOKED_UP else 0
    return total


def _is_sparse_in_truth(module: ModuleFact, program: Program, most: float) -> bool:
    """Whether a table is dense, large beside what is looked up, and not also the weight of an output layer."""
    rows, width = module.settings.get("num_embeddings"), module.settings.get("embedding_dim")
    if (
        module.type_name not in TABLES
        or module.settings.get("sparse")
        or not isinstance(rows, int)
        or not most
        or rows < most
    ):
        return False
    shapes = [
        (other.settings.get("out_features"), other.settings.get("in_features")) for other in program.modules
    ]
    return (rows, width) not in shapes


def _place(case: Case, table: ModuleFact) -> Place:
    """Where the table is built: the call whose result is given to an attribute of its name, else the first of its kind."""
    calls = [
        (module, call) for module in case.modules for call in module.calls(f"torch.nn.{table.type_name}")
    ]
    name = table.path.rpartition(".")[2]
    for module, call in sorted(
        calls, key=lambda hit: f".{name}" not in hit[0].source(hit[0].statement_of(hit[1]))
    ):
        function = module.class_of(call)
        return Place(
            file=module.path,
            line=call.lineno,
            function=None if function is None else function.name,
            module=table.path,
        )
    return Place(module=table.path)
