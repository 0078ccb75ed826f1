"""A small training program whose steps can be written with any speed, shared by the tests of this folder."""

from __future__ import annotations

import pytest

OPS = ("aten::conv2d", "aten::batch_norm", "aten::linear", "aten::softmax")
JITTER = (0, 1, -1, 2, -2, 0)


@pytest.fixture
def record(new_builder, tmp_path):
    """Writes a trace: `record(times={"aten::linear": 40}, rename={...}, steps=6)` gives it read back."""

    def write(name="a.json", *, times=(), rename=(), steps=6, device=True, dims=None, module=True, head=()):
        builder = new_builder(tmp_path, **dict(head))
        times, rename = dict(times), dict(rename)
        at = 0.0
        for i in range(steps):
            start = at
            at += 10
            for op in OPS:
                took = times.get(op, 20) + (JITTER[i % 6] / 10 if i else 0)
                args = {"Input Dims": dims} if dims else {}
                builder.op(rename.get(op, op), at, took + 10, **args)
                builder.op(f"{op}_inner", at + 1, 5)
                if device:
                    builder.launch(f"{op}_kernel", at + 6, at + 8, took)
                at += took + 12
            if module:
                builder.python("nn.Module: Net_0", start + 5, at - start - 4)
            builder.annotate(f"ProfilerStep#{i}", start, at + 5 - start)
            at += 5
        return builder.read(name)

    return write
