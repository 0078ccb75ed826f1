"""How verbs keep the exhibits of a result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyrometer.report.exhibits import Exhibits


def artifacts_of(exhibits: Exhibits) -> dict[str, bytes | Path]:
    """The files to keep with a run; none where nothing would be drawn."""
    from pyrometer.report.exhibits import ARTIFACT, Exhibits, pack

    return {} if exhibits == Exhibits() else {ARTIFACT: pack(exhibits)}
