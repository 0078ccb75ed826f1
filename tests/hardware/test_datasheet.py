"""The vendors' figures: every name that torch gives a known device leads to its own row, and to no other."""

from __future__ import annotations

import pytest

from pyrometer.hardware.datasheet import lookup

# Name that torch reports, row of the table, dense bfloat16 (float16 before Ampere) TFLOP/s, memory GB/s.
KNOWN = [
    ("NVIDIA A100-SXM4-40GB", "A100 SXM 40 GB", 312, 1555),
    ("A100-SXM4-40GB", "A100 SXM 40 GB", 312, 1555),
    ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40 GB", 312, 1555),
    ("NVIDIA A100-SXM4-80GB", "A100 SXM 80 GB", 312, 2039),
    ("NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB", 312, 1935),
    ("NVIDIA H100 80GB HBM3", "H100 SXM", 989.5, 3350),
    ("NVIDIA H100 PCIe", "H100 PCIe", 756.5, 2000),
    ("NVIDIA H100 NVL", "H100 NVL", 835.5, 3900),
    ("NVIDIA H200", "H200 SXM", 989.5, 4800),
    ("NVIDIA H200 NVL", "H200 NVL", 835.5, 4800),
    ("NVIDIA B200", "B200 (HGX, 1000 W)", 2250, 8000),
    ("NVIDIA L4", "L4", 121, 300),
    ("NVIDIA L40S", "L40S", 362.05, 864),
    ("Tesla T4", "T4", 65, 320),
    ("Tesla V100-SXM2-16GB", "V100 SXM2", 125, 900),
    ("Tesla V100-SXM2-32GB", "V100 SXM2", 125, 900),
    ("Tesla V100-PCIE-16GB", "V100 PCIe", 112, 900),
    ("NVIDIA A10", "A10", 125, 600),
    ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090", 71, 936),
    ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090", 165.2, 1008),
    ("AMD Instinct MI210", "Instinct MI210", 181, 1638),
    ("AMD Instinct MI300X", "Instinct MI300X", 1307.4, 5300),
    ("Jetson AGX Orin", "Jetson AGX Orin 64 GB", 42.5, 204.8),
]


@pytest.mark.parametrize(("name", "device", "half_tflop_per_s", "gb_per_s"), KNOWN)
def test_a_known_device_is_found_by_the_name_that_torch_gives_it(name, device, half_tflop_per_s, gb_per_s):
    found = lookup(name)
    assert found is not None
    assert found.device == device
    assert found.flop_per_s.get("bfloat16", found.flop_per_s["float16"]) == half_tflop_per_s * 1e12
    assert found.memory_bytes_per_s == gb_per_s * 1e9


@pytest.mark.parametrize(("name", "device", "half_tflop_per_s", "gb_per_s"), KNOWN)
def test_every_row_is_dense_and_names_its_source(name, device, half_tflop_per_s, gb_per_s):
    found = lookup(name)
    rates = found.flop_per_s
    # Vendors print twice the dense rate next to it; a row that mixed the two would break these ratios.
    assert rates["float16"] > rates["float32"]
    assert rates.get("bfloat16", rates["float16"]) == rates["float16"]
    assert rates["float32"] <= rates.get("tf32", rates["float16"]) <= rates["float16"]
    assert rates.get("int8", rates["float16"]) <= 4 * rates["float16"]
    assert 1 < rates["float16"] / found.memory_bytes_per_s < 1000
    assert "NVIDIA" in found.source or "AMD" in found.source


@pytest.mark.parametrize(
    "name",
    [
        "",
        "NVIDIA A10G",  # half an A10
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA H200 MIG 7g.141gb",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA L40",
        "AMD Instinct MI250X",
        "NVIDIA GeForce GTX 1080",
        "llvmpipe",
    ],
)
def test_another_device_has_no_row(name):
    assert lookup(name) is None


def test_boards_of_one_name_are_told_apart_by_their_size():
    assert lookup("Orin", 16).device == "Jetson AGX Orin 64 GB"
    assert lookup("Orin", 8) is None
