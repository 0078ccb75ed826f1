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
    (found,) = findings("PYR602", reducing(calls=40, elements=10_000, each_us=10))
    assert "in 40 messages of 39.1 KiB per step" in found.message
    assert found.cost.share == pytest.approx(400 / 1440, rel=0.05)


def test_one_bucket_with_the_same_bytes_is_silent_and_the_model_of_latency_predicts_it(
    findings, reducing, builder
):
    many = reducing(calls=40, elements=10_000, each_us=10)
    (found,) = findings("PYR602", many)
    builder.events.clear()
    one = reducing(calls=1, elements=400_000, each_us=12)
    assert findings("PYR602", one) == []
    assert found.advice.gain.ratio_low == pytest.approx(one.trace.span_ns / many.trace.span_ns, abs=0.03)


def test_large_messages_are_silent(findings, reducing):
    assert findings("PYR602", reducing(calls=10, elements=2_000_000, each_us=100)) == []


def test_small_messages_that_computing_hides_are_silent(findings, reducing):
    assert findings("PYR602", reducing(calls=10, elements=100, each_us=1, compute_us=10_000)) == []
