"""Results and gradients that nobody reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from pyrometer.dataflow.analyses.unread import unread
from pyrometer.dataflow.graph import FlowGraph
from pyrometer.workload.training import Training

Flow = Callable[..., FlowGraph]


class Probe:
    """Climbs along the input's gradient."""

    def __init__(self, *, whole: bool, frozen: bool = False) -> None:
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)).requires_grad_(not frozen)
        self.whole = whole

    def __call__(self) -> torch.Tensor:
        x = torch.zeros(2, 8)
        for _ in range(3):
            x.requires_grad_()
            score = self.net(x).sum()
            if self.whole:
                self.net.zero_grad()
                score.backward()  # <-
                gradient = x.grad
            else:
                (gradient,) = torch.autograd.grad(score, x)
            assert gradient is not None
            x = x.detach() + gradient.sign()
        return x


def test_gradients_of_weights_that_an_attack_throws_away_are_found(flow: Flow) -> None:
    facts = [fact for fact in unread(flow(Probe(whole=True))) if fact.what == "gradients"]
    assert len(facts) == 1
    assert facts[0].num_leaves == 4
    assert facts[0].where.source is None
    assert facts[0].where.line == Probe.__call__.__code__.co_firstlineno + 7
    assert "aten::mm" in facts[0].operators


def test_asking_for_the_inputs_gradient_alone_leaves_none(flow: Flow) -> None:
    assert not unread(flow(Probe(whole=False)))
    assert not unread(flow(Probe(whole=True, frozen=True)))


def train(model: nn.Module, part: nn.Module) -> Training:
    return Training(
        model,
        functional.mse_loss,
        torch.optim.Adam(part.parameters()),
        [(torch.rand(4, 8), torch.rand(4, 3))],
    )


def test_a_part_that_no_optimizer_holds_gets_gradients_for_nobody(flow: Flow) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
    found = [fact for fact in unread(flow(train(model, model[2]))) if fact.what == "gradients"]
    assert found
    model[0].requires_grad_(False)
    assert not unread(flow(train(model, model[2])))


def test_a_training_that_trains_all_computes_nothing_for_nobody(flow: Flow) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 3))
    assert not unread(flow(train(model, model)))


class Metric:
    """Computes a metric, and perhaps looks at it."""

    def __init__(self, use: Callable[[torch.Tensor], Any]) -> None:
        self.use = use
        self.last: Any = None

    def __call__(self) -> torch.Tensor:
        scores = torch.rand(20, 5)
        self.last = self.use((scores.sort(1).values[:, -1] - scores.mean(1)).abs().mean())
        return scores.sum()


def test_a_metric_that_is_overwritten_before_anyone_reads_it_is_found(flow: Flow) -> None:
    facts = unread(flow(Metric(lambda value: value)))
    assert [fact.what for fact in facts] == ["results"]
    assert "aten::sort" in facts[0].operators


def test_what_is_read_returned_or_kept_is_left_alone(flow: Flow) -> None:
    kept: list[torch.Tensor] = []
    for use in (float, lambda value: value.numpy(), lambda value: value.tolist(), kept.append):
        assert not unread(flow(Metric(use)))


class Detector(nn.Module):
    """A model with a part of which it drops the results."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.aside = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.aside(x)
        answer: torch.Tensor = self.body(x).relu()
        return answer


def dropping(*, one_is_read: bool = False) -> Callable[[], None]:
    """A step that times a model as programs do, and does not look at its answers."""
    first, second = Detector(), Detector()

    def step() -> None:
        with torch.inference_mode():
            first(torch.randn(2, 8))
            answer = second(torch.randn(2, 8))
            if one_is_read:
                answer.sum().item()

    return step


def test_what_models_return_to_a_step_that_only_times_them_counts_as_read(flow: Flow) -> None:
    facts = unread(flow(dropping()))
    assert {fact.modules[0] for fact in facts} == {"aside"}, "what a model itself drops is told"


def test_a_model_that_is_asked_beside_one_whose_answer_is_read_is_told(flow: Flow) -> None:
    modules = {module for fact in unread(flow(dropping(one_is_read=True))) for module in fact.modules}
    assert modules >= {"aside", "body"}
