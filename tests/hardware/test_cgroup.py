"""Limits of control groups, on both versions, nested, inside containers, absent or damaged."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.hardware.cgroup import cpu_limit, memory_limit

V2 = {"proc/self/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"}
V1 = {
    "proc/self/mounts": (
        "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
        "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
        "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
    )
}
POD = "kubepods.slice/pod1"


def test_v2_inside_a_container(machine):
    root = machine(
        V2
        | {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/memory.max": "2147483648\n",
        }
    )
    assert cpu_limit(root) == 1.5
    assert memory_limit(root) == 2 * 2**30


def test_v2_takes_the_lowest_limit_on_the_way_to_the_root(machine):
    root = machine(
        V2
        | {
            "proc/self/cgroup": f"0::/{POD}/container\n",
            f"sys/fs/cgroup/{POD}/container/cpu.max": "max 100000\n",
            f"sys/fs/cgroup/{POD}/container/memory.max": "8589934592\n",
            f"sys/fs/cgroup/{POD}/cpu.max": "400000 100000\n",
            f"sys/fs/cgroup/{POD}/memory.max": "4294967296\n",
            "sys/fs/cgroup/other/cpu.max": "1000 100000\n",
        }
    )
    assert cpu_limit(root) == 4.0
    assert memory_limit(root) == 4 * 2**30


def test_v1_with_a_tree_per_controller(machine):
    root = machine(
        V1
        | {
            "proc/self/cgroup": "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "200000\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "1073741824\n",
        }
    )
    assert cpu_limit(root) == 2.0
    assert memory_limit(root) == 2**30


def test_v1_inside_a_container_where_the_path_is_the_hosts(machine):
    root = machine(
        V1
        | {
            "proc/self/cgroup": "4:cpu,cpuacct:/docker/not-visible-here\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        }
    )
    assert cpu_limit(root) == 0.5


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="no such kernel"),
        pytest.param(V2 | {"proc/self/cgroup": "0::/\n"}, id="v2 without files"),
        pytest.param(
            V2
            | {
                "proc/self/cgroup": "0::/\n",
                "sys/fs/cgroup/cpu.max": "max 100000\n",
                "sys/fs/cgroup/memory.max": "max\n",
            },
            id="v2 unlimited",
        ),
        pytest.param(
            V1
            | {
                "proc/self/cgroup": "5:memory:/\n4:cpu,cpuacct:/\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            id="v1 unlimited",
        ),
        pytest.param(
            V2 | {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 0\n"}, id="no period"
        ),
        pytest.param(V2 | {"proc/self/cgroup": "", "sys/fs/cgroup/cpu.max": "rubbish\n"}, id="rubbish"),
        pytest.param({"proc/self/mounts": "one-word\n\n", "proc/self/cgroup": "::\nx\n"}, id="broken lines"),
    ],
)
def test_no_limit(machine, files):
    root = machine(files)
    assert cpu_limit(root) is None
    assert memory_limit(root) is None


@given(quota=st.integers(1, 10**9), period=st.integers(1000, 10**6))
def test_any_v2_quota_is_read_as_a_share_of_its_period(tmp_path_factory, quota, period):
    root = tmp_path_factory.mktemp("machine")
    for name, text in (
        V2 | {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": f"{quota} {period}"}
    ).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert math.isclose(cpu_limit(root) or 0, quota / period)
