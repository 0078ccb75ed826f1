"""What levers need of torch that is private to it: settings of Inductor, and what it made of a graph.

Each name is looked for before it is used; where one is missing, the probe that needs it says so in place of a claim.
"""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

_INT8_KERNEL = re.compile(r"onednn\.(?:qlinear|qconv)\w*")


def inductor_patch(**settings: Any) -> Any:
    """A context in which settings of Inductor hold.

    Only the global setting works: `torch.compile(options={"freezing": True})` changes nothing in torch 2.13, since Dynamo reads the global.
    """
    from torch._inductor import config

    return config.patch(**settings)


@contextlib.contextmanager
def inductor_passes_kept() -> Iterator[None]:
    """Undo what an import lays into Inductor's passes: torchao's X86 quantizer sets the global one for good."""
    from torch._inductor import config

    before = config.pre_grad_custom_pass
    try:
        yield
    finally:
        config.pre_grad_custom_pass = before


def num_frozen_parameters() -> int | None:
    """Parameters that became constants of a compiled graph which is alive; `None` where torch does not tell."""
    graphs = _compiled_graphs()
    if graphs is None:
        return None
    return sum(len(getattr(graph, "frozen_param_names", None) or ()) for graph in graphs)


def num_int8_kernels() -> int | None:
    """Calls of oneDNN's quantised kernels in the code of compiled graphs that are alive; `None` where torch does not tell."""
    sources = _generated_sources()
    return None if sources is None else sum(len(_INT8_KERNEL.findall(source)) for source in sources)


def num_cpp_wrappers() -> int | None:
    """Compiled graphs that are alive and call their kernels from C++; `None` where torch does not tell."""
    sources = _generated_sources()
    return None if sources is None else sum("cpp_wrapper" in source for source in sources)


def _generated_sources() -> list[str] | None:
    graphs = _compiled_graphs()
    if graphs is None or not all(hasattr(graph, "source_code") for graph in graphs):
        return None
    return [graph.source_code or "" for graph in graphs]


def _compiled_graphs() -> list[Any] | None:
    from torch._inductor import output_code

    kind = getattr(output_code, "CompiledFxGraph", None)
    return None if kind is None else [each for each in gc.get_objects() if type(each) is kind]


def missing_compiler(device: torch.device) -> str | None:
    """Why Inductor cannot compile for a device on this machine; `None` where it can, as far as can be told beforehand."""
    if device.type != "cpu":
        return None
    try:
        from torch._inductor import cpp_builder, exc

        cpp_builder.get_cpp_compiler()
    except ImportError as error:
        return f"torch {torch.__version__} has no Inductor for the CPU ({error})"
    except exc.InvalidCxxCompiler:
        return "there is no C++ compiler, which Inductor needs on a CPU: install g++ or clang"
    return None


def counting_inductor(graphs: list[int]) -> Callable[..., Any]:
    """Inductor as a backend of `torch.compile` that notes the operators of each graph that it is given."""
    from torch._dynamo import lookup_backend

    inductor: Callable[..., Any] = lookup_backend("inductor")

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        graphs.append(sum(node.op.startswith("call") for node in graph.graph.nodes))
        return inductor(graph, inputs)

    return backend


def linear_pointwise() -> Any:
    """The linear layer of oneDNN with an activation after it, for the CPU; `None` where this torch has it not."""
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None)
