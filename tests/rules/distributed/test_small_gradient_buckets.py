from __future__ import annotations

import pytest

FIRES = {
    "per parameter": """
        import torch.distributed as dist
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)  # <-
    """,
    "named": """
        import torch
        for name, p in model.named_parameters():
            torch.distributed.all_reduce(p.grad.data, op=torch.distributed.ReduceOp.SUM)  # <-
    """,
    "small buckets": """
        from torch.nn.parallel import DistributedDataParallel as DDP
        model = DDP(model, bucket_cap_mb=1)  # <-
    """,
}

SILENT = {
    "a loss": "import torch.distributed as dist\nfor x in loader:\n    dist.all_reduce(loss)",
    "buffers": "import torch.distributed as dist\nfor b in model.buffers():\n    dist.all_reduce(b)",
    "the default": "from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model)",
    "larger": "from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model, bucket_cap_mb=100)",
    "one buffer of all gradients": "import torch.distributed as dist\ndist.all_reduce(flat_grad)",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_it_fires(lines, marked, text):
    assert lines("PYR602", text) == marked(text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_it_is_silent(lines, text):
    assert lines("PYR602", text) == []


def test_many_small_messages_are_found_in_a_trace(findings, reducing):
    (finding,) = findings("PYR602", reducing(calls=40, elements=10_000, each_us=10))
    assert finding.message.startswith(
        "40 all-reduces of 39.1 KiB per step take 400 µs (800 µs in 2 steps), all of it in the open"
    )
    assert finding.cost.share == pytest.approx(400 / 1440, rel=0.05)


def test_time_between_messages_that_the_host_issues_one_by_one_counts(findings, reducing):
    """Without sizes, as a trace without shapes has them: 20 × (5 µs + 30 µs idle before) after 1 ms of computing."""
    (finding,) = findings("PYR602", reducing(calls=20, elements=None, each_us=5, between_us=30))
    assert "20 all-reduces per step take 100 µs" in finding.message
    assert "the device waits 570 µs for the next ones" in finding.message
    assert finding.evidence["idle_between_ns"] == 2 * 19 * 30_000
    assert finding.evidence["exposed_ns"] == 2 * 20 * 5_000
    assert finding.cost.share == pytest.approx(
        (2 * 19 * 30 + 2 * 20 * 5) / (2 * (1000 + 30 + 20 * 35) + 20), rel=0.02
    )
    assert finding.advice.gain.ratio_low == pytest.approx(1 - finding.cost.share)


def test_what_idles_between_messages_is_not_waiting_for_launches_too(reducing):
    groups = reducing(calls=20, elements=None, each_us=5, between_us=30).trace.idle.groups
    by_cause = {group.cause: group.num_gaps for group in groups}
    assert by_cause["between_collectives"] == 2 * 19


def test_small_messages_between_layers_of_a_forward_pass_are_no_gradients(findings, reducing):
    assert findings("PYR602", reducing(calls=40, elements=10_000, each_us=10, backward=False)) == []


def test_long_messages_without_a_size_are_silent(findings, reducing):
    assert findings("PYR602", reducing(calls=20, elements=None, each_us=200)) == []


def test_one_bucket_with_the_same_bytes_is_silent_and_lies_within_the_prediction(findings, reducing, builder):
    many = reducing(calls=40, elements=10_000, each_us=10)
    (finding,) = findings("PYR602", many)
    builder.events.clear()
    one = reducing(calls=1, elements=400_000, each_us=12)
    assert findings("PYR602", one) == []
    ratio = one.trace.span_ns / many.trace.span_ns
    assert finding.advice.gain.ratio_low - 0.03 <= ratio <= finding.advice.gain.ratio_high


def test_large_messages_are_silent(findings, reducing):
    assert findings("PYR602", reducing(calls=10, elements=2_000_000, each_us=100)) == []


def test_small_messages_that_computing_hides_are_silent(findings, reducing):
    assert findings("PYR602", reducing(calls=10, elements=100, each_us=1, compute_us=10_000)) == []
