"""What a search keeps, on a laboratory whose truth is known: no process is started, and every decision can be checked."""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.errors import InputError, NotApplicableError, UserProgramError
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.search.budget import Budget
from pyrometer.tuning.search.journal import Journal
from pyrometer.tuning.search.on_cluster import Crew
from pyrometer.tuning.search.ordering import Prediction
from pyrometer.tuning.search.search import Search
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.search.weighing import Weighing
from pyrometer.tuning.trials.gate import Numerics
from pyrometer.tuning.trials.laboratory import OpenConfiguration
from pyrometer.tuning.trials.protocol import Opened

DROP, FOLD, LAYOUT = (LeverChoice(lever=name) for name in ("drop_dropout", "fold_batchnorm", "channels_last"))
BF16, CAST = LeverChoice(lever="autocast_bf16"), LeverChoice(lever="cast_bf16")
PLAIN = LeverChoice(lever="compile", parameters={"mode": "default"})
FROZEN = LeverChoice(lever="compile", parameters={"mode": "default", "freezing": True})


@dataclass
class KnownLaboratory:
    """Steps take what `time_of` says of the names of their levers."""

    time_of: object
    wrong: frozenset = frozenset()
    not_applied: frozenset = frozenset()
    broken: dict = field(default_factory=dict)
    peaks: dict = field(default_factory=dict)
    opened: list = field(default_factory=list)
    alive: int = 0
    num_steps: int = 60
    num_blocks: int = 12
    more_pairs: int = 1

    def open(self, configuration, *, timeout_s=None, fresh_seed=None):
        names = [choice.lever for choice in configuration]
        self.opened.append(names)
        for name in names:
            if name in self.broken:
                raise self.broken[name]
        self.alive += 1

        def close():
            self.alive -= 1

        missing = next((name for name in names if name in self.not_applied), None)
        stack = contextlib.ExitStack()
        stack.callback(close)
        opened = Opened(name="m", device="cpu", clock="wall", first_call_s=1.0, not_applied=missing)
        return OpenConfiguration(configuration, SimpleNamespace(alive=True), opened, 1.0, stack)

    def check(self, side, **_):
        names = {choice.lever for choice in side.configuration}
        return Numerics(refused="as given: off" if names & self.wrong else None)

    def compare(self, best, candidate, budget_s, seed=0, **_):
        ratio = self.time_of(candidate.configuration) / self.time_of(best.configuration)
        outcome = "faster" if ratio < 0.98 else "slower" if ratio > 1.02 else "same"
        figures = {
            "confidence": 0.95,
            "margin": 0.05,
            "smallest_effect": 0.02,
            "num_blocks": 8,
            "elapsed_s": 1.0,
        }
        return Verdict(outcome=outcome, ratio=ratio, ci_low=ratio * 0.99, ci_high=ratio * 1.01, **figures)

    def peak_bytes(self, side):
        return max((self.peaks.get(choice.lever, 0) for choice in side.configuration), default=0)


def by_factor(**factors):
    """Levers that act by themselves: the time is the product of their factors."""
    return lambda configuration: math.prod(factors.get(choice.lever, 1.0) for choice in configuration)


def run(laboratory, *choices, tmp_path, resume=False, now=lambda: 0.0, predicted=(), ahead=None, **settings):
    journal = Journal(tmp_path / "journal.jsonl", "id", resume=resume)
    asked = TuneSettings(**settings)
    weighing = Weighing(laboratory, asked, Budget(asked.budget_s, now), 0.01)
    search = Search(weighing, journal, dict(predicted), lambda *_: None)
    weighing.begin_with(laboratory.open(()))
    search.ahead = ahead
    listed = {}
    for choice in choices:
        listed.setdefault(choice.lever, []).append(choice)
    search.run(listed)
    search.go_on()
    search.tell_untried()
    weighing.close()
    assert laboratory.alive == 0
    return search


def outcomes(search):
    return {each.label: each.outcome for each in search.outcomes}


def test_what_helps_is_kept_and_the_rest_is_told_with_its_reason(tmp_path):
    laboratory = KnownLaboratory(by_factor(channels_last=0.8, fold_batchnorm=1.0, drop_dropout=1.2))
    search = run(laboratory, DROP, FOLD, LAYOUT, tmp_path=tmp_path)
    assert search.best == (LAYOUT,)
    assert outcomes(search) == {
        "channels_last": "kept",
        "fold_batchnorm": "no gain",
        "drop_dropout": "slower",
    }


def test_a_lever_that_is_not_in_force_is_never_timed(tmp_path):
    laboratory = KnownLaboratory(by_factor(channels_last=0.5), not_applied=frozenset({"channels_last"}))
    search = run(laboratory, LAYOUT, tmp_path=tmp_path)
    assert search.best == ()
    (outcome,) = search.outcomes
    assert (outcome.outcome, outcome.ratio) == ("not applied", None)


def test_wrong_numbers_are_dropped_however_fast(tmp_path):
    search = run(
        KnownLaboratory(by_factor(cast_bf16=0.1), wrong=frozenset({"cast_bf16"})), CAST, tmp_path=tmp_path
    )
    assert search.best == ()
    assert outcomes(search) == {"cast_bf16": "wrong numbers"}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (UserProgramError("a fresh process was killed (SIGKILL)"), "failed"),
        (NotApplicableError("no 2-d convolution"), "not applicable"),
    ],
)
def test_a_lever_that_fails_is_recorded_and_the_search_goes_on(tmp_path, error, outcome):
    laboratory = KnownLaboratory(by_factor(channels_last=0.8), broken={"fold_batchnorm": error})
    search = run(laboratory, FOLD, LAYOUT, tmp_path=tmp_path)
    assert search.best == (LAYOUT,)
    assert outcomes(search)["fold_batchnorm"] == outcome
    assert str(error) in {each.reason for each in search.outcomes}


def test_levers_that_exclude_each_other_compete(tmp_path):
    laboratory = KnownLaboratory(by_factor(autocast_bf16=0.8, cast_bf16=0.6))
    search = run(laboratory, BF16, CAST, tmp_path=tmp_path)
    assert search.best == (CAST,)


def test_a_winner_that_a_later_one_makes_needless_is_left_out_again(tmp_path):
    def time_of(configuration):
        names = {choice.lever for choice in configuration}
        if "compile" in names:
            return 0.5
        return 0.8 if "channels_last" in names else 1.0

    levers = (LAYOUT, FROZEN, PLAIN, LeverChoice(lever="aot_inductor"))
    search = run(KnownLaboratory(time_of), *levers, tmp_path=tmp_path, budget_s=100.0)
    assert search.best == (FROZEN,)
    reason = next(each.reason for each in search.outcomes if each.name == "channels_last")
    assert "brings nothing more" in reason


def test_a_winner_that_another_one_needs_stays(tmp_path):
    def time_of(configuration):
        names = {choice.lever for choice in configuration}
        return {(True, True): 0.4, (True, False): 0.8, (False, True): 0.9, (False, False): 1.0}[
            "channels_last" in names, "compile" in names
        ]

    search = run(KnownLaboratory(time_of), LAYOUT, FROZEN, tmp_path=tmp_path)
    assert search.best == (LAYOUT, FROZEN)


def test_memory_over_the_goal_is_no_gain(tmp_path):
    laboratory = KnownLaboratory(by_factor(channels_last=0.5), peaks={"channels_last": 3 * 2**30})
    search = run(laboratory, LAYOUT, tmp_path=tmp_path, memory_bytes=2 * 2**30)
    assert search.best == ()
    assert "2.00 GiB" in search.outcomes[0].reason or "2 GiB" in search.outcomes[0].reason


def test_when_the_budget_is_spent_the_rest_is_untried(tmp_path):
    clock = itertools.count(0, 8)
    laboratory = KnownLaboratory(by_factor())
    search = run(
        laboratory, DROP, FOLD, LAYOUT, BF16, CAST, tmp_path=tmp_path, now=lambda: next(clock), budget_s=200.0
    )
    assert "untried" in outcomes(search).values()
    assert "no gain" in outcomes(search).values()


def test_a_search_that_was_killed_repeats_nothing(tmp_path):
    laboratory = KnownLaboratory(by_factor(channels_last=0.8, fold_batchnorm=0.9))

    class KilledError(BaseException):
        pass

    def killed(configuration, **_):
        if [choice.lever for choice in configuration] == ["fold_batchnorm", "channels_last"]:
            raise KilledError
        return KnownLaboratory.open(laboratory, configuration)

    laboratory.open = killed
    with pytest.raises(KilledError):
        run(laboratory, FOLD, LAYOUT, tmp_path=tmp_path)
    again = KnownLaboratory(laboratory.time_of)
    search = run(again, FOLD, LAYOUT, tmp_path=tmp_path, resume=True)
    assert search.best == (FOLD, LAYOUT)
    assert again.opened.count(["channels_last"]) == 1  # what the next is compared with
    fresh = run(KnownLaboratory(laboratory.time_of), FOLD, LAYOUT, tmp_path=tmp_path / "..")
    assert outcomes(search) == outcomes(fresh)


def test_ctrl_c_keeps_what_was_decided(tmp_path):
    laboratory = KnownLaboratory(by_factor(channels_last=0.8), broken={"fold_batchnorm": KeyboardInterrupt()})
    search = run(laboratory, LAYOUT, FOLD, tmp_path=tmp_path)
    assert search.interrupted
    assert search.best == (LAYOUT,)


def test_stages_are_gone_through_in_the_order_asked_for_and_validated(tmp_path):
    laboratory = KnownLaboratory(by_factor(channels_last=0.8, fold_batchnorm=0.9))
    search = run(laboratory, FOLD, LAYOUT, PLAIN, tmp_path=tmp_path, stages=["basic", "memory"])
    assert [(report.stage, report.levers) for report in search.stages] == [
        ("basic", ["fold_batchnorm"]),
        ("memory", ["channels_last"]),
    ]
    assert all(report.numerics is not None for report in search.stages)
    assert [report.ratio for report in search.stages] == pytest.approx([0.9, 0.72])
    assert "compile(mode=default)" not in outcomes(search)


CHECKPOINTING, ACCUMULATE = (LeverChoice(lever=name) for name in ("checkpointing", "accumulate"))
MIB = 2**20


class MeasuredMemory(KnownLaboratory):
    """The peak is what is left of 1 GiB by the shares in `peaks`; steps are told in seconds, too."""

    def peak_bytes(self, side):
        return int(1024 * MIB * math.prod(self.peaks.get(choice.lever, 1.0) for choice in side.configuration))

    def compare(self, best, candidate, budget_s, seed=0, **_):
        verdict = super().compare(best, candidate, budget_s, seed)
        return replace(verdict, candidate_s=self.time_of(candidate.configuration))


def slow_savers(**peaks):
    return MeasuredMemory(by_factor(checkpointing=1.3, accumulate=1.1, channels_last=0.5), peaks=peaks)


def test_what_lowers_the_peak_is_kept_until_the_goal_for_memory_is_met(tmp_path):
    laboratory = slow_savers(accumulate=0.7, checkpointing=0.5)
    search = run(laboratory, ACCUMULATE, CHECKPOINTING, tmp_path=tmp_path, memory_bytes=800 * MIB)
    assert search.best == (ACCUMULATE,)
    assert outcomes(search) == {"accumulate": "kept", "checkpointing": "slower"}
    assert "716.80 MiB" in search.outcomes[0].reason or "717 MiB" in search.outcomes[0].reason


def test_memory_is_saved_by_several_levers_and_none_is_left_out_again(tmp_path):
    laboratory = slow_savers(accumulate=0.7, checkpointing=0.5)
    search = run(laboratory, ACCUMULATE, CHECKPOINTING, tmp_path=tmp_path, memory_bytes=400 * MIB)
    assert search.best == (ACCUMULATE, CHECKPOINTING)


@pytest.mark.parametrize("goal", [{}, {"memory_bytes": 2048 * MIB}, {"memory_bytes": 1, "latency_s": 1.05}])
def test_a_slower_step_is_not_kept_without_need_or_against_the_goal_for_latency(tmp_path, goal):
    search = run(slow_savers(accumulate=0.7), ACCUMULATE, tmp_path=tmp_path, **goal)
    assert search.best == ()
    assert outcomes(search) == {"accumulate": "slower"}


def test_a_saving_within_the_noise_of_a_peak_is_none(tmp_path):
    search = run(slow_savers(accumulate=0.99), ACCUMULATE, tmp_path=tmp_path, memory_bytes=800 * MIB)
    assert search.best == ()


def test_what_is_faster_is_kept_over_the_goal_where_the_baseline_is_over_it_as_well(tmp_path):
    search = run(slow_savers(), LAYOUT, tmp_path=tmp_path, memory_bytes=800 * MIB)
    assert search.best == (LAYOUT,)


OPENVINO = LeverChoice(lever="openvino")
INT8, STATIC = (LeverChoice(lever=name) for name in ("int8_dynamic", "int8_static"))


def compiled_only(**factors):
    """Compiling brings nothing by itself; what `factors` names pays under it, and costs twice the time without."""

    def time_of(configuration):
        names = {choice.lever for choice in configuration}
        found = math.prod(factors.get(name, 1.0) for name in names)
        return found if "compile" in names else 2.0 if names & set(factors) else 1.0

    return KnownLaboratory(time_of)


@pytest.mark.parametrize("choice", [INT8, STATIC, BF16, CAST])
def test_what_pays_only_compiled_is_tried_with_the_compiler_that_was_not_kept(tmp_path, choice):
    laboratory = compiled_only(**{choice.lever: 0.5})
    search = run(laboratory, FROZEN, choice, tmp_path=tmp_path, allow_semantic=True)
    assert {kept.lever for kept in search.best} == {"compile", choice.lever}
    assert outcomes(search)["compile(mode=default, freezing=True)"] == "no gain"


def test_quantised_layers_are_never_tried_in_eager_mode(tmp_path):
    laboratory = compiled_only(int8_dynamic=0.5)
    search = run(laboratory, INT8, tmp_path=tmp_path, allow_semantic=True)
    assert laboratory.opened == [[]]
    assert "has no effect without compile" in search.outcomes[0].reason


def test_another_precision_is_not_tried_under_a_compiler_that_is_hopeless(tmp_path):
    laboratory = KnownLaboratory(by_factor(compile=3.0, autocast_bf16=1.2))
    run(laboratory, FROZEN, BF16, tmp_path=tmp_path)
    assert laboratory.opened == [[], ["compile"], ["autocast_bf16"]]


@dataclass
class Turning(KnownLaboratory):
    """Two levers that are fine while they are tried are not at the end of their stage."""

    at_the_end: object = None

    def check(self, side, **more):
        names = sorted(choice.lever for choice in side.configuration)
        if names == [DROP.lever, FOLD.lever] and len(self.opened) > 3:
            return self.at_the_end()
        return super().check(side, **more)


def killed():
    raise UserProgramError("killed for memory")


@pytest.mark.parametrize(
    ("at_the_end", "outcome", "reason"),
    [
        (lambda: Numerics(refused="as given: off"), "wrong numbers", "as given: off"),
        (killed, "failed", "killed for memory"),
    ],
    ids=["wrong", "killed"],
)
def test_what_does_not_hold_at_the_end_of_its_stage_is_taken_back(tmp_path, at_the_end, outcome, reason):
    times = by_factor(fold_batchnorm=0.9, drop_dropout=0.8, compile=0.5)
    laboratory = Turning(times, at_the_end=at_the_end)
    search = run(laboratory, FOLD, DROP, PLAIN, tmp_path=tmp_path, stages=["basic", "compile"])
    assert outcomes(search) == {FOLD.label: outcome, DROP.label: outcome, PLAIN.label: "kept"}
    assert search.outcomes[0].reason == f"at the end of the stage basic: {reason}"
    assert [report.levers for report in search.stages] == [[], ["compile"]]
    assert search.best == (PLAIN,)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("torch.export cannot take this model: a loop over data", ["onnxruntime", "openvino_bf16"]),
        ("OpenVINO cannot take this model: no such operator", ["openvino_bf16"]),
        ("OpenVINO's compiler cannot take this model: no such instruction", []),
    ],
)
def test_what_a_converter_could_not_take_is_not_given_to_it_again(tmp_path, said, left):
    names = ("openvino", "onnxruntime", "openvino_bf16")
    laboratory = KnownLaboratory(
        by_factor(onnxruntime=0.5, openvino_bf16=0.4), broken={"openvino": UserProgramError(said)}
    )
    predicted = {"openvino": Prediction(0.1, 0.2)}  # tried first
    choices = (LeverChoice(lever=name) for name in names)
    search = run(laboratory, *choices, tmp_path=tmp_path, predicted=predicted)
    refused = [each for each in search.outcomes if each.outcome == "not applicable"]
    assert sorted(each.name for each in refused) == left
    assert {each.reason for each in refused} <= {said}


def test_a_lever_that_finds_the_disk_full_is_recorded_and_the_next_one_tried(tmp_path):
    full = OSError(28, "No space left on device")
    laboratory = KnownLaboratory(by_factor(channels_last=0.8), broken={FOLD.lever: full})
    search = run(laboratory, FOLD, LAYOUT, tmp_path=tmp_path)
    assert outcomes(search) == {FOLD.label: "failed", LAYOUT.label: "kept"}
    assert "No space left" in next(each.reason for each in search.outcomes if each.name == FOLD.lever)


def test_where_the_best_so_far_has_ended_the_next_lever_is_compared_with_it_opened_again(tmp_path):
    laboratory = KnownLaboratory(by_factor(fold_batchnorm=0.9, channels_last=0.8, drop_dropout=0.9))
    compare, tried = laboratory.compare, []

    def ends_once(best, candidate, budget_s, **more):
        tried.append(candidate.configuration)
        if len(tried) == 2:
            best.worker.alive = False
            raise UserProgramError("killed for memory")
        assert best.worker.alive
        return compare(best, candidate, budget_s, **more)

    laboratory.compare = ends_once
    search = run(laboratory, FOLD, LAYOUT, DROP, tmp_path=tmp_path)
    first, second, third = search.outcomes
    assert (first.outcome, second.outcome, third.outcome) == ("kept", "untried", "kept")
    assert second.reason == "what it was compared with has ended: killed for memory"
    assert Journal(tmp_path / "journal.jsonl", "id", resume=True).recall(tried[0], tried[1]) is None


def test_in_stages_quantisation_waits_for_the_compiler_that_it_needs(tmp_path):
    laboratory = compiled_only(int8_dynamic=0.5)
    search = run(
        laboratory, FROZEN, INT8, tmp_path=tmp_path, allow_semantic=True, stages=["compute", "compile"]
    )
    assert [report.levers for report in search.stages] == [[], ["int8_dynamic", "compile"]]


def test_what_does_nothing_under_the_executor_that_was_kept_is_not_tried(tmp_path):
    laboratory = KnownLaboratory(by_factor(compile=0.5, linear_activation=0.9))
    activation = LeverChoice(lever="linear_activation")
    choices = FROZEN, PLAIN, OPENVINO, activation
    search = run(laboratory, *choices, tmp_path=tmp_path, budget_s=60.0)
    assert search.best == (FROZEN,)
    assert ["linear_activation"] not in laboratory.opened
    assert (
        "does nothing under compile"
        in {each.name: each.reason for each in search.outcomes}["linear_activation"]
    )


@pytest.mark.parametrize("budget_s", [60.0, 10_000.0])
def test_what_is_applied_in_seconds_comes_first(tmp_path, budget_s):
    laboratory = KnownLaboratory(by_factor())
    run(laboratory, DROP, LAYOUT, FROZEN, PLAIN, OPENVINO, tmp_path=tmp_path, budget_s=budget_s)
    assert laboratory.opened[1] == ["channels_last"]


def test_an_executor_competes_with_a_precision_that_it_does_not_take(tmp_path):
    def time_of(configuration):
        names = {choice.lever for choice in configuration}
        assert names != {"cast_bf16", "openvino"}
        return 0.4 if "openvino" in names else 0.8 if "cast_bf16" in names else 1.0

    predicted = {"cast_bf16": Prediction(0.5, 0.6)}
    tried = (CAST, OPENVINO, FROZEN, PLAIN, LeverChoice(lever="aot_inductor"))
    search = run(KnownLaboratory(time_of), *tried, tmp_path=tmp_path, budget_s=100.0, predicted=predicted)
    assert [outcomes(search)[name] for name in ("cast_bf16", "openvino")] == ["kept", "kept"]
    assert search.best == (OPENVINO,)


def test_what_an_executor_took_the_place_of_is_brought_back_by_one_that_runs_it(tmp_path):
    times = {
        ("cast_bf16",): 0.6,
        ("openvino",): 0.5,
        ("compile",): 0.7,
        ("cast_bf16", "compile"): 0.3,
    }

    def time_of(configuration):
        return times.get(tuple(sorted(choice.lever for choice in configuration)), 1.0)

    predicted = {"cast_bf16": Prediction(0.5, 0.6), "openvino": Prediction(0.4, 0.6)}
    search = run(KnownLaboratory(time_of), CAST, OPENVINO, FROZEN, tmp_path=tmp_path, predicted=predicted)
    assert [each.name for each in search.outcomes][:2] == ["cast_bf16", "openvino"]
    assert {choice.lever for choice in search.best} == {"cast_bf16", "compile"}


def test_what_cannot_win_any_more_is_tried_after_what_may(tmp_path):
    laboratory = KnownLaboratory(by_factor(openvino=0.3, compile=0.7, threads=0.8))
    predicted = {"openvino": Prediction(0.25, 0.4), "compile": Prediction(0.5, 0.9)}
    threads = LeverChoice(lever="threads", parameters={"num": 1})
    search = run(laboratory, FROZEN, OPENVINO, threads, tmp_path=tmp_path, predicted=predicted)
    assert laboratory.opened[1:4] == [["openvino"], ["openvino", "threads"], ["compile", "threads"]]
    assert search.best == (OPENVINO, threads)


def test_what_would_be_cut_short_leaves_its_time_to_the_confirmation(tmp_path):
    laboratory = KnownLaboratory(by_factor(channels_last=0.5, aot_inductor=0.4))
    search = run(laboratory, LAYOUT, LeverChoice(lever="aot_inductor"), tmp_path=tmp_path, budget_s=30.0)
    assert outcomes(search) == {"channels_last": "kept", "aot_inductor": "untried"}
    assert "applying it takes about 40.0 s" in search.outcomes[-1].reason


@pytest.mark.parametrize(("slower", "is_tried"), [(1.0, True), (1.2, True), (1.5, False)])
def test_other_modes_of_a_compiler_are_tried_where_its_first_one_was_not_far_behind(
    tmp_path, slower, is_tried
):
    tuned = LeverChoice(lever="compile", parameters={"mode": "max-autotune-no-cudagraphs"})
    times = {PLAIN.label: 0.4 * slower, tuned.label: 0.3, OPENVINO.label: 0.4}

    def time_of(configuration):
        return math.prod(times.get(choice.label, 1.0) for choice in configuration)

    laboratory = KnownLaboratory(time_of)
    predicted = {"openvino": Prediction(0.35, 0.45), "compile": Prediction(0.3, 0.7)}
    choices = (OPENVINO, PLAIN, FROZEN, tuned, CAST, DROP)
    search = run(laboratory, *choices, tmp_path=tmp_path, predicted=predicted)
    assert search.best == ((tuned,) if is_tried else (OPENVINO,))
    for choice in (tuned, FROZEN):
        assert (outcomes(search)[choice.label] == "not applicable") is not is_tried


@pytest.mark.parametrize("budget_s", [60.0, 10_000.0])
def test_what_promises_little_comes_last(tmp_path, budget_s):
    laboratory = KnownLaboratory(by_factor())
    run(laboratory, DROP, FROZEN, PLAIN, OPENVINO, tmp_path=tmp_path, budget_s=budget_s)
    assert laboratory.opened[-1] == ["drop_dropout"]


class FakeRay:
    """Runs a task when its result is asked for; it stands in for machines, not for what they do."""

    class RayError(Exception):
        pass

    exceptions = SimpleNamespace(RayError=RayError)

    @staticmethod
    def wait(running, timeout):
        return running[:1], running[1:]

    @staticmethod
    def get(task):
        return task()


def machine(laboratory, *, lost=""):
    """A bench as Ray hands it out; one that is lost says why."""
    weighing = Weighing(laboratory, TuneSettings(), Budget(600.0, lambda: 0.0), 0.01)

    def attempt(blank, left_s):
        def task():
            if lost:
                raise FakeRay.RayError(lost)
            return weighing.weigh(blank)

        return task

    return SimpleNamespace(attempt=SimpleNamespace(remote=attempt))


FACTORS = {"channels_last": 0.8, "fold_batchnorm": 0.9, "drop_dropout": 1.2}


def test_machines_find_what_one_would_and_try_the_rest_anew_against_what_is_kept(tmp_path):
    alone = run(KnownLaboratory(by_factor(**FACTORS)), DROP, FOLD, LAYOUT, tmp_path=tmp_path)
    here = KnownLaboratory(by_factor(**FACTORS))
    there = [KnownLaboratory(by_factor(**FACTORS)) for _ in range(2)]
    crew = Crew(FakeRay, [machine(laboratory) for laboratory in there])
    search = run(here, DROP, FOLD, LAYOUT, tmp_path=tmp_path, ahead=crew.ahead)
    assert search.best == alone.best
    assert search.outcomes == alone.outcomes
    assert all(laboratory.opened for laboratory in there)
    assert crew.note == f"{crew.num_tried} trials ran on 2 machines of the cluster"
    assert not any("drop_dropout" in names for names in here.opened)  # it was tried elsewhere alone


def test_without_one_machine_the_others_go_on_and_without_any_it_ends(tmp_path):
    why = "…\npyrometer.errors.IncomparableError: taken under different conditions (cpu.model: A and B)"
    lost = machine(KnownLaboratory(by_factor(**FACTORS)), lost=why)
    good = machine(KnownLaboratory(by_factor(**FACTORS)))
    crew = Crew(FakeRay, [lost, good])
    search = run(
        KnownLaboratory(by_factor(**FACTORS)), DROP, FOLD, LAYOUT, tmp_path=tmp_path, ahead=crew.ahead
    )
    assert {choice.lever for choice in search.best} == {"channels_last", "fold_batchnorm"}
    assert "1 machine of the cluster; a machine was left out: taken under different conditions" in crew.note
    alone = Crew(FakeRay, [machine(KnownLaboratory(by_factor(**FACTORS)), lost=why)])
    with pytest.raises(InputError, match=r"no machine can be used: taken under .*cpu.model"):
        run(KnownLaboratory(by_factor(**FACTORS)), DROP, tmp_path=tmp_path, ahead=alone.ahead)


def test_with_time_left_and_nothing_kept_what_is_undecided_is_compared_for_longer(tmp_path):
    compared = []

    class Noisy(KnownLaboratory):
        def compare(self, best, candidate, budget_s, seed=0, **_):
            compared.append(budget_s)
            verdict = super().compare(best, candidate, budget_s, seed)
            return verdict if budget_s > 10 else replace(verdict, outcome="undecided")

    laboratory = Noisy(by_factor(channels_last=0.8, drop_dropout=0.99))
    search = run(laboratory, LAYOUT, DROP, tmp_path=tmp_path)
    assert outcomes(search) == {"channels_last": "kept", "drop_dropout": "undecided"}
    assert search.best == (LAYOUT,)
    assert compared == [4.0, 4.0, 30.0]  # what promises nothing is not looked at again


def test_what_is_undecided_gets_the_time_that_is_left_beside_a_recipe(tmp_path):
    class Noisy(KnownLaboratory):
        def compare(self, best, candidate, budget_s, seed=0, **_):
            verdict = super().compare(best, candidate, budget_s, seed)
            return verdict if budget_s > 10 else replace(verdict, outcome="undecided")

    laboratory = Noisy(by_factor(channels_last=0.8, fold_batchnorm=0.9, drop_dropout=1.3))
    search = run(laboratory, LAYOUT, FOLD, DROP, tmp_path=tmp_path)
    assert search.best == (FOLD, LAYOUT)
    assert outcomes(search)["drop_dropout"] == "undecided"  # its interval leaves no gain


def test_levers_that_took_little_here_make_room_for_those_like_them(tmp_path):
    time_of = by_factor(channels_last=0.9, openvino=0.9, aot_inductor=0.8)
    aot = LeverChoice(lever="aot_inductor")
    alone = run(KnownLaboratory(time_of), LAYOUT, aot, tmp_path=tmp_path, budget_s=30.0)
    assert outcomes(alone)["aot_inductor"] == "untried"
    after = run(KnownLaboratory(time_of), LAYOUT, OPENVINO, aot, tmp_path=tmp_path / "..", budget_s=30.0)
    assert outcomes(after)["aot_inductor"] == "kept"


@pytest.mark.parametrize(
    ("mode", "outcome"), [("default", "kept"), ("max-autotune-no-cudagraphs", "untried")]
)
def test_a_mode_that_compiles_for_longer_is_not_begun_where_its_time_is_not_left(tmp_path, mode, outcome):
    compiled = LeverChoice(lever="compile", parameters={"mode": mode})
    laboratory = KnownLaboratory(by_factor(channels_last=0.9, compile=0.8))
    predicted = {"channels_last": Prediction(0.8, 0.9)}
    search = run(laboratory, LAYOUT, compiled, tmp_path=tmp_path, budget_s=30.0, predicted=predicted)
    assert outcomes(search) == {"channels_last": "kept", compiled.label: outcome}


@pytest.mark.parametrize("first", ["fold_batchnorm", "onnxruntime"])
def test_what_a_runtime_does_by_itself_is_not_tried_under_it(tmp_path, first):
    runtime = LeverChoice(lever="onnxruntime")
    laboratory = KnownLaboratory(by_factor(fold_batchnorm=0.9, onnxruntime=0.5))
    little = Prediction(0.95, 1.0)
    promised = Prediction(0.7, 0.8, ("PYR503",)) if first == "fold_batchnorm" else little
    predicted = {"fold_batchnorm": promised, "channels_last": little}
    search = run(laboratory, FOLD, runtime, LAYOUT, tmp_path=tmp_path, budget_s=10_000.0, predicted=predicted)
    assert laboratory.opened[1] == [first]
    assert search.best == (runtime,)
    assert ["fold_batchnorm", "onnxruntime"] not in laboratory.opened


@pytest.mark.parametrize("expected", [Prediction(0.5, 0.7), Prediction(1.1, 1.5)])
def test_the_first_choice_of_a_lever_comes_first_also_where_it_is_expected_to_lose(tmp_path, expected):
    laboratory = KnownLaboratory(by_factor(compile=0.9))
    search = run(laboratory, FROZEN, PLAIN, tmp_path=tmp_path, predicted={"compile": expected})
    assert [each.label for each in search.outcomes] == [FROZEN.label, PLAIN.label]
