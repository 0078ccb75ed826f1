"""Who holds a tensor, how large the autograd graph behind it is, and how much more than itself it pins."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class Holder(Record, frozen=True, kw_only=True):
    """What keeps one tensor alive, as its user would write it."""

    path: Annotated[str, doc('an expression such as self.history[…]["loss"], or words where Python has none')]
    name: Annotated[str, doc("the path up to what was given a name: the container, without index or key")]
    expression: Annotated[str, doc("the path without the words around it")] = ""
    kept_by: Annotated[
        str | None, doc("what keeps a generator, or the frame of a traceback: self.error.__traceback__")
    ] = None
    root: Annotated[
        str,
        doc(
            "module global, frame local, closure, default argument, lru_cache, hook, instance attribute, class attribute, "
            "optimizer state, thread, thread-local, context variable, generator, coroutine, traceback, reference cycle, "
            "autograd graph, C-level unknown, or not decided where time ran out"
        ),
    ]
    owner: Annotated[str | None, doc("the class or function that the name belongs to")] = None
    container: Annotated[str | None, doc("type of what the name stands for, such as list")] = None
    length: Annotated[int | None, doc("elements in the container")] = None
    maxlen: Annotated[int | None, doc("most elements that it can have; of a deque or an lru_cache")] = None
    file: Annotated[str | None, doc("where the owner's code is")] = None
    line: Annotated[int | None, doc("the line that a frame is at, or where the owner is defined")] = None
    held_elements: Annotated[
        int | None,
        doc("of the tensor that the path leads to: the one asked for, or one whose graph keeps it"),
    ] = None
    held_by_graph: Annotated[
        bool, doc("only an autograd graph keeps the tensor alive, and the path says who keeps the graph")
    ] = False
    chain: Annotated[list[str], doc("every hop from the root to the tensor, for the long view")] = []


class SavedSite(Record, frozen=True, kw_only=True):
    """What the nodes of one name keep for backward."""

    node: Annotated[str, doc("such as MulBackward0")]
    bytes: Bytes
    count: Annotated[int, doc("nodes of this name that keep something")]


class RetainedGraph(Record, frozen=True, kw_only=True):
    """The autograd graph that a tensor keeps alive."""

    state: Annotated[
        str,
        doc(
            "alive: it keeps tensors for backward; hooked: what it keeps was replaced by saved-tensor hooks, as checkpointing and "
            "offloading do; shell: only nodes are left, as after backward; none: there is no graph"
        ),
    ]
    nodes: Annotated[int, doc("nodes that backward would go through")] = 0
    bytes: Annotated[
        Bytes, doc("storages kept for backward, each once; not those of the leaves themselves")
    ] = 0
    hooked_slots: Annotated[int, doc("saved values that a saved-tensor hook replaced")] = 0
    freed_slots: Annotated[int, doc("saved values that a backward pass has freed")] = 0
    saved: Annotated[list[SavedSite], doc("who keeps most, largest first")] = []
    created_by: Annotated[str | None, doc("the node at the root: what made the tensor")] = None
    is_cut: Annotated[bool, doc("deeper than is safe to look: the graph is larger than the figures")] = False


class PinnedStorage(Record, frozen=True, kw_only=True):
    """Bytes that a tensor keeps alive beyond those it needs."""

    needed_bytes: Annotated[Bytes, doc("of the tensor's own elements")]
    storage_bytes: Annotated[Bytes, doc("of the storage behind it")]
    pinned_bytes: Annotated[Bytes, doc("held without need")]
    reason: Annotated[str, doc("view, oversized scalar, or oversized storage")]
    fix: Annotated[str, doc("what lets the rest go, such as .clone()")]
