"""What may be compared, and how a refusal reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pyrometer.errors import ExitCode, IncomparableError
from pyrometer.hardware.fingerprint import differing_fields, fingerprint, require_comparable
from pyrometer.hardware.record import Cpu, Environment, Gpu
from pyrometer.record import from_json, to_json


def make_gpu(**changes: Any) -> Gpu:
    values = {
        "name": "NVIDIA H200",
        "memory_bytes": 150 * 10**9,
        "capability": "9.0",
        "multiprocessors": 132,
        "driver": "570.86.10",
    }
    return Gpu(**{**values, **changes})


def make_environment(**changes: Any) -> Environment:
    values: dict[str, Any] = {
        "os": "Linux 6.8.0-45-generic",
        "architecture": "x86_64",
        "python": "3.11.9",
        "pyrometer": "0.1.0",
        "torch": "2.13.0+cu130",
        "torch_cuda": "13.0",
        "torch_git": "a1b2c3d",
        "cudnn": 91002,
        "cpu": Cpu(
            model="AMD EPYC 9654 96-Core Processor",
            isa="AVX512",
            physical_cores=96,
            logical_cores=192,
            usable_cpus=16.0,
            numa_nodes=2,
            signature="AuthenticAMD family 25 model 17 stepping 1",
        ),
        "memory_bytes": 128 * 2**30,
        "gpus": [make_gpu()],
        "threads": 16,
        "interop_threads": 16,
        "settings": {"cudnn.benchmark": "off", "OMP_NUM_THREADS": "16"},
    }
    return Environment(**{**values, **changes})


BASE = make_environment()


def with_cpu(**changes: Any) -> Environment:
    return make_environment(cpu=msgspec.structs.replace(BASE.cpu, **changes))


@pytest.mark.parametrize(
    ("other", "field", "left", "right"),
    [
        (make_environment(os="Darwin 24.1.0"), "os", "Linux", "Darwin"),
        (make_environment(architecture="aarch64"), "architecture", "x86_64", "aarch64"),
        (make_environment(python="3.12.1"), "python", "3.11", "3.12"),
        (make_environment(torch="2.12.0"), "torch", "2.13.0+cu130", "2.12.0"),
        (make_environment(torch_git="ffff"), "torch_git", "a1b2c3d", "ffff"),
        (make_environment(torch_cuda=None), "torch_cuda", "13.0", None),
        (make_environment(torch_hip="6.4"), "torch_hip", None, "6.4"),
        (make_environment(cudnn=91100), "cudnn", 91002, 91100),
        (make_environment(threads=8), "threads", 16, 8),
        (make_environment(interop_threads=1), "interop_threads", 16, 1),
        (with_cpu(model="AMD EPYC"), "cpu.model", "AMD EPYC 9654 96-Core Processor", "AMD EPYC"),
        (with_cpu(signature=None), "cpu.signature", "AuthenticAMD family 25 model 17 stepping 1", None),
        (with_cpu(isa="AVX2"), "cpu.isa", "AVX512", "AVX2"),
        (with_cpu(logical_cores=96), "cpu.logical_cores", 192, 96),
        (with_cpu(usable_cpus=3.5), "cpu.usable_cpus", 16.0, 3.5),
        (with_cpu(numa_nodes=8), "cpu.numa_nodes", 2, 8),
        (
            make_environment(gpus=[]),
            "gpus",
            "NVIDIA H200 (capability 9.0, 132 multiprocessors)",
            "none",
        ),
        (
            make_environment(settings={"cudnn.benchmark": "on", "OMP_NUM_THREADS": "16"}),
            "settings.cudnn.benchmark",
            "off",
            "on",
        ),
        (make_environment(settings={"cudnn.benchmark": "off"}), "settings.OMP_NUM_THREADS", "16", None),
        (
            make_environment(settings={**BASE.settings, "PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
            "settings.PYTORCH_ALLOC_CONF",
            None,
            "expandable_segments:True",
        ),
    ],
)
def test_a_difference_that_matters(other, field, left, right):
    assert differing_fields(BASE, other) == [(field, left, right)]
    assert differing_fields(other, BASE) == [(field, right, left)]
    assert fingerprint(BASE) != fingerprint(other)
    with pytest.raises(IncomparableError, match=field) as refused:
        require_comparable(BASE, other)
    for value in (left, right):
        assert ("not set" if value is None else str(value)) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code is ExitCode.FAILURE


@pytest.mark.parametrize(
    "other",
    [
        make_environment(os="Linux 6.9.1"),
        make_environment(python="3.11.12"),
        make_environment(pyrometer="0.2.0"),
        make_environment(memory_bytes=128 * 2**30 - 4096),
        make_environment(gpus=[make_gpu(driver=None)]),
        make_environment(settings=dict(reversed(BASE.settings.items()))),
        make_environment(fingerprint="written by another version"),
    ],
)
def test_a_difference_that_does_not_matter(other):
    assert differing_fields(BASE, other) == []
    assert fingerprint(BASE) == fingerprint(other)
    require_comparable(BASE, other)


def test_every_differing_field_is_named():
    other = make_environment(threads=1, interop_threads=1, settings={})
    with pytest.raises(IncomparableError) as refused:
        require_comparable(BASE, other)
    for field in (
        "threads: 16 and 1",
        "settings.OMP_NUM_THREADS: 16 and not set",
        "settings.cudnn.benchmark",
    ):
        assert field in str(refused.value)


def test_the_number_of_gpus_matters():
    two = make_environment(gpus=[make_gpu(), make_gpu()])
    assert [field for field, _, _ in differing_fields(BASE, two)] == ["gpus"]


def test_a_stored_environment_has_the_fingerprint_of_the_live_one():
    assert fingerprint(from_json(Environment, to_json(BASE))) == fingerprint(BASE)


def test_the_form_is_short_and_stable():
    assert len(fingerprint(BASE)) == 12
    assert int(fingerprint(BASE), 16) >= 0
