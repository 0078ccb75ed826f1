"""What must be the same before two results are compared, and a hash of it.

Only stable fields count. Clock rates, load and free memory differ from one minute to the next and would tell a machine
apart from itself. The kernel's release, patch releases of Python, the GPU driver (unknown without nvidia-ml-py) and
Pyrometer's own version are recorded and not compared.
"""

from __future__ import annotations

import hashlib
import json
from typing import TypeAlias

from pyrometer.errors import IncomparableError
from pyrometer.hardware.record import Environment, Gpu

Value: TypeAlias = "str | float | None"

DIGITS = 12


def must_match(environment: Environment) -> dict[str, Value]:
    """The fields that must be equal, by name; settings are `settings.<name>`."""
    e = environment
    machine: dict[str, Value] = {
        "os": e.os.split(" ")[0],
        "architecture": e.architecture,
        "cpu.model": e.cpu.model,
        "cpu.signature": e.cpu.signature,
        "cpu.isa": e.cpu.isa,
        "cpu.logical_cores": e.cpu.logical_cores,
        "cpu.usable_cpus": e.cpu.usable_cpus,
        "cpu.numa_nodes": e.cpu.numa_nodes,
        "gpus": ", ".join(_gpu_words(gpu) for gpu in e.gpus) or "none",
    }
    software: dict[str, Value] = {
        "python": ".".join(e.python.split(".")[:2]),
        "torch": e.torch,
        "torch_git": e.torch_git,
        "torch_cuda": e.torch_cuda,
        "torch_hip": e.torch_hip,
        "cudnn": e.cudnn,
        "threads": e.threads,
        "interop_threads": e.interop_threads,
    }
    return {**machine, **software, **{f"settings.{name}": value for name, value in e.settings.items()}}


def fingerprint(environment: Environment) -> str:
    """Twelve hexadecimal digits that are equal when all fields of `must_match` are."""
    plain = json.dumps(must_match(environment), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:DIGITS]


def differing_fields(a: Environment, b: Environment) -> list[tuple[str, Value, Value]]:
    """Name, value in `a` and value in `b` of every field that must match and does not; `None` where one has none."""
    left, right = must_match(a), must_match(b)
    names = [*left, *(name for name in right if name not in left)]
    return [(name, left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)]


def require_comparable(a: Environment, b: Environment) -> None:
    """Refuse a comparison across machines, versions or settings.

    Raises:
        IncomparableError: fields that must match differ; names them with both values.
    """
    fields = differing_fields(a, b)
    if fields:
        words = "; ".join(f"{name}: {_shown(left)} and {_shown(right)}" for name, left, right in fields)
        raise IncomparableError(
            f"taken under different conditions ({words}); measure both on one machine with the same settings"
        )


def _shown(value: Value) -> str:
    return "not set" if value is None else str(value)


def _gpu_words(gpu: Gpu) -> str:
    return f"{gpu.name} (capability {gpu.capability}, {gpu.multiprocessors} multiprocessors)"
