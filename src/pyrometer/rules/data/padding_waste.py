"""Much of what is computed is padding.

## What it does
Reads the measured share of padding, where the workload names a mask or lengths. In source text it finds tokenizers that pad
to a fixed length (`padding="max_length"`) in collate functions, datasets and trainings that do not need one.

## Why it costs
Padded places pass through every layer like data. Where the cost grows with the number of tokens, a share of padding of 40 % makes a step
take up to 1.7 times as long as it must; attention, which grows with the square, loses more.

## Example
```python
import torch
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")


def collate(texts: list[str]) -> dict[str, torch.Tensor]:
    return tokenizer(texts, padding="max_length", truncation=True, max_length=512, return_tensors="pt")
```

## Use instead
```python
import torch
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")


def collate(texts: list[str]) -> dict[str, torch.Tensor]:
    return tokenizer(texts, padding="longest", truncation=True, max_length=512, return_tensors="pt")
```

## Fix safety
Left to a person: outputs at real places are the same only where the model honours its mask, and shapes change from batch to batch.

## References
- Hugging Face documentation, padding and truncation: https://huggingface.co/docs/transformers/pad_truncation
- PyTorch documentation, torch.nn.utils.rnn.pad_sequence: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html
"""

from __future__ import annotations

import ast

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.data.patterns.loaders import trains
from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

RULE = declare(
    code="PYR310",
    severity="warning",
    fix_class="semantic",
    lever="shape_buckets",
    limits=(Limit("min_padding", 0.2, "buckets leave about a tenth of padding themselves"),),
)

LEFT_OVER = 0.1
"""Padding that batches of like length still have; below it buckets become so small that shapes and order suffer."""


@RULE.in_evidence("measurement")
def explain(case: Case) -> Findings:
    """The measured share of padding."""
    measured = case.measurement
    if measured is None or measured.padding_ratio is None:
        return
    share = measured.padding_ratio
    if share < case.limit(RULE, "min_padding"):
        return
    yield RULE.finding(
        message=f"{format_percent(share, 2)} of the places that a step computes are padding",
        where=Place(),
        evidence={"padding_ratio": share, "throughput": measured.throughput, "unit": measured.unit},
        links=["/measurement/padding_ratio"],
        cost=Cost(
            seconds_per_step=share * measured.median_s,
            share=share,
            method="share of padded places, as if each place took the same time",
        ),
        gain=Gain(
            ratio_low=(1 - share) / (1 - LEFT_OVER),
            ratio_high=1.0,
            method="bound: time in proportion to the places, a tenth of padding left; nothing where shapes do not matter",
        ),
        confidence="medium",
        advice="Draw batches of samples of like length and pad each to its longest; pyrometer's recommend_shapes says which lengths "
        "to pad to where shapes must be few.",
        sketch="DataLoader(dataset, batch_sampler=pyrometer.BucketBatchSampler(lengths, batch_size=…), collate_fn=…)",
        resource="padding",
    )


@RULE.in_evidence("loading")
def explain_samples(case: Case) -> Findings:
    """The advice of the sample profile on lengths, where padding was not measured in the step itself."""
    if case.measurement is None or case.measurement.padding_ratio is None:
        yield from advised(RULE, case, "pad-to-longest", "bucket-by-length", cost=None, resource="padding")


@RULE.in_source
def find(module: Module) -> Matches:
    """Tokenizers that pad to a fixed length where nothing asks for fixed shapes."""
    if not module.imports_torch or _needs_fixed_shapes(module):
        return
    for call in module.nodes(ast.Call):
        padding = module.keyword(call, "padding")
        if not isinstance(padding, ast.Constant) or padding.value != "max_length" or not _tokenizes(call):
            continue
        if not _feeds_training(module, call):
            continue
        yield match(
            padding,
            "every text is padded to the longest that is allowed, however short it is",
            advice='Pad each batch to its longest text: padding="longest" in the collate function, or DataCollatorWithPadding.',
            confidence="medium",
        )


def _tokenizes(call: ast.Call) -> bool:
    """Whether a call is of a tokenizer that is given more than one fixed text, as its own name or its class says."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in {
        "encode_plus",
        "batch_encode_plus",
        "__call__",
    }:
        function = function.value
    word = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    named = "tokenizer" in word.lower()
    return named and bool(call.args) and not isinstance(call.args[0], ast.Constant)


def _feeds_training(module: Module, call: ast.Call) -> bool:
    """Whether texts are made into batches of a loader here: in a collate function, a dataset, or a file that trains."""
    function = module.function_of(call)
    if function is not None and ("collate" in function.name or function.name == "__getitem__"):
        return True
    return trains(module) or any(
        True for _ in module.calls("transformers.Trainer", "transformers.Seq2SeqTrainer")
    )


def _needs_fixed_shapes(module: Module) -> bool:
    """Whether the file compiles, exports or runs where every new shape is dear."""
    if any(
        True
        for _ in module.calls("torch.compile", "torch.export.export", "torch.onnx.export", "torch.jit.trace")
    ):
        return True
    packages = {alias.name for node in module.nodes(ast.Import) for alias in node.names} | {
        node.module or "" for node in module.nodes(ast.ImportFrom)
    }
    return any(
        name.startswith(("torch_xla", "torch_neuron", "optimum", "habana", "tensorrt")) for name in packages
    )
