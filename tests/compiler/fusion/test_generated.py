"""What generated code shows by itself, and the names of layouts."""

from __future__ import annotations

import pytest

from pyrometer.compiler.fusion.layouts import layout_name
from pyrometer.compiler.generated_code import kernel_kind, read_generated

TRITON = """
# AOT ID: ['3_backward']
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', \'\'\'
import triton
def triton_poi_fused_add_0(in_ptr0):
    pass
\'\'\', device_str='cuda')


triton_red_fused_sum_1 = async_compile.triton('triton_red_fused_sum_1', \'\'\'
def triton_red_fused_sum_1(in_ptr0):
    pass
\'\'\', device_str='cuda')

def call(args):
    with torch.cuda._DeviceGuard(0):
        buf0 = empty_strided_cuda((8, 8), (8, 1), torch.float32)
        triton_poi_fused_add_0.run(primals_1, buf0, 64, stream=stream0)
        buf1 = buf0; del buf0  # reuse
        buf2 = empty_strided_cuda((8, ), (1, ), torch.float32)
        triton_red_fused_sum_1.run(buf1, buf2, 8, 8, stream=stream0)
        extern_kernels.mm(buf1, buf2, out=buf3)
        buf4 = torch.ops.aten.sort.stable(buf2)
    return (buf2, )
"""


def test_kernels_of_a_gpu_are_found_without_a_word_on_vectors():
    parts = read_generated(TRITON)
    assert parts.kernels == {"triton_poi_fused_add_0": None, "triton_red_fused_sum_1": None}
    assert parts.called == list(parts.kernels)
    assert parts.extern_calls == ["extern_kernels.mm", "torch.ops.aten.sort.stable"]
    assert (parts.allocations, parts.reuses, parts.is_backward) == (2, 1, True)


def test_a_backward_is_known_by_its_tangents_where_the_code_has_no_name():
    assert read_generated("    primals_1, tangents_1 = args\n").is_backward
    assert not read_generated("    primals_1, = args\n").is_backward


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("triton_per_fused_x_0", "reduction"),
        ("triton_tem_fused_mm_0", "template"),
        ("triton_poi_fused_add_0", "pointwise"),
        ("cpp_fused_add_0", "fused"),
        ("odd", "fused"),
    ],
)
def test_names_of_kernels_tell_their_kind(kernel, kind):
    assert kernel_kind(kernel) == kind


@pytest.mark.parametrize(
    ("size", "stride", "name"),
    [
        ([], [], "contiguous"),
        ([1, 1], [1, 7], "contiguous"),
        ([32, 1], [1, 32], "contiguous"),
        ([2, 3, 4], [12, 4, 1], "contiguous"),
        ([2, 3, 4], [12, 1, 3], "transposed"),
        ([8, 3, 4, 4], [48, 1, 12, 3], "channels last"),
        ([2, 2, 2, 2, 2], [16, 1, 8, 4, 2], "channels last"),
        ([4, 4], [0, 1], "broadcast"),
        ([4, 4], [8, 1], "padded"),
        ([-1, 4], [4, 1], "unknown"),
        ([4], [], "unknown"),
    ],
)
def test_strides_tell_the_layout(size, stride, name):
    assert layout_name("FixedLayout", size, stride) == name


def test_layouts_without_strides_are_named_by_what_they_are():
    kinds = ["NoneLayout", "MultiOutputLayout", "NonOwningLayout", "MutationLayoutSHOULDREMOVE"]
    assert [layout_name(kind, [], []) for kind in kinds] == ["none", "several", "view", "view"]
