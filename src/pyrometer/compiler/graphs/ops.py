"""Classes of operations, as a picture shows them."""

from __future__ import annotations

from pyrometer.compiler.graphs.record import GraphNode

_KINDS = {
    "matmul": "mm addmm bmm baddbmm addbmm matmul linear bilinear einsum mv addmv dot outer tensordot _scaled_mm _grouped_mm "
    "_int_mm addmm_activation",
    "reduction": "sum mean prod amax amin max min argmax argmin any all var std var_mean std_mean softmax _softmax "
    "log_softmax _log_softmax logsumexp cumsum cumprod topk sort argsort norm vector_norm linalg_vector_norm nll_loss "
    "nll_loss_forward cross_entropy mse_loss aminmax median mode count_nonzero",
    "view": "view reshape permute transpose t expand expand_as unsqueeze squeeze select split split_with_sizes chunk flatten "
    "unflatten as_strided detach alias view_as _unsafe_view _reshape_alias unbind narrow movedim swapaxes slice "
    "unfold getitem lift_fresh diagonal requires_grad_ ravel mT T",
    "copy": "clone copy copy_ _to_copy to cat concat stack contiguous index gather scatter scatter_add index_put index_put_ "
    "index_select embedding pad constant_pad_nd repeat repeat_interleave tile roll flip slice_scatter select_scatter "
    "masked_select nonzero lift_fresh_copy convert_element_type setitem as_strided_scatter float half bfloat16 double "
    "embedding_bag index_copy new_tensor",
    "creation": "full zeros ones empty arange full_like zeros_like ones_like empty_like new_zeros new_ones new_empty new_full "
    "tensor scalar_tensor iota eye linspace empty_strided new_empty_strided tril_indices triu_indices",
    "random": "dropout native_dropout rand randn rand_like randn_like bernoulli bernoulli_ randint multinomial uniform normal "
    "inductor_random inductor_seeds inductor_lookup_seed inductor_randint randperm exponential_",
    "pooling": "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
    "max_pool2d_with_indices adaptive_max_pool2d upsample_nearest2d upsample_bilinear2d interpolate _adaptive_avg_pool2d",
    "symbol": "sym_size sym_stride sym_numel sym_storage_offset sym_min sym_max sym_not sym_sum size item _local_scalar_dense "
    "_assert_scalar _assert_async numel",
    "control": "cond while_loop scan map invoke_subgraph _enter_autocast _exit_autocast _set_grad_enabled wrap checkpoint "
    "tag_activation_checkpoint wrap_activation_checkpoint",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_PARTS = (
    ("attention", "attention"),
    ("conv", "convolution"),
    ("norm", "normalization"),
    ("pool", "pooling"),
    ("embedding", "copy"),
    ("loss", "reduction"),
)

KINDS = (
    *(
        "input",
        "output",
        "attribute",
        "matmul",
        "convolution",
        "attention",
        "normalization",
        "reduction",
        "pooling",
    ),
    *(
        "pointwise",
        "view",
        "copy",
        "creation",
        "random",
        "collective",
        "triton",
        "control",
        "symbol",
        "mixed",
    ),
)
"""Every class there is, in the order of a legend."""


def op_name(target: str) -> str:
    """The operation alone, without namespace and overload.

    >>> op_name("aten.addmm.default"), op_name("torch.nn.functional.linear"), op_name("Tensor.view")
    ('addmm', 'linear', 'view')
    """
    parts = [part for part in target.split(".") if part]
    if len(parts) >= 3 and parts[0] not in {"torch", "Tensor", "math"}:
        return parts[1]
    return parts[-1] if parts else target


def op_kind(node: GraphNode) -> str:
    """The class of a node; what is in no other class computes element by element.

    >>> [op_kind(GraphNode(name="x", op="call", target=t)) for t in ("aten.mm.default", "operator.add", "aten.conv2d.default")]
    ['matmul', 'pointwise', 'convolution']
    """
    if node.op != "call":
        return node.op
    if node.symbol:
        return "symbol"
    if node.module and node.target == node.module:
        return "mixed"
    return _kind_of_call(node.target)


def _kind_of_call(target: str) -> str:
    namespace, name = target.partition(".")[0], op_name(target)
    base = name.removesuffix("_backward")
    if "c10d" in namespace or "triton_kernel" in name:
        return "collective" if "c10d" in namespace else "triton"
    known = _KIND_OF.get(base) or _KIND_OF.get(base.rstrip("_"))
    part = next((kind for word, kind in _PARTS if word in base), None)
    return known or part or ("control" if namespace == "higher_order" else "pointwise")
