"""What is no workload is refused by everything that runs one, in one line that says what to give."""

from __future__ import annotations

import pytest

import pyrometer as pm
from pyrometer.errors import InputError


@pytest.mark.parametrize(
    "observer", [pm.measure, pm.diagnose, pm.record_trace, pm.profile_memory, pm.inspect_compile]
)
def test_what_is_no_workload_is_refused(observer):
    with pytest.raises(InputError, match=r"got int; it must be a workload: pm\.Inference"):
        observer(42)


def test_both_sides_of_a_comparison_must_be_workloads():
    work = pm.Call(sorted, [1])
    with pytest.raises(InputError, match="got int"):
        pm.compare(work, 42)
