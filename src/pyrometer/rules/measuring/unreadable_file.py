"""A file cannot be read as Python.

## What it does

Reports a file with a syntax error, in an encoding other than it says, with null bytes, or that may not be opened. It is
reported whatever is selected, unless it is ignored by its code or name.

## Why it costs

No rule has looked at such a file. Silence about it would read as: nothing to find.

## Example

```text
for batch in loader
    step(batch)
```

## Use instead

```python
for batch in loader:
    step(batch)
```

## Fix safety

There is no fix. Files that are no Python on purpose, such as templates, belong under `exclude`.

## References

- [PEP 263](https://peps.python.org/pep-0263/): how a file says its encoding.
"""

from __future__ import annotations

from pyrometer.rules.rule import declare

RULE = declare(code="PYR092", severity="error", fix_class="exact")
