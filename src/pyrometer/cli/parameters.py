"""Types of flags: durations (`--budget 20s`), shares (`--margin 1%`) and sizes (`--memory 2GiB`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from pyrometer.errors import InputError
from pyrometer.settings import parse_bytes, parse_duration, parse_share

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:  # generic only in newer releases of click
    _ParamType = click.ParamType


class _Parsed(_ParamType):
    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


DURATION = _Parsed("duration", parse_duration)
"""Seconds from text such as `20s`, `1m30s` or `500ms`."""

SHARE = _Parsed("share", parse_share)
"""A fraction of one from text such as `1%` or `0.01`."""

BYTES = _Parsed("size", parse_bytes)
"""Bytes from text such as `2GiB`."""
