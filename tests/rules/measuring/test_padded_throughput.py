"""PYR007: padding counted as throughput."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

HEAD = "import time, torch\n"

FIRES = {
    "elements of the padded tensor": """
def rate(model, ids, attention_mask):
    start = time.time()
    model(ids, attention_mask)
    return ids.numel() / (time.time() - start)  # <-
""",
    "a product with the length": """
def rate(model, batch, batch_size, seq_len):
    start = time.time()
    model(batch["input_ids"], batch["attention_mask"])
    took = time.time() - start
    return batch_size * seq_len / took  # <-
""",
}

SILENT = {
    "the mask is counted": """
def rate(model, ids, attention_mask):
    start = time.time()
    model(ids, attention_mask)
    return attention_mask.sum() / (time.time() - start)
""",
    "nothing is padded": """
def rate(model, ids, batch_size, seq_len):
    start = time.time()
    model(ids)
    return batch_size * seq_len / (time.time() - start)
""",
    "samples are counted": """
def rate(model, ids, attention_mask, batch_size):
    start = time.time()
    model(ids, attention_mask)
    return batch_size / (time.time() - start)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_quotient(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR007", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR007", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR007")


def test_tells_both_throughputs(findings: Callable[..., list[Finding]], measured: Callable[..., Any]) -> None:
    (finding,) = findings("PYR007", Case(target="a", measurement=measured(padding_ratio=0.36)))
    assert finding.evidence["throughput_by_shape"] == pytest.approx(5000)
    assert (
        "36 % of the places are padding: 5.00 k tokens/s by shape are 3.20 k tokens/s of data"
        in finding.message
    )


@pytest.mark.parametrize("share", [None, 0.0, 0.05])
def test_little_padding_is_no_matter(
    share: float | None, findings: Callable[..., list[Finding]], measured: Callable[..., Any]
) -> None:
    assert findings("PYR007", Case(target="a", measurement=measured(padding_ratio=share))) == []


def test_a_workload_with_a_mask_is_told(
    observe: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    import pyrometer as pm

    class Masked(torch.nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return x * mask

    mask = torch.zeros(4, 10, dtype=torch.bool)
    mask[:, :4] = True
    work = pm.Inference(Masked(), (torch.randn(4, 10), mask), unit="tokens", mask=1)
    (finding,) = findings("PYR007", observe(work, "measurement"))
    assert finding.evidence["padding_ratio"] == pytest.approx(0.6)


def test_the_replacement_counts_data_only(
    run: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    ids, mask = torch.zeros(2, 10), torch.zeros(2, 10)
    mask[:, :3] = 1
    rates = [
        run("PYR007", heading)["rate"](lambda *_: None, ids, mask) for heading in ("Example", "Use instead")
    ]
    assert rates == [20, 6]
