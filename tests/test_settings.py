from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.cli.parameters import BYTES, DURATION, SHARE
from pyrometer.errors import InputError
from pyrometer.quantity import format_bytes, format_percent, format_seconds
from pyrometer.settings import (
    Settings,
    find_project,
    load_settings,
    parse_bytes,
    parse_duration,
    parse_share,
    read_table,
    with_flags,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20s", 20),
        ("1m30s", 90),
        ("500ms", 0.5),
        ("250 us", 250e-6),
        ("250µs", 250e-6),  # micro sign
        ("250μs", 250e-6),  # Greek letter mu
        ("3ns", 3e-9),
        ("2 h 5 min", 7500),
        ("30d", 30 * 86400),
        ("1.5h", 5400),
        (" 0s ", 0),
    ],
)
def test_durations(text: str, seconds: float):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "20", "-5s", "s", "30s1m", "1s1s", "1e3s", "nan", "infs", "1,5s", "20 sec", "1.s", "٣s"]
)
def test_what_is_no_duration_is_refused_with_an_example(text: str):
    with pytest.raises(InputError) as caught:
        parse_duration(text)
    assert (
        str(caught.value)
        == f"{text!r} is not a duration; write a number and d, h, m, s, ms, us or ns, such as 20s or 1m30s"
    )


@given(st.floats(min_value=1e-9, max_value=1e6))
def test_a_formatted_duration_reads_back(seconds: float):
    # Three digits below a minute, whole seconds below an hour, whole minutes above.
    tolerance = 0.006 * seconds if seconds < 59 else 1 if seconds < 3500 else 60
    assert parse_duration(format_seconds(seconds)) == pytest.approx(seconds, abs=tolerance)


@pytest.mark.parametrize("parse", [parse_duration, parse_share, parse_bytes])
@given(text=st.text(max_size=12) | st.from_regex(r"[0-9. ]{1,6}[smhd%kGiB ]{0,4}", fullmatch=True))
def test_any_text_is_a_figure_or_an_input_error(parse: Callable[[str], float], text: str):
    with suppress(InputError):
        assert parse(text) >= 0


@pytest.mark.parametrize("unit", ["s", "B", "PiB"])
def test_numbers_beyond_all_machines_are_refused(unit: str):
    parse = parse_duration if unit == "s" else parse_bytes
    with pytest.raises(InputError, match="too large a number"):
        parse("9" * 400 + unit)


@pytest.mark.parametrize(
    ("text", "share"), [("1%", 0.01), ("5 %", 0.05), ("0.05", 0.05), ("100%", 1), ("0", 0), ("1e-3", 0.001)]
)
def test_shares(text: str, share: float):
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("five", "'five' is not a share; write a percentage such as 5% or a fraction such as 0.05"),
        ("-1%", "'-1%' is not a share; write a percentage such as 5% or a fraction such as 0.05"),
        ("5", "'5' is more than 100%; legal is 0% to 100%; did you mean 5%?"),
        ("150%", "'150%' is more than 100%; legal is 0% to 100%"),
        ("150", "'150' is more than 100%; legal is 0% to 100%"),
    ],
)
def test_bad_shares(text: str, message: str):
    with pytest.raises(InputError) as caught:
        parse_share(text)
    assert str(caught.value) == message


@given(st.floats(min_value=0, max_value=1))
def test_a_formatted_share_reads_back(share: float):
    shown = format_percent(share)
    assert parse_share(shown) == pytest.approx(share, rel=0.006, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2**31),
        ("512 MiB", 2**29),
        ("1.5MB", 1_500_000),
        ("1kB", 1000),
        ("100B", 100),
        ("3 tib", 3 * 2**40),
        ("0B", 0),
    ],
)
def test_sizes(text: str, size: int):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "2", "2G", "-1B", "GiB", "1 XB", "1e3B"])
def test_bad_sizes(text: str):
    with pytest.raises(InputError) as caught:
        parse_bytes(text)
    assert (
        str(caught.value)
        == f"{text!r} is not a size; write a number and B, KiB, MiB, GiB, kB, MB or GB, such as 2GiB"
    )


@given(st.integers(min_value=0, max_value=2**55))
def test_a_formatted_size_reads_back(size: int):
    assert parse_bytes(format_bytes(size)) == pytest.approx(size, rel=0.006)


def test_without_anything_the_defaults_hold(tmp_path: Path):
    assert load_settings({}, tmp_path) == Settings()


def test_flags_win_over_variables_and_variables_over_the_file(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pyrometer]\nmargin = "2%"\nseed = 5\nconfidence = 0.95\nbudget = "1m"\n'
    )
    settings = load_settings({"PYROMETER_MARGIN": "3%", "PYROMETER_SEED": "6"}, tmp_path)
    settings = with_flags(settings, seed=7, margin=None)
    assert settings == Settings(margin=0.03, seed=7, confidence=0.95, budget_s=60.0)


def test_the_nearest_file_upward_is_read_and_no_other(tmp_path: Path):
    inner = tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.pyrometer]\nseed = 1\n")
    assert load_settings({}, inner).seed == 1
    (tmp_path / "project" / "pyproject.toml").write_text("[project]\n")
    assert load_settings({}, inner).seed == 0


def test_a_relative_store_in_the_file_counts_from_the_file(tmp_path: Path):
    inner = tmp_path / "src"
    inner.mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.pyrometer]\nstore = "results"\n')
    assert load_settings({}, inner).store == str(tmp_path / "results")
    assert load_settings({"PYROMETER_STORE": "elsewhere"}, inner).store == "elsewhere"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("margn = 0.1", "[tool.pyrometer] margn: no such setting; did you mean margin?"),
        (
            "zzz = 1",
            "[tool.pyrometer] zzz: no such setting; legal are store, margin, confidence, budget, seed, capture, strict, progress, rules, guard, monitor, serve, tune",
        ),
        ("[tool.pyrometer.ruls]", "[tool.pyrometer] ruls: no such setting; did you mean rules?"),
        (
            "margin = 5",
            "[tool.pyrometer] margin: '5' is more than 100%; legal is 0% to 100%; did you mean 5%?",
        ),
        ("margin = 0", "[tool.pyrometer] margin: got 0.0; legal is above 0% and below 100%, such as 2%"),
        ("margin = true", "[tool.pyrometer] margin: got True; legal is a string or a number"),
        ("margin = [1]", "[tool.pyrometer] margin: got [1]; legal is a string or a number"),
        (
            "confidence = 0.3",
            "[tool.pyrometer] confidence: got 0.3; legal is 50% or more and below 100%, such as 99%",
        ),
        (
            "budget = 20",
            "[tool.pyrometer] budget: '20' is not a duration; write a number and d, h, m, s, ms, us or ns, such as 20s or 1m30s",
        ),
        ("seed = -1", "[tool.pyrometer] seed: got -1; legal is 0 or a positive whole number"),
        ("seed = 1.5", "[tool.pyrometer] seed: '1.5' is not a whole number; write one such as 0"),
        ('store = ""', "[tool.pyrometer] store: got ''; legal is the name of a folder, such as .pyrometer"),
    ],
)
def test_a_bad_value_in_the_file_names_the_file(tmp_path: Path, content: str, message: str):
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool.pyrometer]\n{content}\n")
    with pytest.raises(InputError) as caught:
        load_settings({}, tmp_path)
    assert str(caught.value) == f"{file}: {message}"


@pytest.mark.parametrize("content", [b"[tool", b"\xff\xfe", b"x = 1\nx = 2"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes):
    (tmp_path / "pyproject.toml").write_bytes(content)
    with pytest.raises(
        InputError, match=r"pyproject.toml: cannot be read as TOML: .*; correct it or move it away"
    ):
        load_settings({}, tmp_path)


def test_a_table_that_is_none_is_refused(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("[tool]\npyrometer = 3\n")
    with pytest.raises(InputError, match=r"tool.pyrometer: got 3; legal is a table, \[tool.pyrometer\]"):
        load_settings({}, tmp_path)


def test_a_table_of_another_room_is_left_to_it(tmp_path: Path):
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.pyrometer]\nseed = 3\n[tool.pyrometer.rules]\nselect = ["PYR1"]\n')
    assert load_settings({}, tmp_path).seed == 3
    assert read_table(file, "rules") == {"select": ["PYR1"]}
    assert find_project(tmp_path) == file


@pytest.mark.parametrize(
    "written", ["[tool.pyrometer.rule]", "[tool.pyrometer.Rules]", "[tool.pyrometer]\nmargn = 1"]
)
def test_who_reads_a_table_is_told_of_a_misspelled_name_beside_it(tmp_path: Path, written: str):
    file = tmp_path / "pyproject.toml"
    file.write_text(f"{written}\n")
    with pytest.raises(
        InputError, match=r"\[tool.pyrometer\] (rule|Rules|margn): no such setting; did you mean"
    ):
        read_table(file, "rules")


def test_a_table_of_another_room_must_be_a_table(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("[tool.pyrometer]\nrules = 3\n")
    with pytest.raises(
        InputError, match=r"tool.pyrometer.rules: got 3; legal is a table, \[tool.pyrometer.rules\]"
    ):
        load_settings({}, tmp_path)


@pytest.mark.parametrize("content", ["", "[project]\n", "[tool]\n", "[tool.pyrometer]\n"])
def test_a_table_that_is_not_there_is_empty(tmp_path: Path, content: str):
    file = tmp_path / "pyproject.toml"
    file.write_text(content)
    assert read_table(file) == {}
    assert read_table(file, "rules") == {}


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "PYROMETER_MARGIN",
            "x",
            "PYROMETER_MARGIN: 'x' is not a share; write a percentage such as 5% or a fraction such as 0.05",
        ),
        ("PYROMETER_SEED", "-2", "PYROMETER_SEED: got -2; legal is 0 or a positive whole number"),
        ("PYROMETER_STORE", "", "PYROMETER_STORE: got ''; legal is the name of a folder, such as .pyrometer"),
        ("PYROMETER_MARGN", "1%", "PYROMETER_MARGN: no such setting; did you mean PYROMETER_MARGIN?"),
    ],
)
def test_a_bad_variable_is_named(tmp_path: Path, variable: str, value: str, message: str):
    with pytest.raises(InputError) as caught:
        load_settings({variable: value}, tmp_path)
    assert str(caught.value) == message


def test_variables_of_others_are_left_alone(tmp_path: Path):
    assert load_settings({"PYROMETER_WORKER": "1", "HOME": "x"}, tmp_path) == Settings()


def test_a_bad_flag_is_refused():
    with pytest.raises(InputError, match=r"margin: got 1.5; legal is"):
        with_flags(Settings(), margin=1.5)


@click.command()
@click.option("--budget", type=DURATION)
@click.option("--margin", type=SHARE)
@click.option("--memory", type=BYTES)
def _verb(budget: float, margin: float, memory: int):
    click.echo(f"{budget} {margin} {memory}")


def test_flags_are_read_like_settings():
    result = CliRunner().invoke(_verb, ["--budget", "1m30s", "--margin", "1%", "--memory", "2GiB"])
    assert result.output == f"90.0 0.01 {2**31}\n"


def test_a_bad_flag_is_one_usage_error():
    result = CliRunner().invoke(_verb, ["--budget", "soon"])
    assert result.exit_code == 2
    assert "Invalid value for '--budget': 'soon' is not a duration; write" in result.output


@pytest.mark.parametrize(("text", "on"), [("1", True), ("true", True), ("off", False), ("No", False)])
def test_damaged_traces_can_be_refused_by_variable(tmp_path, text, on):
    assert load_settings({"PYROMETER_STRICT": text}, tmp_path).strict is on


def test_damaged_traces_can_be_refused_by_file(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.pyrometer]\nstrict = true\n")
    assert load_settings({}, tmp_path).strict
    with pytest.raises(InputError, match="PYROMETER_STRICT: got 'maybe'; legal are true and false"):
        load_settings({"PYROMETER_STRICT": "maybe"}, tmp_path)
