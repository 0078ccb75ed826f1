"""What linting found."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pyrometer.advice import Confidence
from pyrometer.record import Record, doc
from pyrometer.rules.finding import Severity, Suppressed
from pyrometer.rules.match import Fix


class OtherPlace(Record, frozen=True, kw_only=True):
    """Another place in the same file that asks for the same change; counted as those of a finding."""

    cell: int | None = None
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    fingerprint: str = ""
    fix: Fix | None = None


class LintFinding(Record, frozen=True, kw_only=True):
    """One place in a file that a rule speaks about. Lines and columns count from 1, columns in characters."""

    code: str
    name: Annotated[str, doc("of the rule, such as item-in-hot-loop")]
    severity: Severity
    file: Annotated[str, doc("as it was named, or found below a folder that was")]
    cell: Annotated[int | None, doc("of a notebook, from 1 among all cells; lines count within it")] = None
    line: int
    column: int
    end_line: int
    end_column: Annotated[int, doc("behind the last character")]
    message: str
    advice: str = ""
    hot: Annotated[str | None, doc("why the place is hot, where that matters")] = None
    confidence: Confidence = "high"
    fix: Annotated[Fix | None, doc("its edits count columns from 0")] = None
    fingerprint: Annotated[str, doc("the same while code and surroundings stay, wherever the line moves")] = (
        ""
    )
    excerpt: Annotated[list[str], doc("the lines of the place, at most four")] = []
    also: Annotated[list[OtherPlace], doc("where the file repeats the habit; empty in a list by place")] = []

    @property
    def fixes(self) -> list[Fix]:
        """The fixes of all places."""
        return [fix for fix in (self.fix, *(place.fix for place in self.also)) if fix is not None]

    @property
    def place(self) -> str:
        """The place as editors read it, such as `train.py:12:5`."""
        cell = "" if self.cell is None else f"cell {self.cell}:"
        return f"{self.file}:{cell}{self.line}:{self.column}"


class FileResult(Record, frozen=True, kw_only=True):
    """What one file gave."""

    file: str
    findings: list[LintFinding] = []
    suppressed: list[Suppressed] = []
    failures: Annotated[list[str], doc("rules that broke off on this file, one line each")] = []
    num_lines: int = 0
    looked_at: Annotated[bool, doc("false where nothing is imported that works with tensors")] = True


class LintResult(Record, frozen=True, kw_only=True):
    """What all files gave, in the order of their names."""

    findings: list[LintFinding] = []
    suppressed: list[Suppressed] = []
    failures: list[str] = []
    num_files: int = 0
    num_looked_at: Annotated[int, doc("files that import something that works with tensors")] = 0
    num_lines: Annotated[int, doc("of the files that were looked at")] = 0

    def to_json(self) -> str:
        """The findings as `pyrometer lint --json` prints them, indented."""
        from pyrometer.rules.lint.output.json import json_of  # which is made of these records

        return msgspec.json.format(msgspec.json.encode(json_of(self)), indent=2).decode()


def combine(results: list[FileResult]) -> LintResult:
    """Join the results of files, keeping their order."""
    return LintResult(
        findings=[finding for result in results for finding in result.findings],
        suppressed=[suppressed for result in results for suppressed in result.suppressed],
        failures=[failure for result in results for failure in result.failures],
        num_files=len(results),
        num_looked_at=sum(result.looked_at for result in results),
        num_lines=sum(result.num_lines for result in results),
    )
