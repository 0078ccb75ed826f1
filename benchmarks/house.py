"""How large each room of the house is, now and at another commit, and how many rules each verb reaches.

    python benchmarks/house.py [--since REVISION]

Lines are those of Python files that git tracks; rules, those that can answer from what a verb observes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

from pyrometer.rules.registry import rules

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from reach import reach_table  # noqa: E402 - the tests keep it beside what they prove with it


def git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def room_of(path: str) -> str:
    parts = Path(path).parts
    if parts[0] == "tests":
        return "tests"
    return parts[2] if len(parts) > 3 else "ground"


def lines_by_room(revision: str) -> Counter[str]:
    """Lines of each room; of all of them but the tests under `all`."""
    lines: Counter[str] = Counter()
    # One line per file: `revision:path:count`; "" matches every line.
    for counted in git("grep", "-c", "", revision, "--", "src/pyrometer/*.py", "tests/*.py").splitlines():
        path, count = counted.removeprefix(f"{revision}:").rsplit(":", 1)
        lines[room_of(path)] += int(count)
    lines["all"] = lines.total() - lines["tests"]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--since", metavar="REVISION", help="commit to compare with")
    revisions = [since] if (since := parser.parse_args().since) else []
    revisions.append("HEAD")
    columns = [lines_by_room(revision) for revision in revisions]
    print(f"{'lines of':12}" + "".join(f"{revision:>12}" for revision in revisions))
    for room in sorted(set().union(*columns), key=lambda room: (room in {"all", "tests"}, room)):
        print(f"{room:12}" + "".join(f"{lines[room]:12,}" for lines in columns))
    print(f"\nrules reached, of {len(rules())}")
    for verb, codes in reach_table(rules()).items():
        print(f"{verb:12}{len(codes):12}")


if __name__ == "__main__":
    main()
