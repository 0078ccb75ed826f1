"""Plain data as YAML: every string in the quotes of JSON, which YAML reads as well."""

from __future__ import annotations

import json
from typing import Any


def yaml_of(value: Any) -> str:
    r"""A document of mappings, lists, strings and numbers; what is None is left out.

    >>> print(yaml_of({"groups": [{"name": "a", "rules": [], "for": None}], "n": 1}), end="")
    groups:
      - name: "a"
        rules: []
    n: 1
    """
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict) and value:
        return [line for key, part in value.items() if part is not None for line in _entry(key, part)]
    if isinstance(value, list) and value:
        return [line for part in value for line in _item(_lines(part))]
    return [json.dumps(value, ensure_ascii=False)]


def _entry(key: str, value: Any) -> list[str]:
    lines = _lines(value)
    if isinstance(value, (dict, list)) and value:
        return [f"{key}:", *(f"  {line}" for line in lines)]
    return [f"{key}: {lines[0]}"]


def _item(lines: list[str]) -> list[str]:
    return [f"- {lines[0]}", *(f"  {line}" for line in lines[1:])]
