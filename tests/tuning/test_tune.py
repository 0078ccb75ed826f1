"""What `pm.tune` refuses before anything is tried."""

from __future__ import annotations

import pytest

import pyrometer as pm
from pyrometer.errors import InputError


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budget_s": 0}, "budget: got 0 s; it must be positive"),
        ({"latency": "soon"}, "soon"),
        ({"levers": ["compile"]}, "legal are latency_s"),
        ({"only": ["compil"]}, "did you mean 'compile'"),
        ({"only": ["ddp_buckets"]}, "it is for many ranks; pass --nproc"),
        ({"resume": True}, "give its path, too"),
        ({"nproc": 1}, "give 2 or more"),
    ],
)
def test_a_setting_that_is_illegal_is_named(settings, said, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print('never run')")
    with pytest.raises(InputError, match=said):
        pm.tune(str(script), **settings)
