"""`[tool.pyrometer.guard]`: what is compared, and how much worse it may become.

::

    [tool.pyrometer.guard]
    targets = ["model.py:workload"]   # beside the functions of perf_*.py
    matrix = ["mode=eager,default"]   # over which the targets are varied
    paths = ["python"]                # on the path of imports beside the tree and its src
    install = ["-e", ".[test]"]       # arguments of pip, for environments of their own
    slower = "5%"                     # limits: of times,
    memory = "10%"                    # and of memory

    [tool.pyrometer.guard.limits]     # of single metrics, by name; or of single benchmarks
    p95_s = "30%"
    "perf_model.py::perf_forward*" = { median_s = "2%", operators = "1%" }
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pyrometer.errors import InputError
from pyrometer.record import Record, doc
from pyrometer.settings import find_project, parse_share, read_table

TAIL_LIMIT = 0.2
METRIC_LIMITS: Mapping[str, float] = {
    "p95_s": TAIL_LIMIT,
    "p99_s": 0.5,
    "jitter": 1.0,
    "first_call_s": TAIL_LIMIT,
    "compile_s": TAIL_LIMIT,
    "loader_share": 0.05,
    "artifact_bytes": 0.01,
    "cosine": 1e-3,
    "max_error": 1e-3,
}
"""Of metrics whose limit is not that of times or memory; counters may not grow at all."""

_LISTS = ("targets", "matrix", "paths", "install")
_SHARES = ("slower", "memory")


class GuardSettings(Record, frozen=True, kw_only=True):
    """What a project asks of its guard."""

    targets: list[str] = []
    matrix: list[str] = []
    paths: list[str] = []
    install: list[str] = []
    slower: Annotated[float, doc("a time may grow by so much")] = 0.05
    memory: Annotated[float, doc("and memory by so much")] = 0.10
    limits: Annotated[dict[str, float], doc("of metrics, by their names")] = {}
    own_limits: Annotated[
        dict[str, dict[str, float]], doc("of metrics of the benchmarks that a pattern fits")
    ] = {}

    def limit(self, benchmark: str, metric: str, kind: str) -> float:
        """By how much a metric of a benchmark may grow, as a share.

        >>> settings = GuardSettings(own_limits={"perf_a.py::*": {"median_s": 0.02}})
        >>> settings.limit("perf_a.py::perf_x", "median_s", "time"), settings.limit("b", "median_s", "time")
        (0.02, 0.05)
        """
        for pattern, limits in self.own_limits.items():
            if metric in limits and (benchmark == pattern or fnmatch.fnmatchcase(benchmark, pattern)):
                return limits[metric]
        by_kind = {"time": self.slower, "memory": self.memory}
        return self.limits.get(metric, METRIC_LIMITS.get(metric, by_kind.get(kind, 0.0)))


def load_guard_settings(folder: Path) -> GuardSettings:
    """Read the table of the nearest `pyproject.toml`.

    Raises:
        InputError: an unknown key or a value that cannot be used.
    """
    file = find_project(folder)
    table = {} if file is None else read_table(file, "guard")
    values: dict[str, Any] = {}
    for key, value in table.items():
        place = f"{file}: [tool.pyrometer.guard] {key}"
        if key in _LISTS:
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise InputError(f"{place}: got {value!r}; legal is a list of strings")
            values[key] = value
        elif key in _SHARES:
            values[key] = _share(value, place)
        elif key == "limits" and isinstance(value, dict):
            values["limits"] = {
                n: _share(v, f"{place} {n}") for n, v in value.items() if not isinstance(v, dict)
            }
            values["own_limits"] = {
                n: {metric: _share(limit, f"{place} {n} {metric}") for metric, limit in v.items()}
                for n, v in value.items()
                if isinstance(v, dict)
            }
        else:
            legal = ", ".join((*_LISTS, *_SHARES, "limits"))
            raise InputError(f"{place}: no such setting; legal are {legal}")
    return GuardSettings(**values)


def _share(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(f"{place}: got {value!r}; legal is a share, such as '5%' or 0.05")
    try:
        return parse_share(str(value))
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
