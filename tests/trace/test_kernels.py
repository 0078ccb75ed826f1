"""Kernels: totals, occupancy, waves, matrix units, generated kernels and graphs."""

from __future__ import annotations

import json

import polars as pl
import pytest

from pyrometer.record import to_json
from pyrometer.trace.analysis.kernels import kernel_launches, kernel_summary, kernels, top_kernels
from pyrometer.trace.analysis.tensor_cores import tensor_cores
from pyrometer.trace.naming.generated_kernels import parse_generated
from pyrometer.trace.naming.kernel_names import read_name
from pyrometer.trace.reading.read import read_trace

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)"
V100 = {
    "id": 0, "name": "Tesla V100-SXM2-32GB", "computeMajor": 7, "computeMinor": 0, "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536, "warpSize": 32, "sharedMemPerMultiprocessor": 98304, "numSms": 80,
}  # fmt: skip


@pytest.fixture
def v100(new_builder, tmp_path):
    return new_builder(tmp_path, deviceProperties=[V100])


def test_totals_per_name(builder):
    builder.python("train.py(12): step", 0, 100)
    builder.op("aten::add", 0, 10)
    builder.launch(ADD, 1, 20, 4)
    builder.op("aten::mm", 30, 10)
    builder.launch("volta_sgemm_128x32_nt", 31, 50, 30)
    builder.launch(ADD, 35, 80, 6.5)
    table = kernels(builder.read())
    assert table["name"].to_list() == ["volta_sgemm_128x32_nt", ADD]
    add = table.row(1, named=True)
    assert (add["calls"], add["total_ns"], add["min_ns"], add["max_ns"]) == (2, 10_500, 4_000, 6_500)
    assert add["share"] == 10_500 / 40_500
    assert add["category"] == "elementwise"
    assert add["short_name"] == "vectorized_elementwise_kernel<CUDAFunctor_add<float>>"
    assert (add["file"], add["line"], add["op"]) == ("train.py", 12, "aten::mm")  # of the longest launch
    first = top_kernels(builder.read(), 1)[0]
    assert first.where.op == "aten::mm"
    assert first.where.line == 12


def test_waves_and_the_tail_follow_from_what_a_multiprocessor_holds(v100):
    # 256 threads with 32 registers: 8 blocks per multiprocessor, 640 on the device.
    args = {"block": [256, 1, 1], "registers per thread": 32, "shared memory": 0}
    v100.launch("full", 0, 10, 5, grid=[1280, 1, 1], **args)
    v100.launch("tail", 20, 30, 5, grid=[641, 1, 1], **args)
    v100.launch("small", 40, 50, 5, grid=[80, 2, 1], **args)
    v100.launch("unknown", 60, 70, 5)
    rows = {row["name"]: row for row in kernel_launches(v100.read()).iter_rows(named=True)}
    assert (rows["full"]["waves"], rows["full"]["tail_share"]) == (2, 0)
    assert rows["tail"]["tail_share"] == pytest.approx(1 - 641 / 1280)
    assert rows["small"]["waves"] == 0.25
    assert rows["unknown"]["waves"] is None


@pytest.mark.parametrize(
    ("block", "registers", "memory", "resident"),
    [(1024, 32, 0, 2), (64, 88, 3328, 10), (128, 255, 0, 2), (32, 16, 0, 32), (128, 16, 40_000, 2)],
)
def test_each_resource_may_be_the_limit(v100, block, registers, memory, resident):
    args = {
        "grid": [80, 1, 1],
        "block": [block, 1, 1],
        "registers per thread": registers,
        "shared memory": memory,
    }
    v100.launch("k", 0, 10, 5, **args)
    assert kernel_launches(v100.read())["resident"].to_list() == [resident]


def test_occupancy_that_the_profiler_could_not_compute_is_computed(v100):
    args = {"grid": [800, 1, 1], "block": [128, 1, 1], "registers per thread": 64}
    v100.launch("told", 0, 10, 5, **args, **{"shared memory": 0, "est. achieved occupancy %": 31})
    v100.launch("zero", 20, 30, 5, **args, **{"shared memory": 90_000, "est. achieved occupancy %": 0})
    found = dict(kernel_launches(v100.read()).select("name", "occupancy").iter_rows())
    assert found == {"told": 0.31, "zero": 128 / 2048}


def test_occupancy_is_weighted_with_duration(v100):
    v100.launch("k", 0, 10, 9, **{"est. achieved occupancy %": 100})
    v100.launch("k", 20, 30, 1, **{"est. achieved occupancy %": 50})
    v100.launch("k", 40, 50, 70)
    assert kernels(v100.read())["occupancy"].to_list() == [pytest.approx(0.95)]


def test_kernels_of_a_graph_are_counted_per_graph(builder):
    for start in (0, 100):
        call = builder.call("cudaGraphLaunch", start, 10)
        for i in range(3):
            builder.device("kernel", f"k{i}", start + 20 + 10 * i, 5, correlation=call)
    builder.launch("alone", 200, 210, 5)
    summary = kernel_summary(builder.read())
    assert [(g.graph, g.launches, g.calls, g.total_ns) for g in summary.graphs] == [(-1, 2, 6, 30_000)]
    assert summary.graphs[0].share == pytest.approx(30 / 35)


def test_generated_kernels_name_their_operators_and_source(builder):
    builder.op("triton_poi_fused_add_relu_0", 0, 10, kernel_file="/cache/ab/cab.py")
    builder.launch("triton_poi_fused_add_relu_0", 1, 20, 4)
    row = kernels(builder.read()).row(0, named=True)
    assert row["source_ops"] == ["add", "relu"]
    assert row["kernel_file"] == "/cache/ab/cab.py"
    assert row["category"] == "triton"


@pytest.mark.parametrize(
    ("name", "ops"),
    [
        ("triton_red_fused_native_layer_norm_0", ["native_layer_norm"]),
        ("triton_per_fused__softmax_mul_3", ["_softmax", "mul"]),
        ("triton_poi_fused__to_copy_add_12", ["_to_copy", "add"]),
        ("triton_for_fused_5", []),
        ("graph_0_cpp_fused_add_relu_1", ["add", "relu"]),
        ("cpp_fused_max_pool2d_with_indices_0", ["max_pool2d_with_indices"]),
        ("triton_poi_fused_brand_new", ["brand", "new"]),
    ],
)
def test_names_of_generated_kernels(name, ops):
    found = parse_generated(name)
    if not ops:
        assert found is None or not found.source_ops
    else:
        assert list(found.source_ops) == ops


@pytest.mark.parametrize(
    ("name", "category", "matrix"),
    [
        ("volta_sgemm_128x32_nt", "gemm", False),
        ("ampere_sgemm_32x32_sliced1x4_tn", "gemm", False),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "gemm", True),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute_kernel__5x_cublas", "gemm", True),
        ("nvjet_tst_144x128_64x6_2x1_v_bz_bias_TNN", "gemm", True),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(Params)", "gemm", True),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x48x64_MI16x16x1_SN", "gemm", True),
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16", "conv", True),
        ("void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int)", "conv", False),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128> >(x)", "attention", True),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(x)", "norm", False),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)", "norm", False),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(x)", "softmax", False),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, sum_functor<float> > >(x)", "reduction", False),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 3, 64, 64>(x)", "copy", False),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4> >(x)", "optimizer", False),
        ("void at::native::(anonymous namespace)::indexSelectLargeIndex<long, long, unsigned int>(x)", "embedding", False),
        ("void at::native::(anonymous namespace)::max_pool_backward_nchw<float, float>(x)", "pooling", False),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long)", "communication", False),
        ("something_nobody_has_seen", "other", False),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x256x128x1_swiglu", "gemm", None),
        ("fused_moe_kernel", "gemm", None),
        ("cutlass_80_simt_sgemm_128x64_kernel", "gemm", False),
        ("void gemv2T_kernel_val<int, int, float>(x)", "gemm", False),
    ],
)  # fmt: skip
def test_what_names_mean(name, category, matrix):
    assert read_name(name)[1:3] == (category, matrix)


def test_matrix_units_that_lie_idle_are_named(new_builder, tmp_path):
    a100 = {**V100, "computeMajor": 8, "name": "NVIDIA A100-SXM4-80GB"}
    builder = new_builder(tmp_path, deviceProperties=[a100])
    args = {"Concrete Inputs": ["", ""]}
    for i, (size, kind, kernel) in enumerate(
        [
            (64, "float", "ampere_sgemm_128x64_nn"),
            (72, "float", "cutlass_80_tensorop_s1688gemm_64x64"),
            (63, "c10::BFloat16", "ampere_bf16_gemm_simple"),
            (64, "c10::BFloat16", "ampere_bf16_s16816gemm_bf16_128x64"),
            (64, "double", "volta_dgemm_64x64"),
        ]
    ):
        shapes = {"Input Dims": [[size, size], [size, size]], "Input type": [kind, kind]}
        builder.op("aten::mm", 100 * i, 20, **shapes, **args)
        builder.launch(kernel, 100 * i + 1, 100 * i + 30, 10 + i)
    rows = tensor_cores(builder.read()).sort("time_ns")
    assert rows["tensor_core_ns"].to_list() == [0, 11_000, 0, 13_000, 0]
    assert rows["eligible"].to_list() == [True, True, True, True, True]
    reasons = rows["reason"].to_list()
    assert "TF32" in reasons[0]
    assert reasons[1] is None
    assert reasons[2] == "size 63 is not a multiple of 8"
    assert reasons[3] is None
    assert rows["arithmetic"].to_list()[1] == "tf32"
    assert rows["odd_size"].to_list() == [None, None, 63, None, None]
    assert rows["multiple"].to_list()[2] == 8


def test_products_of_hand_written_kernels_are_unknown_and_not_off_the_matrix_units(new_builder, tmp_path):
    builder = new_builder(tmp_path, deviceProperties=[{**V100, "computeMajor": 9, "name": "NVIDIA H100"}])
    shapes = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["c10::BFloat16"] * 2}
    builder.op("aten::mm", 0, 20, **shapes)
    builder.launch("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x256x128x1", 1, 30, 10)
    trace = builder.read()
    (row,) = tensor_cores(trace).to_dicts()
    assert (row["tensor_core_ns"], row["unknown_core_ns"]) == (0, 10_000)
    assert row["reason"] == "the name of its kernel does not say on which units it runs"
    assert kernels(trace)["tensor_cores"].to_list() == [None]
    assert kernel_summary(trace).unknown_core_ns == 10_000


def test_sizes_are_odd_for_the_type_that_the_matrix_units_take(new_builder, tmp_path):
    a100 = {**V100, "computeMajor": 8, "name": "NVIDIA A100-SXM4-80GB"}
    builder = new_builder(tmp_path, deviceProperties=[a100])
    for i, (inner, wide) in enumerate([(36, 32), (36, 30), (30, 32)]):
        shapes = {"Input Dims": [[7, inner], [inner, wide]], "Input type": ["float", "float"]}
        builder.op("aten::mm", 100 * i, 20, **shapes)
        builder.launch("cutlass_80_tensorop_s1688gemm_64x64", 100 * i + 1, 100 * i + 30, 10 + i)
    rows = tensor_cores(builder.read()).sort("time_ns")
    assert rows["arithmetic"].to_list() == ["tf32"] * 3
    assert rows["odd_size"].to_list() == [None, 30, 30]
    assert rows["multiple"].to_list() == [None, 4, 4]
    assert rows["reason"].to_list()[1] == "size 30 is not a multiple of 4"


@pytest.mark.parametrize("events", ["none", "host", "nulls"])
def test_a_trace_without_kernels_or_names_gives_empty_results(builder, events):
    if events == "host":
        builder.op("aten::add", 0, 5)
    if events == "nulls":
        builder.device("kernel", None, 0, 5)
    trace = builder.read()
    assert kernels(trace).height == (events == "nulls")
    assert kernel_summary(trace).total_ns == (5_000 if events == "nulls" else 0)
    assert tensor_cores(trace).height == 0


def test_real_traces_add_up(real_trace):
    trace = read_trace(real_trace).ranks[0]
    summary = kernel_summary(trace)
    durations = trace.of_kind("kernel")["dur_ns"]
    assert (
        summary.total_ns
        == sum(c.total_ns for c in summary.categories)
        == kernels(trace)["total_ns"].sum()
        == durations.sum()
    )
    assert sum(c.calls for c in summary.categories) == len(durations)
    assert json.loads(to_json(summary))["calls"] == len(durations)
    assert summary.unclassified_ns <= 0.1 * summary.total_ns or summary.calls < 50


def test_occupancy_agrees_with_the_profilers_own(real_trace):
    rows = kernel_launches(read_trace(real_trace).ranks[0])
    rows = rows.filter(pl.col("resident").is_not_null() & (pl.col("occupancy_percent") > 0))
    threads = pl.col("block").list.eval(pl.element().product()).list.first()
    blocks = pl.col("grid").list.eval(pl.element().product()).list.first() / pl.col("num_sms")
    own = 100 * pl.min_horizontal(blocks, "resident") * threads / pl.col("max_threads_per_sm")
    assert rows.select((own - pl.col("occupancy_percent")).abs().max()).item() in (
        None,
        pytest.approx(0, abs=0.51),
    )
