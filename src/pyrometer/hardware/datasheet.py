"""What vendors print: peak arithmetic and memory bandwidth of known accelerators.

Dense figures, without sparsity, at boost clocks; where accumulation in float32 is slower than in float16 the former,
because torch accumulates so. They are ceilings for comparison; what a machine really does is measured in `peaks`.
"""

from __future__ import annotations

import re

from pyrometer.hardware.peaks import DatasheetPeaks


def lookup(name: str, multiprocessors: int | None = None) -> DatasheetPeaks | None:
    """The figures for a device by the name that torch gives it; `None` for one that is not in the table.

    A part of a device (MIG), a laptop's version or another grade is another device. The boards of the Jetson Orin
    family share one name and are told apart by their multiprocessors.

    >>> lookup("NVIDIA H200").memory_bytes_per_s, lookup("NVIDIA A10G")
    (4800000000000.0, None)
    """
    if name == "Orin":
        name = f"Orin {multiprocessors}"
    return next((peaks for pattern, peaks in _KNOWN if re.fullmatch(pattern, name)), None)


def _peaks(device: str, tera: dict[str, float], gigabytes_per_s: float, source: str) -> DatasheetPeaks:
    flop_per_s = {dtype: value * 1e12 for dtype, value in tera.items()}
    return DatasheetPeaks(
        device=device, flop_per_s=flop_per_s, memory_bytes_per_s=gigabytes_per_s * 1e9, source=source
    )


_A100 = {"float32": 19.5, "tf32": 156.0, "bfloat16": 312.0, "float16": 312.0, "int8": 624.0}
_A100_SHEET = "NVIDIA A100 Tensor Core GPU datasheet (40 GB: 2020, 80 GB: 2021)"
_HOPPER_SXM = {
    "float32": 67.0,
    "tf32": 494.5,
    "bfloat16": 989.5,
    "float16": 989.5,
    "float8": 1979.0,
    "int8": 1979.0,
}
_HOPPER_NVL = {
    "float32": 60.0,
    "tf32": 417.5,
    "bfloat16": 835.5,
    "float16": 835.5,
    "float8": 1670.5,
    "int8": 1670.5,
}
_H100_SHEET = "NVIDIA H100 Tensor Core GPU datasheet (halved where it is printed with sparsity)"
_H200_SHEET = "NVIDIA H200 Tensor Core GPU datasheet (halved where it is printed with sparsity)"
_V100_SHEET = "NVIDIA V100 Tensor Core GPU datasheet, 2020"
_GA102 = "NVIDIA Ampere GA102 GPU architecture whitepaper, table of specifications"

# Patterns match the whole of `torch.cuda.get_device_name()`.
_KNOWN: tuple[tuple[str, DatasheetPeaks], ...] = (
    (r"(NVIDIA )?A100-SXM4-40GB", _peaks("A100 SXM 40 GB", _A100, 1555, _A100_SHEET)),
    (r"(NVIDIA )?A100-PCIE-40GB", _peaks("A100 PCIe 40 GB", _A100, 1555, _A100_SHEET)),
    (r"(NVIDIA )?A100-SXM4-80GB", _peaks("A100 SXM 80 GB", _A100, 2039, _A100_SHEET)),
    (r"(NVIDIA )?A100[- ](80GB PCIe|PCIE-80GB)", _peaks("A100 PCIe 80 GB", _A100, 1935, _A100_SHEET)),
    (r"NVIDIA H100 80GB HBM3", _peaks("H100 SXM", _HOPPER_SXM, 3350, _H100_SHEET)),
    (
        r"NVIDIA H100 PCIe",
        _peaks(
            "H100 PCIe",
            {
                "float32": 51.0,
                "tf32": 378.0,
                "bfloat16": 756.5,
                "float16": 756.5,
                "float8": 1513.0,
                "int8": 1513.0,
            },
            2000,
            "NVIDIA H100 Tensor Core GPU datasheet, 2022 edition (halved where it is printed with sparsity)",
        ),
    ),
    (r"NVIDIA H100 NVL", _peaks("H100 NVL", _HOPPER_NVL, 3900, _H100_SHEET)),
    (r"NVIDIA H200", _peaks("H200 SXM", _HOPPER_SXM, 4800, _H200_SHEET)),
    (r"NVIDIA H200 NVL", _peaks("H200 NVL", _HOPPER_NVL, 4800, _H200_SHEET)),
    (
        r"NVIDIA B200",
        _peaks(
            "B200 (HGX, 1000 W)",
            {
                "float32": 80.0,
                "tf32": 1100.0,
                "bfloat16": 2250.0,
                "float16": 2250.0,
                "float8": 4500.0,
                "int8": 4500.0,
            },
            8000,
            "NVIDIA Blackwell architecture technical brief, HGX B200 per GPU (halved where it is printed with sparsity)",
        ),
    ),
    (
        r"NVIDIA L4",
        _peaks(
            "L4",
            {
                "float32": 30.3,
                "tf32": 60.0,
                "bfloat16": 121.0,
                "float16": 121.0,
                "float8": 242.5,
                "int8": 242.5,
            },
            300,
            "NVIDIA L4 Tensor Core GPU datasheet (halved: it is printed with sparsity)",
        ),
    ),
    (
        r"NVIDIA L40S",
        _peaks(
            "L40S",
            {
                "float32": 91.6,
                "tf32": 183.0,
                "bfloat16": 362.05,
                "float16": 362.05,
                "float8": 733.0,
                "int8": 733.0,
            },
            864,
            "NVIDIA L40S datasheet",
        ),
    ),
    (
        r"(NVIDIA |Tesla )T4",
        _peaks(
            "T4", {"float32": 8.1, "float16": 65.0, "int8": 130.0}, 320, "NVIDIA T4 Tensor Core GPU datasheet"
        ),
    ),
    (
        r"(NVIDIA |Tesla )V100-SXM2-(16|32)GB",
        _peaks("V100 SXM2", {"float32": 15.7, "float16": 125.0}, 900, _V100_SHEET),
    ),
    (
        r"(NVIDIA |Tesla )V100-PCIE-(16|32)GB",
        _peaks("V100 PCIe", {"float32": 14.0, "float16": 112.0}, 900, _V100_SHEET),
    ),
    (
        r"NVIDIA A10",
        _peaks(
            "A10",
            {"float32": 31.2, "tf32": 62.5, "bfloat16": 125.0, "float16": 125.0, "int8": 250.0},
            600,
            "NVIDIA A10 Tensor Core GPU datasheet",
        ),
    ),
    (
        r"(NVIDIA )?GeForce RTX 3090",
        _peaks(
            "GeForce RTX 3090",
            {"float32": 35.6, "tf32": 35.6, "bfloat16": 71.0, "float16": 71.0, "int8": 284.0},
            936,
            _GA102,
        ),
    ),
    (
        r"NVIDIA GeForce RTX 4090",
        _peaks(
            "GeForce RTX 4090",
            {
                "float32": 82.6,
                "tf32": 82.6,
                "bfloat16": 165.2,
                "float16": 165.2,
                "float8": 330.3,
                "int8": 660.6,
            },
            1008,
            "NVIDIA Ada GPU architecture whitepaper, table of specifications",
        ),
    ),
    (
        r"AMD Instinct MI210",
        _peaks(
            "Instinct MI210",
            {"float32": 45.3, "bfloat16": 181.0, "float16": 181.0, "int8": 181.0},
            1638,
            "AMD Instinct MI210 datasheet (float32: matrix cores)",
        ),
    ),
    (
        r"AMD Instinct MI300X( OAM)?",
        _peaks(
            "Instinct MI300X",
            {
                "float32": 163.4,
                "tf32": 653.7,
                "bfloat16": 1307.4,
                "float16": 1307.4,
                "float8": 2614.9,
                "int8": 2614.9,
            },
            5300,
            "AMD Instinct MI300X datasheet",
        ),
    ),
    (
        r"Orin 16|(NVIDIA )?Jetson AGX Orin( 64GB| Developer Kit)?",
        _peaks(
            "Jetson AGX Orin 64 GB",
            {"float32": 5.3, "bfloat16": 42.5, "float16": 42.5, "int8": 85.0},
            204.8,
            "NVIDIA Jetson AGX Orin series technical brief (GPU alone; float16 as half of int8, int8 halved for sparsity)",
        ),
    ),
)
