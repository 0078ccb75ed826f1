"""Blocks that a model repeats: modules side by side, of one class and with parameters of the same shapes."""

from __future__ import annotations

from itertools import groupby

from torch import nn

MIN_BLOCKS = 2


def repeated_blocks(model: nn.Module) -> list[list[str]]:
    """Names of repeated blocks, one list per kind, in the order in which they stand.

    Blocks are looked for among the children of lists and of sequences; the outermost count. Modules without children of
    their own are no blocks: a row of linear layers costs little to compile.

    >>> block = lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    >>> repeated_blocks(nn.Sequential(block(), block(), nn.Linear(4, 2)))
    [['0', '1']]
    """
    found: list[list[str]] = []
    _search(model, "", found)
    return found


def _search(module: nn.Module, prefix: str, found: list[list[str]]) -> None:
    taken: set[str] = set()
    if isinstance(module, nn.ModuleList | nn.Sequential):
        children = sorted(module.named_children(), key=lambda pair: _form(pair[1]))
        for _, same in groupby(children, key=lambda pair: _form(pair[1])):
            group = [name for name, child in same if next(child.children(), None) is not None]
            if len(group) >= MIN_BLOCKS:
                taken |= set(group)
                order = [name for name, _ in module.named_children()]
                found.append([prefix + name for name in sorted(group, key=order.index)])
    for name, child in module.named_children():
        if name not in taken:
            _search(child, f"{prefix}{name}.", found)


def _form(module: nn.Module) -> str:
    """Class, and parameters and buffers with shape and dtype."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    parts = [f"{name} {tuple(tensor.shape)} {tensor.dtype}" for name, tensor in tensors]
    return "\n".join([f"{type(module).__module__}.{type(module).__qualname__}", *parts])
