"""A really recorded trace whose names hold quotes, which torch's exporter may write unescaped."""

from __future__ import annotations

import json

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from pyrometer.trace.reading.read import read_trace

NAMES = ['a"b', 'say "x", "y": 1', '{"k": "v"}', 'end"', '"start', '}, {"ph": "X"', '"', "plain"]


def test_every_annotation_keeps_its_name(tmp_path):
    path = tmp_path / "trace.json"
    scope: dict = {}
    exec(compile("def step(x):\n    return x + 1\n", '/srv/we"ird, {odd}: [1].py', "exec"), scope)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True) as profiler:
        for name in NAMES:
            with record_function(name):
                scope["step"](torch.ones(2))
    profiler.export_chrome_trace(str(path))

    rank = read_trace(path).rank()
    events = rank.tables["events"]
    assert events.filter(events["kind"] == "user_annotation")["name"].to_list() == NAMES
    frames = [name for name in events["name"].drop_nulls() if "ird, {odd}: [1].py(1): step" in name]
    assert len(frames) == len(NAMES)
    assert rank.info.num_lost_events == 0
    try:
        json.loads(path.read_bytes())
    except ValueError:
        (repair,) = rank.info.repaired
        assert repair.code == "unescaped_quote"
        assert repair.num_events >= len(NAMES) - 1
    else:  # an exporter that escapes
        assert rank.info.repaired == []
