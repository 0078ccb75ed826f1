"""What the names of device kernels mean, in tables that are easy to extend; an unknown name is `other`, and counted."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from pyrometer.trace.naming.patterns import COMMUNICATION

CATEGORIES: tuple[tuple[str, str], ...] = (
    ("communication", COMMUNICATION.removeprefix("(?i)")),
    ("triton", r"^triton_"),
    (
        "attention",
        (
            r"flash_fwd|flash_bwd|flash_attn|flashattn|fmha|attention|mha_fwd|mha_bwd|_attn_|attn_fwd|attn_bwd|FlashAttn"
            r"|BatchDecodeWithPaged|BatchPrefillWith|mla_(decode|prefill)|sdpa"
        ),
    ),
    (
        "optimizer",
        r"multi_tensor_apply|FusedAdam|fused_adam|AdamFunctor|fused_sgd|FusedSgd|adagrad|lamb_stage|foreach_|FusedOptimizer",
    ),
    (
        "embedding",
        (
            r"embedding|EmbeddingBag|embedding_bag|fbgemm_gpu::|permute_pooled_embs|bounds_check_indices|linearize_index"
            r"|index_(elementwise|put|copy|add)|indexSelect|indexFunc|indexing_backward|gather_kernel|scatter_gather|vectorized_gather"
        ),
    ),
    (
        "norm",
        (
            r"layer_?norm|LayerNorm|rms_?norm|RMSNorm|group_?norm|GroupNorm|RowwiseMoments|GammaBeta|ComputeInternalGradients"
            r"|batch_?norm|bn_(fw|bw|inf)|BatchNorm|MIOpenBatchNorm|BnBwd|BnFwd|cuComputeGradInput|ComputeFusedParams"
        ),
    ),
    ("softmax", r"softmax|SoftMax"),
    (
        "conv",
        (
            r"conv|wgrad|dgrad|fprop|winograd|scudnn|implicit_gemm|igemm_(fwd|bwd|wrw)|xmma_(fprop|dgrad|wgrad)|fft2d|cudnn::cnn"
            r"|cask_cudnn|miopenSp3AsmConv|MIOpen.*Conv|gcnAsmConv|depthwise|im2col|vol2col|col2im|cudnn_.*_engine"
        ),
    ),
    (
        "gemm",
        (
            r"gemm|gemv|Gemm|^Cijk_|nvjet|cutlass.*(s\d{3,}|h\d{3,}|d\d{3})|splitKreduce|splitK|cublas|dot_kernel|gemmk1|matmul|bmm_"
            r"|epilogue::impl|mfma|wmma|ck::kernel_.*gemm|_mm_|moe_.*expert|bmmKernel|fused_moe"
        ),
    ),
    (
        "pooling",
        r"pool|upsample|UpSample|grid_sampler|interpolat",
    ),
    (
        "reduction",
        (
            r"reduce_kernel|Reduce|reduce_1Block|cub::Device|DeviceScan|RadixSort|segmented_sort|bitonicSort|topk|TopK|argmax"
            r"|tensor_kernel_scan|cunn_|nll_loss|cumsum|cumulative|norm_kernel|histogram|unique"
        ),
    ),
    (
        "copy",
        (
            r"direct_copy|copy_kernel|CatArray|cat_|transpose|permute|nchwToNhwc|nhwcToNchw|NchwToNhwc|FillFunctor|fill_kernel"
            r"|memcpy|memset|copyBuffer|fillBuffer|elementwise_copy|store_kv|reshape_and_cache|concat|index_kernel_impl|nchw2nhwc|nhwc2nchw"
        ),
    ),
    (
        "elementwise",
        (
            r"elementwise|Pointwise|pointwise|CUDAFunctor|OpTensor|SubTensorOp|Op[0-9]dTensor|vectorized_|activation|act_and_mul|silu"
            r"|gelu|relu|dropout|rotary|rope|quant|Quantized|distribution_|cast|clamp|bias_|scalePackedTensor|TensorOp|kernelPointwiseApply"
            r"|threshold|arange|where_kernel|tril|triu|masked"
        ),
    ),
)
"""Category and the pattern of its kernels; the first that matches decides."""

TENSOR_CORES = (
    r"(?i)tensorop|hmma|wgmma|imma|[_-]mma|mma_?sync|s16816|s1688|s884|h16816|h1688|h884|i16832|i8816|h161616|s161616|d884"
    r"|tensor\d+x\d+x\d+|xmma|nvjet|sm90_.*gemm|sm100_.*gemm|sm80_.*gemm|warpgroup|GmmaTensorOp|_tc_|h884|^attn_(fwd|bwd)|flash_fwd|flash_bwd|fmha"
    r"|MI\d+x\d+x\d+|mfma|_wmma|gtcx|fp16_16x16|ck::.*xdl|xdlops|Xdl"
)
"""Kernels that run on matrix units: tensor cores of NVIDIA (MMA shapes, xmma, wgmma, nvjet), MFMA of AMD."""

HAND_WRITTEN = r"^(?!\w*(simt|sgemm|dgemm))(_[a-z]\w*|[a-z]\w*_kernel(_\w*)?)$"
"""Kernels called after functions of Python, as Triton calls them: their names do not say which units they use."""

TF32 = r"(?i)tf32|s1688(?!.*(f16|bf16|h))|tensor16x8x8"
"""Of these the ones that round float32 operands to TF32."""


class KernelName(NamedTuple):
    """What a kernel's name says."""

    short: str
    category: str
    tensor_cores: bool | None  # None where a product's name does not say it
    tf32: bool


@cache
def read_name(name: str) -> KernelName:
    """Category, short form and use of matrix units.

    >>> read_name("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)")[:2]
    ('vectorized_elementwise_kernel<CUDAFunctor_add<float>>', 'elementwise')
    >>> read_name("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_nt_align4>(int)")[1:]
    ('gemm', True, True)
    >>> read_name("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x256x128x1_swiglu").tensor_cores is None
    True
    """
    category = next((label for label, pattern in _CATEGORIES if pattern.search(name)), "other")
    multiplies = category in {"gemm", "conv", "attention"}
    matrix = multiplies and bool(_TENSOR_CORES.search(name))
    unknown = multiplies and not matrix and bool(_HAND_WRITTEN.match(name))
    return KernelName(
        shorten(name), category, None if unknown else matrix, matrix and bool(_TF32.search(name))
    )


_CATEGORIES = tuple(
    (label, re.compile(pattern, re.IGNORECASE if label == "communication" else 0))
    for label, pattern in CATEGORIES
)
_TENSOR_CORES = re.compile(TENSOR_CORES)
_HAND_WRITTEN = re.compile(HAND_WRITTEN)
_TF32 = re.compile(TF32)

_NOISE = re.compile(r"^(?:void |std::enable_if<[^>]*>::type )|\(anonymous namespace\)::")
_KERNEL = re.compile(r"(?:[\w]+::)*(?P<name>[\w~]+)(?P<rest>.*)", re.DOTALL)


def shorten(name: str) -> str:
    """A C++ signature without namespaces, parameters and template clutter; the functor that tells kernels apart is kept.

    >>> shorten("volta_sgemm_128x32_nt"), shorten("void cutlass::Kernel2<cutlass_80_tensorop_f16>(int)")
    ('volta_sgemm_128x32_nt', 'Kernel2<cutlass_80_tensorop_f16>')
    """
    text = _NOISE.sub("", _NOISE.sub("", name))
    match = _KERNEL.match(text)
    if match is None or not match["rest"]:
        return text.strip() or name
    base, rest = match["name"], match["rest"]
    inner = _functor(rest) if _GENERIC.search(base) else ""
    return f"{base}<{inner}>" if inner else base


_GENERIC = re.compile(r"elementwise_kernel|reduce_kernel|apply_kernel|^Kernel\d*$|unroll")
_FUNCTOR = re.compile(
    r"\b(\w*(?:Functor\w*|_functor|_kernel_cuda|_kernel_impl|KernelImpl|NormTwoOps|WelfordOps|MeanOps|ReduceOp)|cutlass_\w+)"
    r"(<\w+>)?"
)
_VAGUE = ("BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor", "ReduceOp", "gpu_kernel_impl")


def _functor(text: str) -> str:
    """The most telling functor among the template arguments: the first that is not itself a frame for others."""
    names = [match[1] + (match[2] or "") for match in _FUNCTOR.finditer(text)]
    return next((name for name in names if not name.startswith(_VAGUE)), names[0] if names else "")
