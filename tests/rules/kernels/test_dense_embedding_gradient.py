"""PYR518: embeddings with dense gradients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrometer.bench.measurement import PhaseTime
from pyrometer.dataflow.report import DataflowReport, TableLookup
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.rules.flowing import of_step
from pyrometer.workload.training import Training

CODE = "PYR518"


class Scores(nn.Module):
    def __init__(self, rows: int, *, sparse: bool = False, tied: bool = False) -> None:
        super().__init__()
        self.items = nn.Embedding(rows, 8, sparse=sparse)
        self.out = nn.Linear(8, rows if tied else 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.items(ids).mean(dim=1))  # type: ignore[no-any-return]


def training(rows: int = 20_000, make: Any = torch.optim.Adam, **options: bool) -> Training:
    model = Scores(rows, **options)
    optimizer = make(model.parameters()) if make is not torch.optim.SGD else make(model.parameters(), lr=0.1)
    return Training(
        model,
        functional.cross_entropy,
        optimizer,
        [(torch.randint(0, rows, (4, 8)), torch.zeros(4, dtype=torch.long))],
    )


@pytest.fixture(scope="module")
def dense(observe: Callable[..., Case]) -> Case:
    """A table of which 32 of 20,000 rows are looked up."""
    return in_phase(observe(training(), "trace", "program", sources=[Path(__file__)]))


def in_phase(seen: Case, share: float = 0.8) -> Case:
    """The same with an optimizer that takes this share of the step."""

    class Measured:
        phases = (PhaseTime(name="optimizer", median_s=share, mean_s=share, share=share),)
        complete, median_s, ci_low_s = True, 1.0, 1.0

    return msgspec.structs.replace(seen, measurement=Measured())


def test_a_table_of_which_few_rows_are_looked_up_is_told(dense: Case, only: Callable[..., Finding]) -> None:
    finding = only(CODE, dense)
    assert finding.where.module == "items"
    assert finding.where.line == next(
        number
        for number, line in enumerate(Path(__file__).read_text(encoding="utf-8").splitlines(), 1)
        if "nn.Embedding(" in line
    )
    assert (finding.evidence["rows"], finding.evidence["looked_up"]) == (20_000, 36)  # with four labels
    assert "SparseAdam" in finding.advice.title
    assert finding.advice.fix_class == "semantic"


@pytest.mark.parametrize(
    "options", [{"rows": 100}, {"tied": True}, {"sparse": True, "make": torch.optim.SGD}]
)
def test_small_tied_and_sparse_ones_are_left_alone(
    observe: Any, findings: Any, options: dict[str, Any]
) -> None:
    assert findings(CODE, in_phase(observe(training(**options), "trace", "program"))) == []


def test_with_plain_descent_sparse_gradients_give_the_same(
    observe: Any, only: Callable[..., Finding]
) -> None:
    finding = only(CODE, in_phase(observe(training(make=torch.optim.SGD), "trace", "program")))
    assert finding.advice.fix_class == "exact"
    weights = []
    for sparse in (False, True):
        table = nn.Embedding.from_pretrained(torch.ones(50, 4), freeze=False, sparse=sparse)
        optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
        for ids in ([1, 2, 2], [2, 7]):
            optimizer.zero_grad()
            table(torch.tensor(ids)).square().sum().backward()
            optimizer.step()
        weights.append(table.weight.detach())
    torch.testing.assert_close(*weights)


def test_the_sparse_optimizer_touches_only_rows_that_were_looked_up(
    run: Callable[..., dict[str, Any]],
) -> None:
    made = run(CODE, "Use instead", torch=torch)
    before = made["items"].weight.detach().clone()
    made["items"](torch.tensor([3, 5])).sum().backward()
    made["optimizer"].step()
    changed = (made["items"].weight.detach() != before).any(dim=1).nonzero().flatten()
    assert changed.tolist() == [3, 5]


def followed(seen: Case, looked_up: float, share: float) -> Case:
    """The same where the steps' values were followed."""
    lookup = TableLookup(
        where=Place(), rows=20_000, width=8, looked_up=looked_up, trained=True, gradient_share=share
    )
    flow = DataflowReport(num_steps=4, calls_per_step=9, step_operator_s=1.0, lookups=[lookup])
    return msgspec.structs.replace(seen, dataflow=flow)


def test_rows_are_counted_and_gradients_timed_where_values_are_known(
    dense: Case, findings: Any, only: Callable[..., Finding]
) -> None:
    seen = followed(in_phase(dense, share=0.0), 20, share=0.9)
    finding = only(CODE, seen)
    assert finding.evidence["looked_up"] == 20
    assert finding.cost is not None
    assert finding.cost.share is not None
    assert of_step(seen, 0.9) <= finding.cost.share < 1  # of the operators' part of the step
    assert findings(CODE, followed(in_phase(dense), 9_000, share=0.5)) == []  # nearly half of the table
