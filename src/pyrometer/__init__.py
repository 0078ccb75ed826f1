"""Pyrometer measures how hot the torch burns: the performance engineer for PyTorch programs.

Everything public is importable from here and loaded when it is first used, so that `import pyrometer` does not
import torch.

>>> import torch
>>> import pyrometer as pm
>>> work = pm.Inference(torch.nn.Linear(8, 2), (torch.randn(4, 8),), unit="samples")
>>> pm.measure(work, budget_s=0.2).unit
'samples'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyrometer.version import __version__

if TYPE_CHECKING:
    from pyrometer.bench.calibrate import calibrate as calibrate
    from pyrometer.bench.calibration import Calibration as Calibration
    from pyrometer.bench.comparison.compare import compare as compare
    from pyrometer.bench.comparison.compare import compare_many as compare_many
    from pyrometer.bench.comparison.verdict import Verdict as Verdict
    from pyrometer.bench.measure import measure as measure
    from pyrometer.bench.measurement import Measurement as Measurement
    from pyrometer.hardware.environment import Environment as Environment
    from pyrometer.hardware.environment import read_environment as read_environment
    from pyrometer.workload.call import Call as Call
    from pyrometer.workload.inference import Inference as Inference
    from pyrometer.workload.training import Training as Training
    from pyrometer.workload.workload import Workload as Workload

_HOMES = {
    "Call": "pyrometer.workload.call",
    "Calibration": "pyrometer.bench.calibration",
    "Environment": "pyrometer.hardware.environment",
    "Inference": "pyrometer.workload.inference",
    "Measurement": "pyrometer.bench.measurement",
    "Training": "pyrometer.workload.training",
    "Verdict": "pyrometer.bench.comparison.verdict",
    "Workload": "pyrometer.workload.workload",
    "calibrate": "pyrometer.bench.calibrate",
    "compare": "pyrometer.bench.comparison.compare",
    "compare_many": "pyrometer.bench.comparison.compare",
    "measure": "pyrometer.bench.measure",
    "read_environment": "pyrometer.hardware.environment",
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'pyrometer' has no attribute {name!r}") from None
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
