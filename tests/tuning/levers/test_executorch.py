"""The file for phones computes what the model computes, in a process of its own as in a search.

ExecuTorch brings some twenty packages along, which nothing else here needs: `pip install 'pyrometer[mobile]'` runs these tests.
"""

from __future__ import annotations

import importlib.util

import pytest

from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.lever import missing_packages
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Limits
from pyrometer.tuning.trials.laboratory import Laboratory
from pyrometer.workload.target import parse_target

IS_INSTALLED = importlib.util.find_spec("executorch") is not None
MOBILE = LeverChoice(lever="executorch")


@pytest.mark.slow
@pytest.mark.skipif(not IS_INSTALLED, reason="ExecuTorch is not installed")
@pytest.mark.parametrize("name", ["mlp", "convolutions"])
def test_one_file_computes_the_same(programs, tmp_path, name):
    lab = Laboratory(protocol.Source(spec=parse_target(f"{programs}:{name}").spec), tmp_path, Limits())
    with lab.open(()) as baseline:
        lab.keep_reference(baseline)
        with lab.open((MOBILE,)) as candidate:
            assert candidate.opened.not_applied is None
            assert candidate.opened.fixed_shapes
            numerics = lab.check(candidate)
    assert numerics.passes
    assert len(numerics.counted) > 2
    program, made = lab.files_of((MOBILE,))["executorch"]
    assert program.endswith(".pte")
    assert made.endswith(".json")


@pytest.mark.skipif(IS_INSTALLED, reason="ExecuTorch is installed")
def test_without_it_the_install_line_is_told():
    assert missing_packages(find_lever("executorch")) == "needs executorch: pip install 'pyrometer[mobile]'"
