"""A comment suppresses a rule that finds nothing on that line.

## What it does

Reports a `# pyrometer: ignore[...]` whose rule has no finding at that place, or that names a rule which does not exist.
Only rules that ran are judged: with `--select PYR2`, ignored rules of other families are not told.

## Why it costs

What such a comment excuses is gone, or was never there. It will hide the next fault at that line, which nobody looked at.

## Example

```python
for batch in loader:
    loss = model(batch).mean()  # pyrometer: ignore[PYR101] read once per epoch only
```

## Use instead

```python
for batch in loader:
    loss = model(batch).mean()
```

## Fix safety

Exact: the fix takes a comment out, or a code out of its brackets. Keep the comment if it excuses a finding of
`pyrometer check` that the source alone does not show.

## References

- Ruff, [error suppression](https://docs.astral.sh/ruff/linter/#error-suppression): the same idea and its reasons.
"""

from __future__ import annotations

from pyrometer.rules.rule import declare

RULE = declare(code="PYR090", severity="info", fix_class="exact")
