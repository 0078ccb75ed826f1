from __future__ import annotations

import re

import pytest
import torch


@pytest.fixture(scope="module")
def perception(load_example):
    return load_example("perception.py")


@pytest.mark.slow
def test_prints_detections_of_frames_of_changing_size_and_counts_the_late_ones(run_example):
    output = run_example("perception.py", "--frames", "3", "--deadline-ms", "0")
    frames = re.findall(
        r"^frame +\d: +([\d,]+) points +[\d.]+ ms +20 detections, best \w+ 0\.\d\d at", output, re.MULTILINE
    )
    assert len(frames) == len(set(frames)) == 3
    assert "3 of 3 frames missed the deadline of 0 ms" in output


def test_detections_have_sane_shapes_and_come_the_most_certain_first(perception):
    with torch.inference_mode():
        scores, labels, boxes = perception.decode(
            perception.build_model()(*perception.Drive()()), num_detections=7
        )
    assert scores.shape == (7,)
    assert torch.equal(scores, scores.sort(descending=True).values)
    assert set(labels.tolist()) <= set(range(len(perception.CLASSES)))
    assert boxes.shape == (7, 7)
    assert boxes.isfinite().all()
    assert (boxes[:, 3:6] > 0).all()


def test_decode_finds_the_peak_where_it_was_put(perception):
    class_logits = torch.full((1, 3, perception.CELLS_X, perception.CELLS_Y), -9.0)
    class_logits[0, 2, 10, 40] = 3.0
    found = perception.decode(perception.Heads(class_logits, torch.zeros(1, 8, *class_logits.shape[2:])), 1)
    assert found.labels.tolist() == [2]
    # Cells of 0.8 m; x starts at the vehicle, y at 25.6 m to the right.
    assert found.boxes[0].tolist() == pytest.approx([10.5 * 0.8, 40.5 * 0.8 - 25.6, 0, 1, 1, 1, 0])


def test_pillars_do_not_depend_on_the_order_of_points_nor_on_points_outside(perception):
    torch.manual_seed(0)
    encoder = perception.PillarEncoder(8).eval()
    _, points = perception.Drive(num_points=500)()
    outside = torch.tensor([[-1.0, 0.0, 0.0, 0.0], [10.0, 99.0, 0.0, 0.0]])
    shuffled = torch.cat([outside, points.flip(0)])
    torch.testing.assert_close(encoder(shuffled), encoder(points))


def test_an_empty_cloud_gives_an_empty_grid(perception):
    encoder = perception.PillarEncoder(8).eval()
    assert torch.equal(encoder(torch.empty(0, 4)), torch.zeros(1, 8, 64, 64))


def test_workload_delivers_fresh_clouds_and_fixed_ones_of_one_size(perception):
    for factory, num_sizes in ((perception.workload, 3), (perception.fixed, 1)):
        work = factory()
        assert (work.unit, work.deadline_s) == ("frames", 0.1)
        with work.open() as session:
            frames = [session.prepare() for _ in range(3)]
            heads = session.step(frames[-1])
        assert len({len(frame.args[1]) for frame in frames}) == num_sizes
        assert not torch.equal(frames[0].args[1][:100], frames[1].args[1][:100])
        assert heads.class_logits.shape == (1, 3, 64, 64)
        assert session.units_per_step == 1


def test_the_deployed_variant_sees_the_same_frames_and_says_the_same(perception):
    outputs = []
    for factory in (perception.workload, perception.deployed):
        with factory().open() as session:
            frame = session.prepare()
            outputs.append(session.step(frame))
    assert frame.args[0].is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(outputs[0], outputs[1], rtol=1e-3, atol=1e-4)
