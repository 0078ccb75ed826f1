"""`--fail-on`: which findings end a command with exit code 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import click

from pyrometer.errors import ExitCode, UsageError
from pyrometer.quantity import counted

if TYPE_CHECKING:
    from pyrometer.rules.diagnosis import Diagnosis

Failing: TypeAlias = "Callable[[Diagnosis], int]"

SEVERITIES = {"error": frozenset({"error"}), "warning": frozenset({"error", "warning"})}
"""What each word stands for: that, or worse."""

fail_on_option = click.option(
    "--fail-on",
    multiple=True,
    metavar="error|warning|CODE…",
    help="Exit with 1 if there is such a finding: warning, or PYR101,PYR5.",
)


def failing(given: Sequence[str]) -> Failing:
    """A function that says with which code to end, and tells on stderr why.

    Args:
        given: values of the flag: severities, codes, names of rules or beginnings of codes, with commas between them.

    Raises:
        UsageError: one of them is neither a severity nor names a rule.
    """
    from pyrometer.rules.registry import select

    words = [word.strip() for value in given for word in value.split(",") if word.strip()]
    severities = {severity for word in words for severity in SEVERITIES.get(word.lower(), ())}
    try:
        codes = {rule.code for rule in select(word for word in words if word.lower() not in SEVERITIES)}
    except UsageError as error:
        raise UsageError(
            f"--fail-on: {error}; legal are error, warning, and codes or names of rules"
        ) from error

    def code_for(diagnosis: Diagnosis) -> int:
        standing = [each for each in diagnosis.findings if each.severity in severities or each.code in codes]
        standing += [each for each in diagnosis.reservations if each.code in codes]
        if not standing:
            return ExitCode.OK
        told = ", ".join(dict.fromkeys(each.code for each in standing))
        click.echo(f"--fail-on {','.join(words)}: {counted(len(standing), 'finding')} ({told})", err=True)
        return ExitCode.FOUND

    return code_for
