"""Settings come from the project, and what is given in code wins; what cannot be is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrometer.errors import InputError
from pyrometer.monitor.settings import MonitorSettings, load_monitor_settings
from pyrometer.settings import load_settings


def project(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(f"[tool.pyrometer.monitor]\n{text}\n")
    return tmp_path


def test_the_project_says_and_code_wins(tmp_path):
    folder = project(
        tmp_path, 'model = "a"\nversion = "1"\nlimit = "50ms"\nsample-every = 8\nfolder = "lines"'
    )
    found = load_monitor_settings(folder, model="b", version=None)
    assert (found.model, found.version, found.limit_s, found.sample_every) == ("b", "1", 0.05, 8)
    assert found.folder == str(tmp_path / "lines")
    assert load_settings({"PYROMETER_DISABLE": "1"}, folder).store


def test_without_a_project_there_are_defaults(tmp_path):
    assert load_monitor_settings(tmp_path) == MonitorSettings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('modell = "a"', "did you mean model"),
        ("port = 70000", "0 to 65535"),
        ('port = "many"', "port"),
        ("sample-every = 3", "power of two"),
        ('limit = "soon"', "duration"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        load_monitor_settings(project(tmp_path, text))


@pytest.mark.parametrize("given", [{"modell": "a"}, {"tick_s": 0}, {"capacity": -1}, {"port": "x"}])
def test_what_is_given_in_code_is_checked_too(tmp_path, given):
    with pytest.raises(InputError):
        load_monitor_settings(tmp_path, **given)


def test_the_page_of_settings_names_every_key():
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    table = page.partition("## The monitor")[2].partition("\n## ")[0]
    assert [key for key in MonitorSettings.__struct_fields__ if f"`{key}`" not in table] == []
