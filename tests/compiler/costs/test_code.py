"""Generated code: kernels, calls, buffers; and where kernels come from."""

from __future__ import annotations

import pytest

from pyrometer.compiler.costs.code import artifact_bytes, read_code, read_origins

HEAD = """\
import torch
from torch._inductor.select_algorithm import extern_kernels
aten = torch.ops.aten
inductor_ops = torch.ops.inductor
empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu
async_compile = AsyncCompile()
"""

ON_CPU = f"""# AOT ID: ['3_backward']
{HEAD}
cpp_fused_add_0 = async_compile.cpp_pybinding(['float*', 'const float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(float* out, const float* in)
{{
    auto tmp0 = at::vec::Vectorized<float>::loadu(in, 16);  // reuse
}}
''')
cpp_fused_sum_1 = async_compile.cpp_pybinding(['float*'], r'''
''')

async_compile.wait(globals())
del async_compile

class Runner:
    def call(self, args):
        buf0 = empty_strided_cpu((2, 2), (2, 1), torch.float32)
        # Topologically Sorted Source Nodes: [x], Original ATen: [aten.mm] extern_kernels.mm(
        extern_kernels.mm(arg0, arg1, out=buf0)
        extern_kernels.mm(arg0, arg1, out=buf0)
        buf1 = torch.ops.aten.sort.stable(buf0, stable=True)
        assert_size_stride(buf1, (2,), (1,), 'torch.ops.aten.sort.default')
        aten.bernoulli_(buf0, 0.5)
        buf2 = buf0; del buf0  # reuse
        cpp_fused_add_0(buf2, arg0)

def benchmark_compiled_module(times=10, repeat=10):
    arg0 = empty_strided_cpu((2, 2), (2, 1), torch.float32)
    extern_kernels.mm(arg0, arg0)
"""

ON_CUDA = f"""# AOT ID: ['0_inference']
{HEAD}
triton_poi_fused_relu_0 = async_compile.triton('triton_poi_fused_relu_0', '''
import triton
def get_args():
    arg_0 = empty_strided_cuda((8,), (1,))
''', device_str='cuda')
async_compile.wait(globals())
def call(args):
    with torch.cuda._DeviceGuard(0):
        buf0 = empty_strided_cuda((8, ), (1, ), torch.float32)
        triton_poi_fused_relu_0.run(arg0, buf0, 8, stream=stream0)
"""

CPP_WRAPPER = '''
cpp_wrapper_src = (
r"""
extern "C"  void  cpp_fused_relu_0(float* in_out_ptr0);
void inductor_entry_impl() {
    // aoti_torch_cpu_mm_out(
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, &buf3_handle));
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(buf3, arg0_1, arg0_1));
    auto buf5 = std::move(buf3);  // reuse
}
extern "C"  void  cpp_fused_relu_0(float* in_out_ptr0)
{
    float tmp0 = in_out_ptr0[0];
}
"""
)
'''


def written(build, text, path="/cache/a.py"):
    build.add("inductor_output_code", {"filename": path, "file_path": path}, text)
    return read_code(build.log())[-1]


def test_code_for_the_cpu(build):
    found = written(build, ON_CPU)
    assert found.kernels == ["cpp_fused_add_0", "cpp_fused_sum_1"]
    assert found.extern_calls == {
        "extern_kernels.mm": 2,
        "torch.ops.aten.sort.stable": 1,
        "aten.bernoulli_": 1,
    }
    assert (found.allocations, found.reuses) == (1, 1)
    assert (found.is_backward, found.vectorized) == (True, True)
    assert (found.compile_id, found.path) == ("0/0", "/cache/a.py")
    assert (found.num_bytes, found.num_lines) == (len(ON_CPU), ON_CPU.count("\n"))


def test_code_for_a_gpu(build):
    found = written(build, ON_CUDA)
    assert (found.kernels, found.extern_calls, found.allocations) == (["triton_poi_fused_relu_0"], {}, 1)
    assert (found.is_backward, found.vectorized) == (False, None)


def test_code_that_calls_its_kernels_from_cpp(build):
    found = written(build, CPP_WRAPPER)
    assert (found.kernels, found.extern_calls) == (["cpp_fused_relu_0"], {"aoti_torch_cpu_mm_out": 1})
    assert (found.allocations, found.reuses, found.vectorized) == (1, 1, False)


def test_an_empty_file(build):
    found = written(build, "")
    assert (found.kernels, found.num_bytes, found.num_lines, found.vectorized) == ([], 0, 0, None)


def test_a_file_that_serves_twice_counts_once(build):
    written(build, ON_CPU)
    written(build, ON_CPU)
    written(build, ON_CUDA, path="/cache/b.py")
    assert artifact_bytes(read_code(build.log())) == len(ON_CPU) + len(ON_CUDA)


STACK = '  File "/home/me/model.py", line 4, in forward\n    return self.up(x)\n'
IN_TORCH = (
    STACK
    + '  File "/x/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return F.linear(x)\n'
)


def test_a_kernel_comes_from_nodes_and_from_the_users_lines(build):
    nodes = {
        "cppCodeToPost": {"cpp_fused_add_0:1": ["add", "mul"], "extern_kernels.mm:2": ["mm"]},
        "version": 2.0,
    }
    build.artifact("inductor_provenance_tracking_node_mappings", nodes)
    build.artifact(
        "inductor_provenance_tracking_kernel_stack_traces",
        {"cpp_fused_add_0:1": [STACK, IN_TORCH], "extern_kernels.mm:3": [IN_TORCH]},
    )
    first, second, third = read_origins(build.log())
    assert (first.kernel, first.call, first.ops) == ("cpp_fused_add_0", 1, ["add", "mul"])
    assert first.places == ["/home/me/model.py:4"]
    assert (second.kernel, second.call, second.ops, second.places) == ("extern_kernels.mm", 2, ["mm"], [])
    assert (third.kernel, third.call, third.ops, third.places) == (
        "extern_kernels.mm",
        3,
        [],
        ["/home/me/model.py:4"],
    )


def test_forward_and_backward_keep_their_own(build):
    for nodes, stacks in [
        ({"cppCodeToPost": {"a:1": ["x"]}}, {"a:1": [STACK]}),
        ({"version": 2.0}, {"b:1": [STACK]}),
    ]:
        build.artifact("inductor_provenance_tracking_node_mappings", nodes)
        build.artifact("inductor_provenance_tracking_kernel_stack_traces", stacks)
    assert [(origin.kernel, origin.ops, len(origin.places)) for origin in read_origins(build.log())] == [
        ("a", ["x"], 1),
        ("b", [], 1),
    ]


@pytest.mark.parametrize("payload", ["", "[]", "{", '{"a:1": 3}', '{"a:1": [null]}', '{"cppCodeToPost": 3}'])
def test_odd_origins_tell_nothing_of_places(build, payload):
    for kind in ("node_mappings", "kernel_stack_traces"):
        build.artifact(f"inductor_provenance_tracking_{kind}", payload)
    assert all(origin.places == [] and origin.ops == [] for origin in read_origins(build.log()))


def test_code_of_a_warm_cache_without_origins_has_none(build):
    for kind in ("node_mappings", "kernel_stack_traces"):
        build.artifact(f"inductor_provenance_tracking_{kind}", "")
    assert read_origins(build.log()) == []
