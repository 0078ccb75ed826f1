"""PYR127: places that no other rule explains."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pyrometer.rules.case import Case
from pyrometer.rules.explain import diagnose_case
from pyrometer.rules.finding import Finding

CODE = "PYR127"
Sampled = Callable[..., Case]


STEP = """
def lookup(self, x):
    key = hashlib.sha256(x.numpy().tobytes()).hexdigest()
    return self.model(x), key
"""


def test_a_costly_place_is_told_with_what_it_does(sampled: Sampled, only: Callable[..., Finding]) -> None:
    finding = only(
        CODE,
        sampled(
            STEP, {3: {"hash hashlib.sha256": 0.4, "python python": 0.1}, 4: {"operator self.model": 0.5}}
        ),
    )
    assert (finding.where.line, finding.scope) == (3, "general")
    assert "`hashlib.sha256` (40.0 %)" in finding.message
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.5)
    assert "key" in finding.advice.title


def test_a_network_at_work_is_left_alone(sampled: Sampled, findings: Callable[..., list[Finding]]) -> None:
    lines = {
        3: {"python python": 0.1},
        4: {"operator self.model": 0.6, "backward loss.backward": 0.2, "data next": 0.1},
    }
    assert findings(CODE, sampled(STEP, lines)) == []


@pytest.mark.parametrize(
    "program", [("video_encoder", "fixed"), ("inefficient_op", "fixed"), ("tiny_ops", "fixed")]
)
def test_clean_programs_have_none(
    traced: Callable[..., Case], findings: Callable[..., list[Finding]], program: tuple[str, str]
) -> None:
    assert findings(CODE, traced(*program)) == []


def test_a_finding_that_knows_more_takes_its_place(sampled: Sampled) -> None:
    case = sampled(STEP, {3: {"fsync os.fsync": 0.8}})
    assert [finding.code for finding in diagnose_case(case).findings] == ["PYR120"]


def test_operators_that_are_seldom_large_are_told_at_their_line(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    source = "import torch\n\n\ndef rank(x):\n    y = torch.relu(x)\n    return torch.sort(y)\n"
    for i in range(3):
        start = i * 1000.0
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.python("train.py(4): rank", start + 1, 990)
        builder.op("aten::relu", start + 10, 300)
        builder.op("aten::sort", start + 320, 600)
    finding = only(CODE, evidence_of(builder, "train.py", source))
    assert finding.where.op == "aten::sort"
    assert finding.cost.share == pytest.approx(0.6, abs=0.02)


def test_a_traced_call_that_samples_do_not_know_as_long_waited_for_another_program(
    builder: Any, evidence_of: Any, sampled: Sampled, findings: Callable[..., list[Finding]]
) -> None:
    source = "import torch\n\n\ndef observe(x):\n    y = x * 2\n    return torch.stack([y, y])\n"
    builder.annotate("ProfilerStep#0", 0.0, 1000)
    builder.python("train.py(4): observe", 1, 990)
    builder.op("aten::stack", 10, 600)
    case = evidence_of(builder, "train.py", source)
    assert [finding.where.op for finding in findings(CODE, case)] == ["aten::stack"]
    host = sampled(source, {6: {"operator torch.stack": 0.02}}).host
    assert findings(CODE, msgspec.structs.replace(case, host=host)) == []


def test_a_key_that_is_there_need_not_be_made(run: Callable[..., dict[str, Any]]) -> None:
    class Server:
        def __init__(self) -> None:
            self.cache: dict[str, str] = {}

        def model(self, _x: object) -> str:
            return "answer"

    class Array:
        def numpy(self) -> Array:
            return self

        def tobytes(self) -> bytes:
            return b"x"

    before = run(CODE, "Example", hashlib=hashlib)["forward"](Server(), Array())
    after = run(CODE, "Use instead")["forward"](Server(), Array(), "first")
    assert before == after == "answer"


BUFFER = """
def sample(self, size):
    rows = random.sample(self.items, size)
    return torch.tensor(rows)
"""


def test_making_a_tensor_of_objects_is_no_layer(sampled: Sampled, only: Callable[..., Finding]) -> None:
    finding = only(CODE, sampled("import torch\n" + BUFFER, {5: {"operator torch.tensor": 0.7}}))
    assert finding.where.line == 5
    assert "np.stack" in finding.advice.title
