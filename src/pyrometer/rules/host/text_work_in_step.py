r"""Text is searched, split or replaced by regular expressions in every step.

## What it does
Adds up what the user's lines spend in `re` and `regex`, by samples of the host's time, and speaks where that is a good part of
the step.

## Why it costs
Regular expressions run on one core and hold the interpreter meanwhile. The same texts come again in each
epoch, and their tokens are the same.

## Example
```python
def encode(texts):
    return [[VOCABULARY.get(word, 0) for word in re.findall(r"\w+", text.lower())] for text in texts]


for texts, labels in loader:
    train_step(encode(texts), labels)
```

## Use instead
Tokenise once, before the training, or in the workers of the loader; keep what has come before.
```python
@functools.cache
def encode(text):
    return [VOCABULARY.get(word, 0) for word in re.findall(r"\w+", text.lower())]


for texts, labels in loader:
    train_step([encode(text) for text in texts], labels)
```

## Fix safety
No fix is applied: the tokens are the same, and the memory for keeping them is for the program to judge.

## References
- Python, `functools.cache`: https://docs.python.org/3/library/functools.html#functools.cache
- Hugging Face, Fast tokenizers: https://huggingface.co/docs/transformers/fast_tokenizers
"""

from __future__ import annotations

from pyrometer.rules.host.patterns.spending import TEXT, spending, spending_finding
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR123",
    severity="warning",
    fix_class="exact",
    limits=(Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),),
)


@RULE.in_evidence("host")
def explain(case: Case) -> Findings:
    """Where all of it together takes a good part of the step."""
    spent = spending(case, TEXT, case.limit(RULE, "min_share"))
    if spent is not None:
        yield spending_finding(
            RULE,
            case,
            spent,
            what="Work on text by regular expressions",
            stays=0.2,
            advice="Do it before the step: tokenise the data set once, or in the workers of the loader, or keep the result for each text with "
            "`functools.cache`; compile expressions once at the top of the module.",
        )
