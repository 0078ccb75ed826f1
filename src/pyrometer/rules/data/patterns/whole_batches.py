"""Loaders that take samples one by one from tensors that would give a whole batch at once."""

from __future__ import annotations

import ast

from pyrometer.rules.data.patterns.datasets import dataset_class
from pyrometer.rules.data.patterns.loaders import MISSING_ARGUMENT, LoaderCall, stepping_loader
from pyrometer.rules.rule import Case
from pyrometer.source.edit import replace
from pyrometer.source.rewriting import Rewrite, rewritten, spelled

INDEXED_BY_LISTS = "torch.utils.data.TensorDataset"
BY_DEFAULT = {"num_workers": 0, "collate_fn": None, "sampler": None, "batch_sampler": None}
"""Arguments that a loader of whole batches does without, and what they are where they change nothing."""

HANDED_ON = ("pin_memory", "timeout", "pin_memory_device")

ADVICE = (
    "Take whole batches from the TensorDataset: it indexes its tensors by a list of samples as well as by one, where a loader "
    "makes thousands of small tensors and stacks them"
)


def loader_of_single_samples(case: Case) -> LoaderCall | None:
    """The loader of the steps, where it takes samples one by one from a TensorDataset, without workers."""
    call = stepping_loader(case.modules)
    if call is None or not call.is_complete:
        return None
    if dataset_class(call.module, call.argument("dataset")) != INDEXED_BY_LISTS:
        return None
    plain = all(
        (given := call.value(name)) is MISSING_ARGUMENT or given == default
        for name, default in BY_DEFAULT.items()
    )
    collates = call.value("batch_size") not in (MISSING_ARGUMENT, None)
    return call if plain and collates else None


def whole_batches(call: LoaderCall) -> Rewrite | None:
    """The call that draws batches of indices in its place; None where the text does not tell what it draws."""
    module, dataset, size = call.module, call.argument("dataset"), call.argument("batch_size")
    shuffle, drop_last = (_flag(call, name) for name in ("shuffle", "drop_last"))
    known = {*BY_DEFAULT, *HANDED_ON, "dataset", "batch_size", "shuffle", "drop_last"}
    sampler = spelled(module, "torch.utils.data." + ("RandomSampler" if shuffle else "SequentialSampler"))
    batches = spelled(module, "torch.utils.data.BatchSampler")
    numbered = _numbered(call)
    others = [keyword for keyword in call.call.keywords if keyword.arg not in known]
    if (
        dataset is None
        or size is None
        or numbered is None
        or others
        or None in (shuffle, drop_last, sampler, batches)
    ):
        return None
    handed_on = [ast.unparse(keyword) for keyword in call.call.keywords if keyword.arg in HANDED_ON]
    drawn = f"sampler={batches}({sampler}({numbered}), {ast.unparse(size)}, drop_last={drop_last})"
    given = ", ".join([ast.unparse(dataset), drawn, "batch_size=None", *handed_on])
    return rewritten(module, [replace(module, call.call, f"{ast.unparse(call.call.func)}({given})")])


def _flag(call: LoaderCall, name: str) -> bool | None:
    value = call.value(name)
    if value is MISSING_ARGUMENT:
        return False
    return value if isinstance(value, bool) else None


def _numbered(call: LoaderCall) -> str | None:
    """A name of something as long as the dataset: the dataset itself, or its first tensor."""
    dataset = call.argument("dataset")
    first = dataset.args[0] if isinstance(dataset, ast.Call) and dataset.args else None
    made_here = call.module.name_of(dataset.func) if isinstance(dataset, ast.Call) else None
    named = first if made_here == INDEXED_BY_LISTS else dataset
    return named.id if isinstance(named, ast.Name) else None
