"""What a search is asked for, by flags, code or `[tool.pyrometer.tune]` in `pyproject.toml`; what is given wins over the file.

::

    [tool.pyrometer.tune]
    tolerance = "1%"          # largest error of levers of the class tolerance
    budget = "30m"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc
from pyrometer.settings import load_table, parse_bytes, parse_duration, parse_share
from pyrometer.tuning.levers.stages import STAGES, Stage
from pyrometer.tuning.trials.gate import TOLERANCE

DEFAULT_BUDGET_S: Seconds = 600.0


_SPELLED = {
    "latency": ("latency_s", parse_duration),
    "memory": ("memory_bytes", parse_bytes),
    "budget": ("budget_s", parse_duration),
    "tolerance": ("tolerance", parse_share),
}


class TuneSettings(Record, frozen=True, kw_only=True):
    """Goals, limits and the choice of levers."""

    latency_s: Annotated[Seconds | None, doc("median step to be reached")] = None
    memory_bytes: Annotated[Bytes | None, doc("peak that must not be exceeded")] = None
    budget_s: Annotated[Seconds, doc("for all of it, from the baseline to the confirmation")] = (
        DEFAULT_BUDGET_S
    )
    tolerance: Annotated[float, doc("largest error of levers of the class tolerance")] = TOLERANCE
    metric_drop: float = 0.01
    allow_semantic: Annotated[bool, doc("try levers that change what is computed")] = False
    metric: Annotated[str | None, doc("file.py:function of the model; more is better")] = None
    only: list[str] = []
    without: list[str] = []
    stages: Annotated[
        list[Stage], doc("gone through one after another, validated at the end of each; empty: all at once")
    ] = []
    seed: int = 0
    num_confirmations: Annotated[int, doc("pairs of fresh processes")] = 4

    def __post_init__(self) -> None:
        if not self.budget_s > 0:
            raise InputError(f"budget: got {self.budget_s} s; it must be positive, for example 10m")
        if self.latency_s is not None and not self.latency_s > 0:
            raise InputError(f"latency: got {self.latency_s} s; it must be positive, for example 10ms")
        if self.memory_bytes is not None and not self.memory_bytes > 0:
            raise InputError(f"memory: got {self.memory_bytes}; it must be positive, for example 2GiB")
        if not 0 < self.tolerance < 1:
            raise InputError(
                f"tolerance: got {self.tolerance}; legal is above 0 and below 1, for example 1e-2"
            )
        _require_stages(self.stages)

    @property
    def may_change_meaning(self) -> bool:
        """Whether levers of the class semantic are tried."""
        return self.allow_semantic or self.metric is not None


def load_tune_settings(cwd: Path, given: Mapping[str, Any]) -> TuneSettings:
    """The settings of the project in a folder, under those that are given: neither None, nor empty, nor False.

    Raises:
        InputError: an unreadable file, an unknown key or a bad value.
    """
    told = {name: value for name, value in given.items() if value is not False and value != []}
    _require_stages(told.get("stages", ()))
    return load_table(TuneSettings, "tune", cwd, told, spelled=_SPELLED)


def _require_stages(stages: Iterable[str]) -> None:
    unknown = [stage for stage in stages if stage not in STAGES]
    if unknown:
        raise InputError(f"stages: {unknown[0]!r} is none; legal are {', '.join(STAGES)}")
