"""Which phase of compiling each of torch's many names belongs to; this is the only place that knows them.

Names are those of torch 2.4 to 2.13. One that is not listed counts as `other`, and stands in the raw names.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

TRACING = "Dynamo tracing"
GUARDS = "guards"
BACKEND = "backend"
AOT_AUTOGRAD = "AOTAutograd"
PRE_GRAD = "pre-grad passes"
JOINT_GRAPH = "joint-graph passes"
POST_GRAD = "post-grad passes"
LOWERING = "Inductor lowering"
SCHEDULING = "scheduling and fusion"
CODE_GENERATION = "code generation"
KERNEL_COMPILE = "C++/Triton compile"
WAITING = "waiting for compile threads"
LOADING = "loading code"
CACHE_LOOKUP = "cache look-up"
AUTOTUNING = "autotuning"
CUDA_GRAPHS = "CUDA graph recording"
GARBAGE = "garbage collection"
OTHER = "other"

PHASES: dict[str, tuple[str, ...]] = {
    # Dynamo reads the frame's bytecode and records a graph; begins anew after a break.
    TRACING: (
        "dynamo",
        "entire_frame_compile",
        "_compile.compile_inner",
        "compile_inner",
        "compile_attempt_*",
        "bytecode_tracing",
        "bytecode_hooks_*",
        "insert_deferred_runtime_asserts",
        "compiler_collective",
        "invoke_subgraph_*",
        "fullgraph_capture",
        "compiled_autograd",
        "debug_insert_nops",
    ),
    # The conditions under which the compiled code may be used again.
    GUARDS: ("build_guards", "precompile_*_guards", "guard_collective"),
    # What the call of the backend takes besides what it reports itself: all of it, where it is not torch's own.
    BACKEND: ("backend_compile", "OutputGraph.call_user_compiler", "inductor_import"),
    # Tracing forward and backward, functionalisation, cutting the joint graph in two.
    AOT_AUTOGRAD: (
        "create_aot_dispatcher_function",
        "aot_collect_metadata",
        "aot_trace_joint_graph",
        "min_cut_rematerialization_partition",
        "TranslationValidator.validate",
        "compile_fx.<locals>.*",
        "entire_backward_compile",
        "backward._backward_impl",
    ),
    # Rewrites of the graph. Whatever runs inside of them, such as tracing their patterns, is theirs.
    PRE_GRAD: ("_recursive_pre_grad_passes", "pass.pre_grad*"),
    JOINT_GRAPH: ("_recursive_joint_graph_passes", "pass.joint*"),
    POST_GRAD: ("_recursive_post_grad_passes", "pass.post_grad*", "fx.bucketing.*"),
    # From operators to Inductor's loops, with decompositions and layouts.
    LOWERING: (
        "inductor_compile",
        "compile_fx_inner",
        "compile_fx_aot",
        "fx_codegen_and_compile",
        "additional_fake_tensor_prop",
        "convert_conv_weights_to_channels_last",
        "GraphLowering.run",
    ),
    # Dependencies, fusion, order.
    SCHEDULING: ("Scheduler.__init__", "Scheduler.fused_nodes", "Scheduler.create_combo_kernel_nodes"),
    # Text of kernels and of the code around them.
    CODE_GENERATION: (
        "code_gen",
        "GraphLowering.codegen*",
        "GraphLowering.compile_to_*",
        "Scheduler.codegen",
        "*Wrapper*.generate",
        "generate_kernel_code_from_nodes",
        "CUTLASSGemmTemplate.*",
        "cutlass_utils.*",
    ),
    # The C++ compiler, Triton, nvcc.
    KERNEL_COMPILE: (
        "compile_file",
        "AotCodeCompiler.compile",
        "aoti_*",
        "async_compile.precompile",
        "reload_kernel_in_parent",
        "CachingAutotuner.slow_precompile_config",
        "StaticAutotunerFuture.warm_precompile",
    ),
    WAITING: ("async_compile.wait",),
    # Importing what was generated, or what was found.
    LOADING: (
        "PyCodeCache.load_by_key_path",
        "CompiledArtifact.load",
        "GraphPickler.loads",
        "after_deserialization",
        "TritonBundler.load_cached_static_autotuners",
        "TritonBundler.read_and_emit",
        "AOTAutogradCache.inductor_load",
    ),
    # Keys, reading, writing. Hashing torch's own sources takes a second, once per process.
    CACHE_LOOKUP: (
        "inductor_codecache_torch_key",
        "CacheBase.get_system.triton_key",
        "remote_fx_graph_cache_*",
        "TritonBundler.collect",
        "CompiledArtifact.save",
        "pgo.*",
    ),
    AUTOTUNING: (
        "*_template_autotuning",
        "*_template_precompiling",
        "CachingAutotuner.benchmark_all_configs",
        "CachingAutotuner.combo_sequential_autotune",
        "CachingAutotuner.coordinate_descent_tuning",
        "benchmark_codegened_module",
        "benchmark_fused_nodes",
        "collective_compute_do_bench",
    ),
    CUDA_GRAPHS: ("cudagraphify*", "CUDAGraphNode.record"),
    GARBAGE: ("gc",),
}
"""Phases in the order in which compiling goes through them, with torch's names; `*` stands for anything."""

ORDER: tuple[str, ...] = (*PHASES, OTHER)
"""In which order phases are told."""

WAITED_FOR = frozenset(
    {
        "entire_frame_compile",
        "entire_backward_compile",
        "compiled_autograd",
        "cudagraphify.get_container",
        "CUDAGraphNode.record",
        "CachingAutotuner.benchmark_all_configs",
        "CachingAutotuner.combo_sequential_autotune",
        "CachingAutotuner.coordinate_descent_tuning",
    }
)
"""What a program waits for: compiling a frame, compiling the backward at its first use, and what is left to the first run
of the compiled code (choosing among variants of a kernel, recording CUDA graphs)."""

COMPILATIONS = frozenset({"entire_frame_compile", "entire_backward_compile"})
"""Those of them that are one compilation of a frame, or its backward."""

ON_WORKERS = frozenset(PHASES[KERNEL_COMPILE])
"""What runs on compile threads too; then it bears no compile id."""

_CLOSED = frozenset({PRE_GRAD, JOINT_GRAPH, POST_GRAD})


@cache
def phase_named(name: str) -> str:
    """The phase that one of torch's names belongs to.

    >>> phase_named("GraphLowering.run"), phase_named("pass.post_grad_passes.stable_sort"), phase_named("news")
    ('Inductor lowering', 'post-grad passes', 'other')
    """
    return next(
        (
            phase
            for phase, patterns in PHASES.items()
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        ),
        OTHER,
    )


def phase_inside(name: str, surrounding: str) -> str:
    """The phase of a name inside a phase: passes own whatever runs within them.

    >>> phase_inside("aot_trace_joint_graph", JOINT_GRAPH), phase_inside("gc", TRACING)
    ('joint-graph passes', 'garbage collection')
    """
    return surrounding if surrounding in _CLOSED else phase_named(name)
