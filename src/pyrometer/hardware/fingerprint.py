"""Which results may be compared: a subset of the environment must match, or the comparison is refused.

Only stable fields count. Clock rates, load and free memory change from minute to minute on one machine and would split
its history.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pyrometer.errors import IncomparableError
from pyrometer.hardware.environment import Environment


def must_match(environment: Environment) -> dict[str, Any]:
    """The fields that must be equal, by dotted name."""
    fields: dict[str, Any] = {
        "os": environment.os.split()[0],
        "machine": environment.os.split()[-1],
        "python": ".".join(environment.python.split(".")[:2]),
        "torch": environment.torch,
        "torch_cuda": environment.torch_cuda,
        "cpu.model": environment.cpu.model,
        "cpu.isa": environment.cpu.isa,
        "cpu.usable_cpus": environment.cpu.usable_cpus,
        "threads": environment.threads,
        "gpus": [gpu.name for gpu in environment.gpus],
        "gpu_driver": next((gpu.driver for gpu in environment.gpus), None),
    }
    return fields | {f"settings.{name}": value for name, value in sorted(environment.settings.items())}


def fingerprint(environment: Environment) -> str:
    """A short hash of the must-match fields."""
    text = json.dumps(must_match(environment), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differing_fields(a: Environment, b: Environment) -> list[tuple[str, Any, Any]]:
    """The must-match fields that differ: name, value in `a`, value in `b`; `None` where one side has no such field."""
    left, right = must_match(a), must_match(b)
    names = sorted(set(left) | set(right))
    return [(name, left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)]


def require_comparable(a: Environment, b: Environment) -> None:
    """Refuse to compare results of two environments that differ where they must not.

    Raises:
        IncomparableError: names every differing field with both values.
    """
    differing = differing_fields(a, b)
    if differing:
        listed = "; ".join(f"{name}: {left} and {right}" for name, left, right in differing)
        raise IncomparableError(
            f"taken under different conditions ({listed}); measure both sides on one machine"
        )
