"""What a search asks of the diagnosis: a target that cannot be loaded ends it at once."""

from __future__ import annotations

import time

import pytest

from pyrometer.errors import InputError
from pyrometer.tuning.search import advised
from pyrometer.tuning.search.budget import Budget
from pyrometer.workload.target import parse_target


def test_a_target_that_cannot_be_loaded_ends_the_search_at_once(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text("def workload():\n    return None, None\n")
    monkeypatch.setattr(advised, "run_fresh", lambda function, request, timeout_s: function(request))
    target = parse_target(f"{tmp_path / 'model.py'}:nope")
    with pytest.raises(InputError, match="nope"):
        advised.findings_of(target, lambda *_: None, Budget(600.0, now=time.monotonic))
