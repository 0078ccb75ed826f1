"""One line per finding, and how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pyrometer.rules.lint.habits import told
from pyrometer.rules.lint.result import LintFinding, LintResult
from pyrometer.rules.registry import find_rule

_BY = {"comment": "comments", "baseline": "the baseline"}
"""What a finding was left out by, as it is told."""


def text_of(result: LintResult) -> str:
    """All findings, one per line: `train.py:12:5: PYR101 item-in-hot-loop: message [*fixable]`."""
    return "".join(f"{line_of(finding)}\n" for finding in result.findings)


def line_of(finding: LintFinding) -> str:
    """One finding in one line; it ends in `[*fixable]` where `--fix` mends it, in `[*unsafe]` where only `--unsafe-fixes` does."""
    mark = f" {mark_of(finding)}" if finding.fixes else ""
    return f"{finding.place}: {finding.code} {finding.name}: {told(finding)}{mark}"


def mark_of(finding: LintFinding) -> str:
    """How the fix of a finding is applied; empty where there is none."""
    if not finding.fixes:
        return ""
    return "[*fixable]" if any(fix.fix_class == "exact" for fix in finding.fixes) else "[*unsafe]"


def summary_of(result: LintResult) -> str:
    """How many findings in how many files, what can be fixed, and how many the user chose not to see."""
    checked = f"{_many(result.num_looked_at, 'file')} of {result.num_files} that use torch"
    if not result.findings:
        return f"no findings in {checked}{_left_out(result)}"
    files = len({finding.file for finding in result.findings})
    num_places = sum(1 + len(finding.also) for finding in result.findings)
    places = f" at {num_places:,} places" if num_places > len(result.findings) else ""
    text = f"{_many(len(result.findings), 'finding')}{places} in {_many(files, 'file')}; looked at {checked}"
    classes = Counter(fix.fix_class == "exact" for finding in result.findings for fix in finding.fixes)
    if classes[True]:
        text += f"; --fix mends {classes[True]}"
    if classes[False]:
        text += f"; --fix --unsafe-fixes mends {classes[False]}{' more' if classes[True] else ''}"
    return text + _left_out(result)


def _left_out(result: LintResult) -> str:
    counts = Counter(suppressed.by for suppressed in result.suppressed)
    return "".join(f"; left out by {_BY[by]}: {counts[by]:,}" for by in _BY if counts[by])


def statistics_of(result: LintResult) -> list[dict[str, object]]:
    """How often each rule fired, the most frequent first."""
    counts: Counter[str] = Counter()
    fixable: Counter[str] = Counter()
    for finding in result.findings:
        counts[finding.code] += 1 + len(finding.also)
        fixable[finding.code] += len(finding.fixes)
    return [
        {"code": code, "name": find_rule(code).name, "count": count, "fixable": fixable[code]}
        for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def statistics_text(result: LintResult) -> str:
    """The counts as aligned lines."""
    return "".join(_rows(statistics_of(result)))


def _rows(counts: Iterable[dict[str, object]]) -> Iterator[str]:
    rows = list(counts)
    width = max((len(str(row["count"])) for row in rows), default=0)
    for row in rows:
        mark = f"  [{row['fixable']} with a fix]" if row["fixable"] else ""
        yield f"{row['count']:>{width}}  {row['code']}  {row['name']}{mark}\n"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
