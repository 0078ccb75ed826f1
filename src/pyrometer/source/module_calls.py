"""What modules return when they are called, and their methods and attributes."""

from __future__ import annotations

import ast

from pyrometer.source.called import Called
from pyrometer.source.knowledge import LOSS_NAME, MODEL_NAME
from pyrometer.source.torch_names import MODULE_CONTAINERS, TUPLE_MODULES, WITHOUT_PARAMETERS
from pyrometer.source.value import (
    CONTAINER,
    GRAPH_TENSOR,
    HOST,
    LEAF,
    MODULE,
    TENSOR,
    UNKNOWN,
    Kind,
    Value,
    plain,
    yielding,
)
from pyrometer.source.words import words

RETURNING_SELF = words(
    "train eval to cuda cpu half float double bfloat16 requires_grad_ apply type share_memory to_empty"
)
NUMBERS = words(
    "training in_features out_features in_channels out_channels embedding_dim num_embeddings kernel_size stride padding"
)
OUTPUT_FIELDS = words(
    "loss logits last_hidden_state hidden_states pooler_output image_embeds text_embeds input_ids attention_mask labels"
    " sample prev_sample edge_index"
)
"""Fields of what models and loaders of common libraries return that hold tensors."""


def module_call(called: Called, module: Value) -> Value:
    """What calling a module returns."""
    if isinstance(module.of, ast.ClassDef):
        return own_module_call(called, module.of)
    home, _, last = module.of.rpartition(".") if isinstance(module.of, str) else ("", "", "")
    if last in MODULE_CONTAINERS:
        return UNKNOWN
    if home.startswith("transformers"):
        return Value(Kind.TENSORS, not called.frame.grad_off, of="output")
    called.claim_first()
    if last in TUPLE_MODULES:
        return Value(Kind.TENSORS, not called.frame.grad_off)
    if last in WITHOUT_PARAMETERS:
        return without_parameters(called, is_loss=last.endswith("Loss"))
    return output(called)


def own_module_call(called: Called, definition: ast.ClassDef) -> Value:
    """What a module of a class of this file returns: what its forward does."""
    forward = called.module.classes.method(definition, "forward")
    if forward is None:
        return output(called)
    found = called.frame.flow.summaries.returned(called, forward, bound=True)
    has_graph = (
        found.is_tensor and not called.frame.grad_off and called.module.classes.has_parameters(definition)
    )
    return plain(found, graph=True) if has_graph else found


def output(called: Called) -> Value:
    """What a module of unknown class returns."""
    return TENSOR if called.frame.grad_off else GRAPH_TENSOR


def without_parameters(called: Called, *, is_loss: bool) -> Value:
    """The result of a module without parameters; a loss of something unknown may well carry a graph."""
    graph = any(value.differentiable or (is_loss and value.kind is Kind.UNKNOWN) for value in called.inputs)
    return GRAPH_TENSOR if graph and not called.frame.grad_off else TENSOR


def by_name(called: Called, name: str) -> Value:
    """A call of something unknown that is called like a model or a loss."""
    if not called.module.imports_torch or not called.inputs:
        return UNKNOWN
    if LOSS_NAME.search(name):
        return without_parameters(called, is_loss=True)
    return output(called) if MODEL_NAME.search(name) else UNKNOWN


def module_method(called: Called, method: str, base: Value) -> Value:
    """A method of a module whose class another file defines."""
    if method in RETURNING_SELF:
        return base
    if method == "forward":
        return module_call(called, base)
    if method == "state_dict":
        return CONTAINER
    if method == "generate" and isinstance(base.of, str) and base.of.startswith("transformers"):
        return TENSOR
    return parts_of_module(method)


def parts_of_module(method: str) -> Value:
    """The iterators over a module's parts."""
    if method in {"parameters", "buffers"}:
        return yielding(LEAF if method == "parameters" else TENSOR)
    if method in {"modules", "children"}:
        return yielding(MODULE)
    if method in {"named_parameters", "named_buffers"}:
        part = LEAF if method == "named_parameters" else TENSOR
        return yielding(Value(Kind.CONTAINER, items=(HOST, part)))
    if method in {"named_modules", "named_children"}:
        return yielding(Value(Kind.CONTAINER, items=(HOST, MODULE)))
    return UNKNOWN


def module_attribute(attribute: str) -> Value:
    """An attribute of a module whose class another file defines."""
    if attribute in {"weight", "bias"}:
        return LEAF
    if attribute in {"module", "_orig_mod"}:
        return MODULE
    return HOST if attribute in NUMBERS else UNKNOWN
