"""PYR509: dropout that evaluation does not switch off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
from msgspec.structs import replace
from torch import nn
from torch.nn import functional

from pyrometer.source.edit import apply_edits
from pyrometer.workload.inference import Inference

CODE = "PYR509"


@pytest.mark.parametrize(
    "body",
    [
        "return functional.dropout(x, 0.1)  # <-",
        "return functional.dropout(x, p=self.p, inplace=True)  # <-",
        "return functional.dropout2d(self.norm(x))  # <-",
    ],
)
def test_finds_functional_dropouts_that_are_always_on(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "return functional.dropout(x, 0.1, training=self.training)",
        "return functional.dropout(x, 0.1, self.training)",
        "return functional.dropout(x, 0.1, training=True)",  # said on purpose
        "return functional.dropout(x, 0.0)",
        "return functional.dropout(x, **self.options)",
        "if self.training:\n    x = functional.dropout(x, 0.1)\nreturn x",
        "return functional.alpha_dropout(x, 0.1)",  # off by default
        "if drops and x.ndim > 1:\n    x = functional.dropout(x, 0.1)\nreturn x",  # the caller says when
        "import torch\nfrom torch.nn import functional\n\ndef augment(x):\n    return functional.dropout(x, 0.1)\n",
    ],
)
def test_is_silent_about_dropouts_that_know_their_mode(silent: Any, body: str) -> None:
    silent(CODE, body)


TEXT = """\
import torch
from torch import nn
from torch.nn import functional

class Head(nn.Module):
    def forward(self, größe):
        return functional.dropout({arguments})

def run(x):
    model = Head().eval()
    return model(x), model.train()(x)
"""


@pytest.mark.parametrize(
    "arguments", ["größe, 0.5", "größe", "größe, p=0.5,", "größe.abs(),\n            p=0.25,\n        "]
)
def test_the_fix_switches_it_off_in_evaluation_and_leaves_training_alone(
    matches: Callable[..., list[Any]], run_both: Callable[..., tuple[Any, Any]], arguments: str
) -> None:
    text = TEXT.format(arguments=arguments)
    (match,) = matches(CODE, text)
    assert match.fix.fix_class == "semantic"
    x = torch.rand(64, 64)
    (evaluated, _), (fixed, trained) = run_both(text, apply_edits(text, match.fix.edits), "run", x)
    assert (evaluated == 0).any()
    assert torch.equal(fixed, x)
    assert (trained == 0).any()


class Head(nn.Module):
    def __init__(self, *, on: bool) -> None:
        super().__init__()
        self.on = on

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.dropout(x, 0.5, training=self.on or self.training)


def test_an_inference_that_draws_is_an_error(observe: Any, only: Any) -> None:
    finding = only(CODE, observe(Inference(Head(on=True), torch.ones(4, 4)), "trace", "program"))
    assert finding.severity == "error"
    assert finding.evidence["active_dropouts"] == 1
    assert "random" in finding.message


def test_an_inference_that_does_not_is_fine(observe: Any, findings: Any) -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.Dropout(), Head(on=False))
    assert findings(CODE, observe(Inference(model, torch.ones(256, 256)), "program")) == []


def test_dropouts_that_are_off_in_a_short_step_are_worth_a_word(
    observe: Any, only: Any, findings: Any
) -> None:
    model = nn.Sequential(*[nn.Dropout() for _ in range(20)])
    seen = observe(Inference(model, torch.ones(4)), "program", "measurement")
    short, long = (msgspec.structs.replace(seen.measurement, median_s=one) for one in (1e-4, 1.0))
    finding = only(CODE, replace(seen, measurement=short))
    assert (finding.severity, finding.advice.fix_class) == ("info", "exact")
    assert finding.cost.share == pytest.approx(20 * 3.4e-6 / 1e-4)
    assert findings(CODE, replace(seen, measurement=long)) == []
    assert torch.equal(nn.Identity()(torch.ones(4)), model.eval()(torch.ones(4)))
