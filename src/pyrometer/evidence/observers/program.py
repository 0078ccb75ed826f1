"""How the program is set up."""

from __future__ import annotations

from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.workload.program.describe import describe
from pyrometer.workload.workload import Workload


def observe(work: Workload, seen: Observed, _options: ObserveOptions) -> Observed:
    """Describe modules, dtypes, settings and inputs; what cannot be told stands in the notes of the part itself."""
    return seen.having(program=describe(work))
