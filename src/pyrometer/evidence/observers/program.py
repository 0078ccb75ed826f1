"""How the program is set up."""

from __future__ import annotations

from pathlib import Path

from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.record import from_json
from pyrometer.workload.program.describe import describe
from pyrometer.workload.program.record import Program
from pyrometer.workload.workload import Workload


def observe(work: Workload, seen: Observed, _options: ObserveOptions) -> Observed:
    """Describe modules, dtypes, settings and inputs; what cannot be told stands in the notes of the part itself."""
    return seen.having(program=describe(work))


def program_of_script(file: Path) -> Program | None:
    """What a script under observation wrote of its objects; `None` where it did not."""
    return from_json(Program, file.read_bytes()) if file.exists() else None
