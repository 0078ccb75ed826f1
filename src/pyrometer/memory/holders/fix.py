"""What to write instead: one line of code in the user's names; where they are not known, a comment."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from pyrometer.memory.holders.record import Holder, PinnedStorage, RetainedGraph

_ANY = "[…]"
_EXAMPLE = "# for example: "
_DETACHING = "with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):"
_DICTIONARIES = ("dict", "OrderedDict", "defaultdict", "WeakKeyDictionary")


def fix_for(
    holder: Holder | None,
    graph: RetainedGraph | None = None,
    pinned: PinnedStorage | None = None,
    *,
    lengthens: bool = False,
) -> str:
    """The line that lets a leaked tensor go.

    Args:
        holder: who keeps it.
        graph: the autograd graph that the tensor which is kept keeps alive in turn, from `retained_graph`.
        pinned: what it pins beyond its own bytes, from `pinned_storage`.
        lengthens: one tensor is replaced by ever longer ones, or resized.

    Returns:
        A line of code that runs as it is; a comment where nothing needs to be changed, or with an example where a name in it
        is not known; empty where nothing is.

    >>> losses = Holder(path="losses[…]", name="losses", expression="losses[…]", root="module global", container="list")
    >>> fix_for(losses, RetainedGraph(state="shell", nodes=12))
    '# for example: losses.append(loss.detach())'
    >>> figure = PinnedStorage(needed_bytes=4, storage_bytes=4096, pinned_bytes=4092, reason="oversized scalar", fix=".item()")
    >>> fix_for(losses, None, figure)
    '# for example: losses.append(loss.item())'
    """
    if holder is None or holder.root in ("not decided", "C-level unknown"):
        return ""
    by_root = _BY_ROOT.get(holder.root)
    if by_root is not None:
        return by_root(holder)
    if holder.expression.endswith(".grad"):
        return f"{_EXAMPLE}optimizer.zero_grad(set_to_none=True)"
    has_graph = holder.held_by_graph or (graph is not None and graph.state != "none")
    if lengthens and not has_graph:
        return f"# {holder.expression or holder.name} gets longer in each step: keep only what is still needed of it"
    if holder.container is None:
        return _variable(holder, graph) if has_graph else _dropped(holder)
    return _content(holder, graph, pinned) if has_graph or pinned is not None else _bounded(holder)


def _content(holder: Holder, graph: RetainedGraph | None, pinned: PinnedStorage | None) -> str:
    """Keep less of each tensor: a figure, a copy, or the tensor without its graph."""
    if holder.held_elements == 1:
        return _stored(holder, ".item()")
    if pinned is not None:
        return _stored(holder, pinned.fix)
    never_used = graph is not None and graph.state in ("alive", "hooked") and not graph.freed_slots
    return "with torch.no_grad():" if never_used else _stored(holder, ".detach()")


def item_name(container: str) -> str:
    """What one element of a container is called.

    >>> item_name("self.losses"), item_name('metrics["loss"]'), item_name("history"), item_name("batches")
    ('loss', 'loss', 'value', 'batch')
    """
    words: list[str] = re.findall(r"[A-Za-z_]\w*", container)
    name = words[-1].strip("_") if words else "value"
    if name.endswith(("ches", "shes", "sses", "xes")):
        return name[:-2]
    if name.endswith("s") and len(name) > 3 and not name.endswith("ss"):
        return name[:-1]
    return name if container.endswith('"]') else "value"


def _stored(holder: Holder, change: str) -> str:
    """Store something else in the container."""
    before, found, after = holder.expression.partition(_ANY)
    if not found:  # the expression ends in a key
        return f"{holder.expression} = {holder.expression}{change}"
    name = item_name(before)
    key = re.fullmatch(r'\["(\w+)"\]', after)
    item = f'{{"{key[1]}": {key[1]}{change}}}' if key else f"{name}{change}"
    container = holder.container if before == holder.name else "list"
    if container in _DICTIONARIES:
        return f"{_EXAMPLE}{before}[key] = {item}"
    return f"{_EXAMPLE}{before}.{'add' if container == 'set' else 'append'}({item})"


def _bounded(holder: Holder) -> str:
    """Give the container an end."""
    growing, found, _ = holder.expression.partition(_ANY)
    growing = growing if found else holder.name
    container = holder.container if growing == holder.name else "list"
    if container in _DICTIONARIES:
        return f"while len({growing}) > 100: {growing}.pop(next(iter({growing})))"
    if holder.maxlen is not None:
        return f"# {growing} is bounded: it never has more than {holder.maxlen}"
    lines = {
        "list": f"del {growing}[:-100]",
        "deque": f"{growing} = collections.deque(maxlen=100)",
        "set": f"{growing}.clear()",
    }
    return lines.get(container or "", f"{holder.name} = None")


def _variable(holder: Holder, graph: RetainedGraph | None) -> str:
    """A plain variable or attribute with a graph: a running sum, or the state of a recurrent model."""
    is_sum = graph is not None and str(graph.created_by).startswith("AddBackward")
    if is_sum and holder.held_elements == 1:
        return f"{holder.name} = {holder.name}.item()"
    return f"{holder.name} = {holder.name}.detach()"


def _dropped(holder: Holder) -> str:
    owner, _, attribute = holder.name.rpartition(".")
    if owner and re.search(r"\d\d|_\d", attribute):  # one of many names that were made up by the program
        return f"# {owner} gets new attributes: keep them in a container that has a bound"
    return f"{holder.name} = None"


def _hook(_: Holder) -> str:
    return f"{_EXAMPLE}handle.remove()"


def _lru_cache(holder: Holder) -> str:
    if holder.maxlen is not None:
        return f"# {holder.path} is bounded: it never has more than {holder.maxlen}"
    return f"{holder.owner}.cache_clear()"


def _traceback(holder: Holder) -> str:
    if holder.kept_by is None:
        return ""
    error = holder.kept_by.partition(".__traceback__")[0]
    return f"{error} = {error}.with_traceback(None)"


def _cycle(holder: Holder) -> str:
    cycle = (holder.chain[-1] if holder.chain else "").removeprefix("cycle: ")
    parts = cycle.split(" → ")
    context = re.search(r"\w+Backward\.(\w+)", cycle)
    if context:
        return f"{_EXAMPLE}ctx.save_for_backward({context[1]})"
    if holder.held_by_graph:
        return _DETACHING if "(saved " in cycle else ""
    for part in parts:
        variable = re.match(r"(\w+) in \w+\(\)", part)
        if variable:
            return f"del {variable[1]}"
    for part, following in itertools.pairwise(parts):
        attribute = re.fullmatch(r"\w+\.(\w+)", part)
        if attribute and following.partition(".")[0] == holder.owner:
            return f"{_EXAMPLE}self.{attribute[1]} = weakref.proxy({attribute[1]})"
    return "gc.collect()"


def _default(holder: Holder) -> str:
    """The first line of the function: what the calls share is only copied."""
    if holder.container in ("list", "dict", "set"):
        return f"{holder.name} = {holder.container}({holder.name})"
    return ""


def _optimizer(_: Holder) -> str:
    return "# the optimizer needs its state; it does not grow"


def _generator(holder: Holder) -> str:
    """Whoever has a name for it closes it; the generator of a running loop drops its own variable."""
    return f"del {holder.name}" if holder.kept_by is None else f"{holder.kept_by}.close()"


_BY_ROOT: dict[str, Callable[[Holder], str]] = {
    "hook": _hook,
    "lru_cache": _lru_cache,
    "traceback": _traceback,
    "reference cycle": _cycle,
    "default argument": _default,
    "optimizer state": _optimizer,
    "generator": _generator,
    "coroutine": _generator,
}
