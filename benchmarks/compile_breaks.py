"""How much of what breaks do we find, beside `torch._dynamo.explain`? On programs whose breaks are known.

    python benchmarks/compile_breaks.py [--json FILE]

The programs stand in tests/compiler/breaks/programs.py: each line at which a graph breaks says so, with torch's id of the
break. Breaks are root causes; what only follows from them is not counted. `explain` has no notion of a skipped function.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import logging
import sys
from pathlib import Path
from typing import Any

import torch

from pyrometer.compiler.breaks.read import count_frames, read_breaks
from pyrometer.compiler.collecting.collector import collect

PROGRAMS = Path(__file__).parents[1] / "tests" / "compiler" / "breaks" / "programs.py"


def load_cases() -> list[Any]:
    """The programs, and what is true of each."""
    spec = importlib.util.spec_from_file_location("programs", PROGRAMS)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(PROGRAMS)
    module = importlib.util.module_from_spec(spec)
    sys.modules["programs"] = module
    spec.loader.exec_module(module)
    return list(module.CASES)


def ours(case: Any) -> dict[str, Any]:
    """What we read from the compiler's log."""
    torch._dynamo.reset()  # noqa: SLF001 - its public name
    with collect() as collector:
        torch.compile(case.program, backend="eager")(torch.ones(case.shape))
    log = collector.log()
    counts = count_frames(log)
    roots = [graph_break for graph_break in read_breaks(log) if not graph_break.chained]
    return {
        "breaks": [(root.id, root.line) for root in roots if Path(root.file) == PROGRAMS],
        "phantoms": sum(Path(root.file) != PROGRAMS for root in roots),
        "graphs": counts.graphs,
        "skipped": counts.skipped,
    }


def explained(case: Any) -> dict[str, Any]:
    """What torch's own tool says of the same call."""
    found = torch._dynamo.explain(case.program)(torch.ones(case.shape))  # noqa: SLF001
    stacks = [reason.user_stack for reason in found.break_reasons if reason.user_stack]
    return {
        "graphs": found.graph_count,
        "breaks": found.graph_break_count,
        "lines": [stack[-1].lineno for stack in stacks],
    }


def row(case: Any) -> dict[str, Any]:
    """One program by both."""
    with contextlib.redirect_stdout(io.StringIO()):
        mine, theirs = ours(case), explained(case)
    truth = case.truth
    lines = [line for _, line in truth]
    return {
        "case": case.name,
        "truth": {"breaks": truth, "graphs": case.graphs, "skipped": case.skipped},
        "ours": mine,
        "explain": theirs,
        "ours_right": mine["breaks"] == truth
        and not mine["phantoms"]
        and (mine["graphs"], mine["skipped"]) == (case.graphs, case.skipped),
        "explain_right": theirs["graphs"] == case.graphs and theirs["breaks"] == len(truth),
        "explain_lines": sum(line in theirs["lines"] for line in lines),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| case | truth: breaks; graphs/skipped | ours | explain: graphs/breaks | lines that explain finds |",
        "|---|---|---|---|---|",
    ]
    for found in rows:
        cells = [
            found["case"],
            said(found["truth"]),
            mark(found["ours_right"]) + said(found["ours"]),
            f"{mark(found['explain_right'])}{found['explain']['graphs']}/{found['explain']['breaks']}",
            f"{found['explain_lines']} of {len(found['truth']['breaks'])}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def said(found: dict[str, Any]) -> str:
    breaks = ", ".join(f"{gb_id} :{line}" for gb_id, line in found["breaks"])
    return f"{breaks or 'none'}; {found['graphs']}/{found['skipped']}"


def mark(is_right: bool) -> str:
    return "✓ " if is_right else "✗ "


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the rows there as well")
    args = parser.parse_args()
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    rows = [row(case) for case in load_cases()]
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}\n")
    print(table(rows))
    for name, key in (("ours", "ours_right"), ("explain", "explain_right")):
        print(f"\n{name}: {sum(found[key] for found in rows)} of {len(rows)} programs counted right")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
