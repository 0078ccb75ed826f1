"""What is computed for all and read for a few."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrometer.dataflow import build
from pyrometer.dataflow.analyses.partly_used import partly_used
from pyrometer.dataflow.build import build_report
from pyrometer.dataflow.graph import FlowGraph
from pyrometer.dataflow.report import PartlyUsed
from pyrometer.workload.training import Training

Flow = Callable[..., FlowGraph]

HIDDEN = torch.rand(4, 10, 8)
HEAD = nn.Linear(8, 30)
LABELS = torch.where(torch.arange(40) % 10 == 0, 1, -100)
CHOSEN = torch.arange(40) % 10 == 0
GATE = functional.one_hot(torch.arange(40) % 8, 8).float()


def trained(loss: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    def step() -> torch.Tensor:
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        HEAD.zero_grad()
        return value.detach()

    return step


LATE: dict[str, Callable[[], torch.Tensor]] = {
    "the last position": lambda: HEAD(HIDDEN)[:, -1].argmax(-1),
    "rows of a mask": lambda: torch.tanh(HEAD(HIDDEN)).flatten(0, 1)[CHOSEN],
    "positions that the loss ignores": lambda: functional.cross_entropy(HEAD(HIDDEN).view(-1, 30), LABELS),
    "an index": lambda: HEAD(HIDDEN)[torch.tensor([1])],
    "a crop": lambda: (torch.rand(3, 40, 40) * 2).clamp(0, 1).pow(2)[:, :8, :8],
    "the diagonal": lambda: (HIDDEN[0] @ HIDDEN[0].T).diagonal() + 1,
    "a gate that is mostly closed": lambda: (GATE.unsqueeze(-1)[:, 3] * HEAD(HIDDEN).flatten(0, 1)).sum(0),
    "joined before the selection": lambda: torch.stack([HEAD(HIDDEN).sigmoid(), HEAD(HIDDEN)])[:, :, 0],
}


@pytest.mark.parametrize("step", LATE.values(), ids=LATE)
def test_late_selections_are_found_with_the_part_that_is_used(
    flow: Flow, step: Callable[[], torch.Tensor]
) -> None:
    facts = partly_used(flow(step, steps=2))
    assert facts
    assert all(0 < fact.used < 0.4 for fact in facts)
    assert facts[0].where.file == __file__


def test_the_backward_pass_of_what_is_ignored_counts(flow: Flow) -> None:
    def fact_of(step: Callable[[], torch.Tensor]) -> PartlyUsed:
        return partly_used(flow(step, steps=2))[0]

    late = LATE["positions that the loss ignores"]
    assert fact_of(trained(late)).seconds_per_step > 2 * fact_of(late).seconds_per_step
    assert fact_of(late).used == pytest.approx(0.1)


EARLY: dict[str, Callable[[], object]] = {
    "selected first": lambda: HEAD(HIDDEN[:, -1]).argmax(-1),
    "all of it returned": lambda: _with_its_last(HEAD(HIDDEN)),
    "all parts read": lambda: sum(part.sum() for part in HEAD(HIDDEN).chunk(3, dim=-1)),
    "all positions one by one": lambda: _one_by_one(HEAD(HIDDEN).tanh()),
    "a softmax needs its whole row": lambda: functional.cross_entropy(
        HEAD(HIDDEN).view(-1, 30), LABELS.abs() % 30
    ),
    "probability of one class": lambda: HEAD(HIDDEN).log_softmax(-1)[..., 3],
    "the best of a sorted row": lambda: HEAD(HIDDEN)[0].sort(descending=True).values[:, :3] + 1,
    "the end of a running sum": lambda: HEAD(HIDDEN)[0].cumsum(1)[:, -1] + 1,
    "most is read": lambda: HEAD(HIDDEN)[:, 3:].sum() + 1,
    "recurrence": lambda: LSTM(HIDDEN)[0][:, -1],
    "attention mixes positions": lambda: functional.scaled_dot_product_attention(
        HIDDEN, HIDDEN * 2, HIDDEN * 3
    )[:, -1],
}
LSTM = nn.LSTM(8, 8, batch_first=True)


def _one_by_one(scores: torch.Tensor) -> torch.Tensor:
    return torch.stack([scores[:, t].amax() for t in range(10)])


def _with_its_last(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return scores, scores[:, -1]


@pytest.mark.parametrize("step", EARLY.values(), ids=EARLY)
def test_what_is_read_or_needed_as_a_whole_is_left_alone(flow: Flow, step: Callable[[], object]) -> None:
    assert not [fact for fact in partly_used(flow(step, steps=2)) if fact.share > 0.3]


def test_the_body_before_a_head_on_one_position_is_left_alone(flow: Flow) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def loss(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        return model(batch)[:, 0].square().mean()  # type: ignore[no-any-return]

    work = Training(model, loss, torch.optim.SGD(model.parameters(), lr=0.1), [HIDDEN])
    assert sum(fact.share for fact in partly_used(flow(work, steps=2))) < 0.1


@pytest.mark.parametrize(
    "given", [(HIDDEN, HIDDEN, HIDDEN), (HIDDEN[:, :3], HIDDEN, HIDDEN)], ids=["self", "keys as values"]
)
def test_attention_to_itself_read_in_part_is_followed(flow: Flow, given: tuple[torch.Tensor, ...]) -> None:
    heads = [each[:, None].contiguous() for each in dict.fromkeys(given)]
    query, key = heads[0], heads[-1]
    report = build_report(
        flow(lambda: functional.scaled_dot_product_attention(query * 1, key, key)[..., 0, :] + 1, steps=2)
    )
    assert report.notes == []


def test_selections_of_single_numbers_select_nothing(flow: Flow) -> None:
    at = torch.tensor(0)
    graph = flow(lambda: (HIDDEN.sum().gather(0, at), HIDDEN.sum().index_select(0, at)))
    assert build_report(graph).notes == []


def test_an_analysis_that_fails_leaves_the_others(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    def repeated(_graph: FlowGraph) -> list[None]:
        raise ZeroDivisionError("of nothing")

    monkeypatch.setattr(build, "repeated", repeated)
    report = build_report(flow(LATE["the last position"], steps=2))
    assert report.partly_used
    assert report.notes[0].startswith("repeated could not be read: ZeroDivisionError: of nothing")
