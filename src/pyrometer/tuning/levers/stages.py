"""Where levers belong: the stage of a staged optimisation, and the place among others when they are applied."""

from __future__ import annotations

from typing import Literal

Stage = Literal["basic", "memory", "compute", "device", "compile", "deploy"]
"""Where a lever belongs in a staged optimisation; stages are gone through in this order."""

Place = Literal["structure", "layout", "precision", "quantisation", "executor", "settings"]
"""Where a lever is applied among others: what rewrites modules comes before what casts, exports or compiles them."""

Kind = Literal["inference", "training", "ranks"]
"""What levers fit: a workload of one process, or a script on many ranks."""

STAGES: tuple[Stage, ...] = ("basic", "memory", "compute", "device", "compile", "deploy")
PLACES: tuple[Place, ...] = ("structure", "layout", "precision", "quantisation", "executor", "settings")
