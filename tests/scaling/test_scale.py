"""`pyrometer scale` on real trainings: torch's own collectives, and a real run beside the prediction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyrometer.cli.calibrate import command as calibrate
from pyrometer.cli.scale import command
from pyrometer.errors import InputError, UserProgramError
from pyrometer.scaling.record import LinkFit, Links
from pyrometer.scaling.running import schedules_of
from pyrometer.scaling.scale import ScaleOptions, scale
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target

PROGRAM = Path(__file__).with_name("training.py")
TARGET = f"{PROGRAM}:work"
LAYER = (256 * 256 + 256) * 4
PARAMETERS = 4 * LAYER


def target(name):
    return f"{PROGRAM}:{name}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ranks": (1,)}, "--ranks: got 1"),
        ({"checks": (4096,)}, "--check: got 4096; this machine has"),
        ({"checks": ()}, "--check none"),
    ],
)
def test_numbers_that_cannot_be_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        scale(load_workload(parse_target(TARGET)), TARGET, ScaleOptions(**options))


def test_only_a_training_can_be_scaled():
    name = target("inference")
    with pytest.raises(InputError, match=r"is no training; .* return pm\.Training"):
        scale(load_workload(parse_target(name)), name)


def test_links_that_are_no_links_are_one_line(tmp_path):
    file = tmp_path / "links.json"
    file.write_text("{}")
    ended = CliRunner().invoke(command, [TARGET, "--links", str(file), "--no-store"])
    assert isinstance(ended.exception, InputError)


def test_links_are_not_measured_for_a_place_that_is_not_there(tmp_path):
    ended = CliRunner().invoke(calibrate, ["--links", str(tmp_path / "none" / "links.json")])
    assert isinstance(ended.exception, InputError)
    assert "there is no folder" in str(ended.exception)


@pytest.mark.slow
def test_ddp_reduces_every_gradient_once_whatever_the_number_of_ranks():
    few, many = schedules_of(TARGET, [2, 4096], "ddp", budget_s=0.2)
    assert {call.operation for call in many.calls} == {"all_reduce"}
    assert few.sent_bytes == many.sent_bytes == PARAMETERS
    assert 0 < many.forward_ends < many.backward_ends < 1
    assert all(many.forward_ends <= call.at <= many.backward_ends for call in many.calls)
    assert many.state_bytes == pytest.approx(4 * PARAMETERS, rel=0.01), "AdamW keeps two moments"


@pytest.mark.slow
def test_fsdp_gathers_each_layer_and_scatters_its_gradients():
    (many,) = schedules_of(TARGET, [1024], "fsdp", budget_s=0.2)
    by_kind = {
        kind: [call.bytes for call in many.calls if call.operation == kind]
        for kind in ("all_gather", "reduce_scatter")
    }
    assert len(by_kind["reduce_scatter"]) == 4
    assert len(by_kind["all_gather"]) in {7, 8}, "the last layer need not be gathered again"
    # Layers of 256 rows: with 1,024 ranks torch fills each up to a row per rank.
    assert {size for sizes in by_kind.values() for size in sizes} == {4 * LAYER}
    assert many.largest_unit_bytes == LAYER
    assert many.state_bytes == pytest.approx(4 * PARAMETERS, rel=0.05)


@pytest.mark.exhaustive
def test_a_program_that_fails_is_told_by_its_own_line():
    with pytest.raises(UserProgramError, match="ValueError: planted"):
        schedules_of(target("unlucky"), [2], "ddp", budget_s=0.2)


@pytest.mark.slow
def test_the_verb_prints_its_contract(tmp_path):
    arguments = [
        TARGET,
        "--ranks",
        "2,16",
        "--budget",
        "3s",
        "--json",
        "--no-store",
        "--price",
        "2",
        "-o",
        str(tmp_path / "page.html"),
    ]
    ended = CliRunner().invoke(command, arguments, catch_exceptions=False)
    document = json.loads(ended.stdout)
    assert ended.exit_code == 0
    assert {"predictions", "assumptions", "checks"} <= set(document)
    keys = {"ranks", "step_s", "low_s", "high_s", "efficiency", "peak_bytes", "binds"}
    assert [one["ranks"] for one in document["predictions"] if keys <= set(one)] == [2, 16]
    (check,) = document["checks"]
    assert check["ranks"] == 2
    assert 0.2 < check["predicted_s"] / check["measured_s"] < 5
    assert "A step by number of ranks" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_calibrated_links_replace_the_run(tmp_path):
    file = tmp_path / "links.json"
    ended = CliRunner().invoke(calibrate, ["--links", str(file), "--budget", "500ms"], catch_exceptions=False)
    assert ended.exit_code == 0
    assert "2 processes over gloo" in ended.output
    arguments = [
        TARGET,
        "--ranks",
        "8,64",
        "--check",
        "none",
        "--links",
        str(file),
        "--budget",
        "500ms",
        "--json",
        "--no-store",
    ]
    document = json.loads(CliRunner().invoke(command, arguments, catch_exceptions=False).stdout)
    assert document["checks"] == []
    assert document["basis"]["links"]["inside"]["beta_s"] > 0


def test_what_is_assumed_of_links_is_said():
    from pyrometer.scaling.scale import assumptions

    work = load_workload(parse_target(TARGET))
    fitted = LinkFit(alpha_s=1e-6, beta_s=1e-11, error=0.0)
    links = Links(backend="nccl", ranks_measured=8, inside=fitted, between=fitted, ranks_per_machine=8)
    told = " ".join(assumptions(work, ScaleOptions(links=links), links))
    assert "8 ranks share a machine (100 GB/s and 1.00 µs a hop)" in told
