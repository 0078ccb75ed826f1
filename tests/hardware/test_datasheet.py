"""Known devices are found by the names that torch gives them, and others are not taken for them."""

from __future__ import annotations

import pytest

from pyrometer.hardware.datasheet import lookup


@pytest.mark.parametrize(
    ("name", "device", "half_tera", "gigabytes_per_s"),
    [
        ("NVIDIA A100-SXM4-40GB", "A100 SXM 40 GB", 312, 1555),
        ("A100-PCIE-40GB", "A100 PCIe 40 GB", 312, 1555),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80 GB", 312, 2039),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB", 312, 1935),
        ("NVIDIA H100 80GB HBM3", "H100 SXM", 989.5, 3350),
        ("NVIDIA H100 PCIe", "H100 PCIe", 756.5, 2000),
        ("NVIDIA H200", "H200 SXM", 989.5, 4800),
        ("NVIDIA B200", "B200 (HGX, 1000 W)", 2250, 8000),
        ("NVIDIA L4", "L4", 121, 300),
        ("NVIDIA L40S", "L40S", 362.05, 864),
        ("Tesla T4", "T4", 65, 320),
        ("Tesla V100-SXM2-16GB", "V100 SXM2", 125, 900),
        ("Tesla V100-PCIE-32GB", "V100 PCIe", 112, 900),
        ("NVIDIA A10", "A10", 125, 600),
        ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090", 71, 936),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090", 165.2, 1008),
        ("AMD Instinct MI210", "Instinct MI210", 181, 1638),
        ("AMD Instinct MI300X", "Instinct MI300X", 1307.4, 5300),
    ],
)
def test_a_known_device(name, device, half_tera, gigabytes_per_s):
    peaks = lookup(name)
    assert peaks is not None
    assert peaks.device == device
    assert peaks.flop_per_s["float16"] == pytest.approx(half_tera * 1e12)
    assert peaks.memory_bytes_per_s == pytest.approx(gigabytes_per_s * 1e9)
    assert peaks.source
    assert all(1e12 < value < 1e16 for value in peaks.flop_per_s.values())


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA H100 80GB HBM3 MIG 3g.40gb",
        "NVIDIA A10G",
        "NVIDIA L40",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "AMD EPYC",
        "",
    ],
)
def test_another_device(name):
    assert lookup(name) is None


def test_boards_that_share_a_name():
    agx = lookup("Orin", multiprocessors=16)
    assert agx is not None
    assert agx.device == "Jetson AGX Orin 64 GB"
    assert lookup("Orin", multiprocessors=8) is None
    assert lookup("Orin") is None
