"""PYR101: reads of single values, in text, in golden device traces and in a real program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.workload.training import Training

CODE = "PYR101"


@pytest.mark.parametrize(
    "body",
    [
        "total += loss.item()  # <-",
        "history.append(loss.detach().item())  # <-",
        "total += float(loss)  # <-",
        "correct = int((scores.argmax(1) == targets).sum())  # <-",
        "history.extend(scores.argmax(1).tolist())  # <-",
        "broken = math.isnan(loss)  # <-",
        "if step % 2 and loss.item() > 3:  # <-\n    pass",
    ],
)
def test_finds_reads_of_a_tensor_in_a_loop_over_batches(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "if step % 100 == 0:\n    print(loss.item())",
        "total += loss.detach()",
        "size = float(inputs.shape[0])",
        "count = int(targets.numel())",
        "mean = np.zeros(3).mean().item()",
        "total += loss.cpu().item()",  # the copy is what waits
        "number = float(step)",
        "import torch\n\nvalue = torch.zeros(3).sum().item()",
        "import torch\n\ndef summary(model: torch.nn.Module) -> float:\n    return sum(p.norm().item() for p in model.parameters())",
        # made on the host
        "choice = torch.randint(0, 3, (1,)).item()",
        "count = int(torch.prod(torch.tensor(inputs.shape[1:])))",
        # lengths that lie on the host by contract
        "batch_sizes = inputs.relu()\nsize = int(batch_sizes[0])",
        "lengths = inputs.sum(dim=1)\npacked = nn.utils.rnn.pack_padded_sequence(inputs, lengths)\nlongest = int(lengths.max())",
        # a sampler works on the host
        (
            "import torch\n\nclass Weighted(torch.utils.data.Sampler):\n    def __init__(self, weights):\n"
            "        self.weights = torch.as_tensor(weights)\n\n    def __iter__(self):\n        for step in range(1000):\n"
            "            yield torch.multinomial(self.weights, 1).item()"
        ),
        # a message that is made when a check fails
        'check(loss > 0, lambda: f"the loss is {loss.item()}")',
        # what Python has to know before it goes on: which token was drawn, and how large something is
        (
            "import torch\n\ndef write(model: torch.nn.Module, ids, count, device):\n    for step in range(count):\n"
            "        token = model(ids).argmax().item()\n        if token == 2:\n            ids = start(token)\n"
        ),
        (
            "import torch\n\nclass Loss(torch.nn.Module):\n    def forward(self, errors: torch.Tensor, device):\n"
            "        count = int(errors.sum())\n        return torch.topk(errors, min(count, 9)).values / (count + errors)\n"
        ),
        # the answers of a network that is only run
        (
            "import torch\n\ndef label(model: torch.nn.Module, loader, device):\n    labels = []\n    for x in loader:\n"
            "        labels.extend(model(x.to(device)).argmax(1).tolist())\n    return labels\n"
        ),
        # for devices that cannot
        "if scores.is_mps:\n    total += loss.item()",
        'if scores.device.type == "mps":\n    total += loss.item()',
    ],
)
def test_is_silent_about_what_seldom_or_never_waits(silent: Any, body: str) -> None:
    silent(CODE, body)


def test_says_how_to_read_a_tensor_whole_where_it_is_read_element_by_element(
    matches: Any, in_loop: Any
) -> None:
    found = matches(
        CODE, in_loop("for one in scores.detach().mean(dim=1):\n    total = max(total, one.item())")
    )
    assert len(found) == 1
    assert "scores.detach().mean(dim=1).tolist()" in found[0].advice


SOURCE = """\
import torch


def step(model, batch):
    loss = model(batch)
    scale = float(len(batch))
    return loss.item() * scale
"""


def test_a_device_trace_and_the_source_give_the_line_and_the_idle_time(
    builder: Any, stalling: Any, evidence_of: Any, only: Any
) -> None:
    finding = only(CODE, evidence_of(stalling(builder, "aten::item"), "train.py", SOURCE))
    assert (finding.where.file, finding.where.line) == ("train.py", 7)
    assert (finding.severity, finding.confidence) == ("warning", "high")
    assert finding.cost.share == pytest.approx(
        2 * 695 / 3000
    )  # from the end of each copy to the next step's kernel
    assert finding.advice.gain.method == "trace what-if: replayed without the waits"
    assert finding.advice.gain.ratio_high < 0.8
    assert "`loss.item()` in step (train.py:7)" in finding.message
    assert finding.links == ["/trace/sync_points/0"]


def test_without_source_the_function_is_named(
    builder: Any, stalling: Any, evidence_of: Any, only: Any
) -> None:
    finding = only(CODE, evidence_of(stalling(builder, "aten::item")))
    assert (finding.where.line, finding.where.function) == (4, "step")
    assert finding.confidence == "medium"


def test_a_wait_that_leaves_the_device_busy_costs_nothing(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    busy = stalling(builder, "aten::item")
    for i in range(3):  # a second stream has work all the time
        busy.launch("other", i * 1000 + 5, i * 1000 + 15, 990, stream=8)
    assert findings(CODE, evidence_of(busy)) == []


def test_a_program_that_fetches_every_loss_on_a_cpu_is_told_the_line(
    traced: Callable[[str, str], Case], only: Callable[..., Finding]
) -> None:
    finding = only(CODE, traced("item_each_step", "workload"))
    assert (finding.where.line, finding.where.function) == (21, "logged_loss")
    assert (finding.severity, finding.confidence) == (
        "warning",
        "medium",
    )  # nothing waits, the calls cost enough
    assert finding.evidence["calls_per_step"] == 512
    assert "for loss in losses.flatten().tolist()" in finding.advice.rewrite
    assert finding.cost.share > 0.03


def test_the_mended_program_is_left_alone(
    traced: Callable[[str, str], Case], findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, traced("item_each_step", "fixed")) == []


def test_a_few_reads_per_step_on_a_cpu_are_not_worth_a_word(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    for i in range(3):
        builder.annotate(f"ProfilerStep#{i}", i * 1000, 1000)
        builder.op("aten::mm", i * 1000, 900)
        builder.op("aten::item", i * 1000 + 950, 2)
    assert findings(CODE, evidence_of(builder)) == []


def test_many_reads_that_cost_next_to_nothing_on_a_cpu_are_not_worth_a_word(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    for i in range(3):
        start = i * 100_000
        builder.annotate(f"ProfilerStep#{i}", start, 100_000)
        builder.python("train.py(4): step", start + 1, 99_000)
        builder.op("aten::mm", start + 2, 90_000)
        for k in range(50):
            builder.op("aten::item", start + 91_000 + k * 10, 2)
    assert findings(CODE, evidence_of(builder, "train.py", SOURCE)) == []


ELEMENTS = """\
import torch


def step(model, batch, losses: torch.Tensor):
    worst = 0.0
    for loss in losses:
        worst = max(worst, loss.item())
    return worst


for batch in loader:
    step(model, batch, losses)
"""


def test_at_best_all_goes_that_is_done_to_read_the_elements_one_by_one(
    builder: Any, evidence_of: Any, only: Callable[..., Finding], untraced: Callable[[float], Any]
) -> None:
    for i in range(3):
        start = i * 1000
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.python("train.py(4): step", start, 900)
        builder.op("aten::mm", start, 300)
        builder.op("aten::unbind", start + 300, 100)
        for k in range(50):
            builder.op("aten::item", start + 400 + k * 10, 4)
    gain = only(CODE, evidence_of(builder, "train.py", ELEMENTS)).advice.gain
    assert gain is not None
    assert gain.ratio_low == pytest.approx(
        0.4, abs=0.01
    )  # without unbind, the reads and the Python between them
    slow = evidence_of(builder, "train.py", ELEMENTS, capture=untraced(0.5e-3))
    wide = only(CODE, slow).advice.gain
    assert wide is not None
    # had the profiler lengthened only the rest, by what it takes for so many entries
    assert wide.ratio_low == pytest.approx(0.28, abs=0.02)
    assert wide.ratio_high == pytest.approx(0.48, abs=0.02)  # or only the calls


def test_an_optimizer_that_counts_its_steps_on_the_host_is_left_alone(
    observe: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(30)])
    batches = [(torch.randn(2, 2), torch.randn(2, 2)) for _ in range(4)]
    optimizer = torch.optim.AdamW(model.parameters())
    work = Training(model, torch.nn.functional.mse_loss, optimizer, batches)
    evidence = observe(work, "trace")
    assert evidence.trace is not None
    assert [point for point in evidence.trace.synchronisation.points if point.name == "aten::item"] == []
    assert findings(CODE, evidence) == []


def test_reading_the_tensor_whole_gives_the_same_numbers_in_one_call(ops_of: Any) -> None:
    losses = torch.rand(50)

    def one_by_one() -> float:
        worst = 0.0
        for loss in losses:
            worst = max(worst, loss.item())
        return worst

    def whole() -> float:
        worst = 0.0
        for loss in losses.tolist():
            worst = max(worst, loss)
        return worst

    slow, before = ops_of(one_by_one)
    fast, after = ops_of(whole)
    assert slow == fast
    assert before["_local_scalar_dense"] == 50
    assert after["_local_scalar_dense"] == 0


def test_adding_up_on_the_device_gives_the_same_sum_with_one_read(ops_of: Any) -> None:
    losses = list(torch.arange(20.0))
    eager, before = ops_of(lambda: sum(loss.item() for loss in losses))
    total, after = ops_of(lambda: sum(losses, start=torch.zeros(())).item())
    assert eager == total
    assert (before["_local_scalar_dense"], after["_local_scalar_dense"]) == (20, 1)
