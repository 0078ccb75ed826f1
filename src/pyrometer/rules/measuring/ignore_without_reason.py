"""A comment suppresses a rule without a reason.

## What it does

Reports a `# pyrometer: ignore[...]` without words behind the brackets. The rule is ignored all the same.

## Why it costs

A reason tells the next reader whether the excuse still holds. Without it nobody dares to remove the comment, and what it
hides stays slow for good.

## Example

```python
for batch in loader:
    losses.append(model(batch).mean().item())  # pyrometer: ignore[PYR101]
```

## Use instead

```python
for batch in loader:
    losses.append(model(batch).mean().item())  # pyrometer: ignore[PYR101] ten batches a day, the curve is worth it
```

## Fix safety

There is no fix: only a person knows the reason.

## References

- Ruff, [error suppression](https://docs.astral.sh/ruff/linter/#error-suppression): the same idea and its reasons.
"""

from __future__ import annotations

from pyrometer.rules.rule import declare

RULE = declare(code="PYR091", severity="info", fix_class="exact")
