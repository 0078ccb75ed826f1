"""PYR517: operators on float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.source.module import Module
from pyrometer.trace.reporting.rank_report import report_rank

CODE = "PYR517"


@pytest.fixture
def traced(builder: Any, shapes: Any) -> Callable[[str], Case]:
    """`traced("double")`: a trace of products and copies of this type, beside a small one of float32."""

    def case(kind: str) -> Case:
        for i in range(3):
            start = i * 1000.0
            builder.annotate(f"ProfilerStep#{i}", start, 1000)
            builder.op("aten::mm", start + 10, 600, **shapes([256, 512], [512, 512], kind=kind))
            builder.op("aten::tanh", start + 620, 200, **shapes([256, 512], kind=kind))
            builder.op("aten::addmm", start + 830, 100, **shapes([16], [256, 512], [512, 16], kind="float"))
        return Case(target="test", trace=report_rank(builder.read()))

    return case


@pytest.fixture
def double(traced: Callable[[str], Case]) -> Case:
    """A trace of operators on float64."""
    return traced("double")


def with_source(case: Case, text: str) -> Case:
    return msgspec.structs.replace(case, modules=(Module.parse("mixing.py", text),))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import numpy as np\nimport torch\n\nmix = torch.from_numpy(np.random.normal(size=(4, 4)))\n", 4),
        ("import numpy as np\nimport torch\n\nraw = np.linspace(0, 1, 9) / 3\nmix = torch.tensor(raw)\n", 5),
        ("import torch\n\n\ndef step(x):\n    return x.double() @ x\n", 5),
        ("import torch\n\nmix = torch.ones(3, dtype=torch.float64)\n", 3),
    ],
)
def test_the_line_is_where_the_type_comes_in(
    double: Case, only: Callable[..., Finding], text: str, line: int
) -> None:
    finding = only(CODE, with_source(double, text))
    assert finding.where.line == line
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.8, abs=0.02)
    assert finding.advice.gain is not None
    assert (finding.advice.gain.ratio_low or 0) < (finding.advice.gain.ratio_high or 0) < 1


def test_arrays_with_a_type_are_not_where_it_comes_from(double: Case, only: Callable[..., Finding]) -> None:
    text = "import numpy as np\nimport torch\n\nmix = torch.from_numpy(np.ones((4, 4)).astype(np.float32))\n"
    assert only(CODE, with_source(double, text)).where.line != 4


def test_float32_is_left_alone(traced: Callable[[str], Case], findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, traced("float")) == []


def test_the_type_that_is_set_gives_the_same_with_fewer_digits(run: Callable[..., dict[str, Any]]) -> None:
    class Numpy:
        random = np.random.RandomState(0)
        float32 = np.float32

    x = torch.ones(2, 512)
    before = run(CODE, "Example", torch=torch, np=Numpy, x=x)["scores"]
    Numpy.random = np.random.RandomState(0)
    after = run(CODE, "Use instead", torch=torch, np=Numpy, x=x)["scores"]
    assert (before.dtype, after.dtype) == (torch.float64, torch.float32)
    torch.testing.assert_close(after, before.float(), atol=1e-3, rtol=1e-3)
