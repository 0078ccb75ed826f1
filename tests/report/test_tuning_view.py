"""The page of a search: the ladder, the course of the trials, the lines to paste, and two recipes beside each other."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from pyrometer.record import to_dict
from pyrometer.report import html
from pyrometer.report.answer.lines import screen
from pyrometer.report.answer.tuned import of_document
from pyrometer.report.chapters.documents import tell
from pyrometer.report.charts.intervals import intervals
from pyrometer.report.charts.trials import trial_strip
from pyrometer.report.chinese import chinese
from pyrometer.report.facts import recipes as of_recipes
from pyrometer.report.facts import tuning as facts
from pyrometer.report.facts import tuning_course as course
from pyrometer.report.tuned_predictions import lines
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.outcome import LeverOutcome, StageReport, Tuning
from pyrometer.tuning.predictions import PredictedLever, judge_predictions
from pyrometer.tuning.recipe.comparing import compare_tunings


@pytest.fixture(scope="module")
def search(documents):
    return documents["convolutions"]


def outcome(name, ratio, against=(), replaces=False, result="kept", **fields):
    before = [LeverChoice(lever=each) for each in against]
    after = [] if replaces else before
    return LeverOutcome(
        name=name,
        outcome=result,
        ratio=ratio,
        ci_low=ratio and ratio * 0.9,
        ci_high=ratio and ratio * 1.1,
        against=before,
        configuration=[*after, LeverChoice(lever=name)],
        **fields,
    )


def with_levers(search: Tuning, outcomes, recipe) -> Tuning:
    kept = replace(search.recipe, levers=[LeverChoice(lever=name) for name in recipe])
    return replace(search, levers=outcomes, recipe=kept)


def test_rungs_multiply_the_ratios_and_end_with_what_was_confirmed(search):
    first, *middle, last = course.ladder(search)
    product = math.prod(each.ratio for each in course.steps_up(search))
    assert [rung.name for rung in middle] == [f"+ {each.label}" for each in course.steps_up(search)]
    assert middle[-1].step_s == pytest.approx(first.step_s * product)
    assert last.step_s == pytest.approx(search.final.baseline_s * search.final.ratio)
    assert all(rung.low_s <= rung.step_s <= rung.high_s for rung in [*middle, last])


def test_intervals_of_rungs_widen(search):
    tuned = with_levers(search, [outcome("a", 0.5), outcome("b", 0.8, ["a"])], ["a", "b"])
    _, one, two, _ = course.ladder(tuned)
    assert two.high_s / two.low_s > one.high_s / one.low_s


def test_an_executor_that_another_replaced_is_a_rung_and_a_dropped_lever_is_none(search):
    trials = [
        outcome("slow_one", 1.3, result="slower"),
        outcome("compile", 0.8),
        outcome("onnx", 0.7, ["compile"], replaces=True),
    ]
    tuned = with_levers(search, trials, ["onnx"])
    assert [rung.name for rung in course.ladder(tuned)[1:-1]] == ["+ compile", "+ onnx"]


def test_without_a_kept_lever_there_is_no_ladder_and_nothing_to_paste(search):
    nothing = with_levers(search, [outcome("a", 1.2, result="slower")], [])
    assert course.ladder(nothing) == []
    assert course.pasted(nothing) == ""
    slugs = [chapter.slug for chapter in tell(nothing).chapters]
    assert "ladder" not in slugs
    assert "recipe" not in slugs
    assert facts.headline(nothing).startswith("nothing to change")


def test_a_budget_that_was_over_before_the_first_lever_asks_for_more(search):
    left = with_levers(
        search, [outcome("a", None, result="untried"), outcome("b", None, result="not applicable")], []
    )
    spent = replace(
        left, elapsed_s=48.0, command=["pyrometer", "tune", "a.py:w", "--budget", "90s", "--resume"]
    )
    assert facts.headline(spent).startswith("nothing could be tried: the budget was over")
    assert of_document(spent).improve == "pyrometer tune a.py:w --budget 4m"
    some = replace(spent, levers=[*spent.levers, outcome("c", 1.2, result="slower")])
    assert facts.headline(some).startswith("nothing to change")
    assert of_document(some).improve == "pyrometer tune a.py:w --budget 90s --resume"


def test_a_search_that_was_resumed_is_gone_on_with_by_the_same_command(search):
    command = ["pyrometer", "tune", "--resume", "a.py:w"]
    assert (
        of_document(replace(search, interrupted=True, command=command)).improve
        == "pyrometer tune a.py:w --resume"
    )


def test_a_search_that_was_interrupted_says_so_first(search):
    tried = [outcome("a", 1.2, result="slower")]
    ended = replace(with_levers(search, tried, []), interrupted=True, final=None)
    assert facts.headline(ended) == "interrupted before anything was proved"
    kept = replace(with_levers(search, [outcome("b", 0.8)], ["b"]), interrupted=True, final=None)
    assert facts.headline(kept) == "interrupted before anything was proved; kept until then: b"
    assert chinese(facts.headline(kept)) == "在证明任何结果之前被中断\uff1b至此保留：b"  # noqa: RUF001


def test_the_command_to_go_on_with_is_whole(search):
    wanted = [f"--only=lever_number_{number}" for number in range(9)]
    command = ["pyrometer", "tune", "forecaster.py:workload", *wanted, "-o", "page.html"]
    answer = of_document(replace(search, interrupted=True, command=command))
    said = " ".join(line.plain.strip() for line in screen(answer, 80))
    assert "-o page.html --resume" in said


def test_a_range_of_other_models_names_no_finding():
    figures = {
        "predicted_low": 0.5,
        "predicted_high": 0.8,
        "measured": 0.6,
        "measured_low": 0.5,
        "measured_high": 0.7,
    }
    levers = [
        PredictedLever(run_id="1", target="a", lever="x", rules=rules, **figures) for rules in ([], ["PYR1"])
    ]
    prior, found = list(lines(judge_predictions(levers)))[1:]
    assert "predicted 1.25–2.00×, measured" in prior
    assert "predicted 1.25–2.00× by PYR1, measured" in found


def test_the_page_draws_without_script(search):
    page = html.page(search).partition("<main")[2].partition("</main>")[0]
    assert page.count('class="plot"') >= 3  # the ladder, the levers, the course
    assert "the recipe, confirmed" in page
    for line in course.pasted(search).splitlines():
        assert line.strip()[:20] in page
    assert facts.apply_command(search.recipe, search.target).partition("(")[0] in page


def test_the_course_is_as_long_as_the_trials(search):
    trials = course.trials(search)
    assert trials
    assert sum(share.share for share in course.time_by_outcome(search)) == pytest.approx(1)
    assert trial_strip(trials).count("<rect") == len(trials)
    assert trial_strip([]) is None


def test_an_error_stands_beside_each_speed(search):
    drawing = course.lever_drawing(search)
    assert len(drawing.rows) == sum(each.ratio is not None for each in search.levers)
    assert all(row.more.startswith(("error", "same")) for row in drawing.rows)
    assert intervals(drawing._replace(rows=[])) is None


def test_predictions_stand_beside_what_was_measured(search):
    told = outcome("a", 0.8, predicted_low=0.7, predicted_high=0.9, rules=["PYR509"])
    missed = outcome("b", 0.8, ["a"], predicted_low=0.2, predicted_high=0.3, rules=["PYR501"])
    levers = course.predicted(with_levers(search, [told, missed], ["a", "b"]))
    rows = course.prediction_table(levers).rows
    assert [row[3] for row in rows] == ["held", "missed"]
    assert course.prediction_line(levers).startswith("1 of 2 predictions held")


def test_a_lever_of_a_missing_plug_in_is_named_among_the_lines(search):
    pasted = course.pasted(with_levers(search, [outcome("of_a_plug_in", 0.5)], ["of_a_plug_in"]))
    assert "# of_a_plug_in: a lever of a package that is not installed here" in pasted.splitlines()


def test_stages_say_what_they_kept(search):
    staged = replace(
        search, stages=[StageReport(stage="basic", levers=["a"]), StageReport(stage="memory", levers=[])]
    )
    assert [row[:2] for row in course.stage_table(staged).rows] == [
        ("basic", "a"),
        ("memory", "nothing kept"),
    ]
    assert "Stages" in html.page(staged)


def test_two_recipes_stand_beside_each_other(search):
    other = with_levers(search, [outcome("threads", 0.9)], [])
    recipes = compare_tunings(to_dict(search), to_dict(other))
    rows = {row[0]: row[1:] for row in of_recipes.side_table(recipes).rows}
    assert rows["recipe"] == (facts.recipe_line(search), "the program as it is")
    assert rows["ratio, confirmed"][1] == "nothing to change"
    assert rows["goal: latency"][0].startswith("✗")
    became = {row[0]: row[1:] for row in of_recipes.lever_table(recipes).rows}
    assert became["threads"][0] == "–"
    assert became["threads"][1].startswith("kept")


@pytest.mark.parametrize(
    ("refused", "said"),
    [(None, "applied, with the same results"), ("zeros: off", "applied, but it computes other numbers")],
)
def test_what_was_applied_is_told_with_both_steps_and_how_to_prove_it(search, refused, said):
    applied = replace(
        search,
        final=None,
        levers=[],
        applied=replace(search.baseline, median_s=search.baseline.median_s / 2),
        numerics=replace(search.numerics, refused=refused),
        recipe=replace(search.recipe, path="net.recipe.toml"),
    )
    told = " ".join(line.plain.strip() for line in screen(of_document(applied), 80))
    assert said in told
    assert "Applied in" in told
    assert "--verify" in told
    assert "proved" not in told
    assert "→" not in told, "steps that were not run in turns are no comparison"
    assert "times are not compared" in told
    assert chinese(said) not in {None, said}
    assert "Recipe" in {fact.label for fact in facts.top_figures(applied)}
