"""The processor of several machines, from what their kernels write."""

from __future__ import annotations

import os
import platform

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.hardware.cpu import model_name, parse_cpuinfo, read_cpu, usable_cpus, usable_memory_bytes

XEON = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
stepping\t: 8
cpu MHz\t\t: 2699.998
bogomips\t: 5399.99
flags\t\t: fpu vme avx512f amx_bf16

processor\t: 1
vendor_id\t: GenuineIntel
model name\t: something else
"""
GRAVITON = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
"""
ORIN = """\
processor\t: 0
model name\t: ARMv8 Processor rev 1 (v8l)
BogoMIPS\t: 62.50
CPU implementer\t: 0x41
CPU part\t: 0xd42
"""
POWER = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3783.000000MHz\n"
RPI = "processor\t: 0\nCPU implementer\t: 0x51\nCPU part\t: 0x001\nModel\t\t: Some board\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (XEON, "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"),
        (GRAVITON, "Arm Neoverse N1"),
        (ORIN, "Arm Cortex-A78AE"),
        (POWER, "POWER9, altivec supported"),
        (RPI, "Arm implementer 0x51 part 0x001"),
        ("", None),
        ("no colon here\n\n\n", None),
    ],
)
def test_model_name(text, name):
    assert model_name(parse_cpuinfo(text)) == name


@given(st.text())
def test_no_text_stops_the_parser(text):
    info = parse_cpuinfo(text)
    assert all(isinstance(value, str) for value in info.values())


def test_a_xeon_with_caches_and_two_nodes(machine):
    cache = "sys/devices/system/cpu/cpu0/cache"
    root = machine(
        {
            "proc/cpuinfo": XEON,
            f"{cache}/index0/level": "1\n",
            f"{cache}/index0/type": "Data\n",
            f"{cache}/index0/size": "48K\n",
            f"{cache}/index1/level": "1\n",
            f"{cache}/index1/type": "Instruction\n",
            f"{cache}/index1/size": "32K\n",
            f"{cache}/index2/level": "2\n",
            f"{cache}/index2/type": "Unified\n",
            f"{cache}/index2/size": "2048K\n",
            f"{cache}/index3/level": "3\n",
            f"{cache}/index3/type": "Unified\n",
            f"{cache}/index3/size": "105M\n",
            "sys/devices/system/node/node0/cpulist": "0-55\n",
            "sys/devices/system/node/node1/cpulist": "56-111\n",
            "sys/devices/system/node/possible": "0-1\n",
        }
    )
    cpu = read_cpu(root)
    assert cpu.signature == "GenuineIntel family 6 model 143 stepping 8"
    assert (cpu.l2_bytes, cpu.l3_bytes) == (2 * 2**20, 105 * 2**20)
    assert cpu.numa_nodes == 2
    assert cpu.isa == torch.backends.cpu.get_cpu_capability()


def test_a_kernel_that_says_nothing(tmp_path):
    cpu = read_cpu(tmp_path)
    assert cpu.model == (platform.processor() or platform.machine())
    assert (cpu.signature, cpu.numa_nodes, cpu.l2_bytes, cpu.l3_bytes) == (None, None, None, None)


def test_the_quota_cuts_the_affinity(machine):
    root = machine(
        {
            "proc/self/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "25000 100000\n",
            "sys/fs/cgroup/memory.max": "1048576\n",
        }
    )
    assert usable_cpus(root) == 0.25
    assert usable_memory_bytes(root) == 2**20


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity masks")
def test_affinity_is_respected(tmp_path):
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cpus(tmp_path) == 1.0
    finally:
        os.sched_setaffinity(0, before)
    assert usable_cpus(tmp_path) == len(before)
    assert usable_memory_bytes(tmp_path) == psutil.virtual_memory().total
