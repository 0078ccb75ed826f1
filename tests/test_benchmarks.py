"""Scripts in `benchmarks/` are found, and fit the code that they measure."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def test_every_script_stands_in_the_list_with_its_question():
    listed = dict(
        re.findall(r"^\| \[`(\w+\.py)`\]\(\1\) \| (.+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    )
    questions = {
        script.name: " ".join(
            (ast.get_docstring(ast.parse(script.read_text())) or "").split("\n\n")[0].split()
        )
        for script in SCRIPTS
    }
    assert listed == questions


def names_of_ours(script: Path) -> Iterator[tuple[str, str]]:
    """Modules and names that a script imports from the package, also in functions and in code that it hands to others."""
    sources = [ast.parse(script.read_text())]
    for node in ast.walk(sources[0]):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "from pyrometer" in node.value:
            try:
                sources.append(ast.parse(node.value))
            except SyntaxError:  # prose, or a template
                continue
    for source in sources:
        for node in ast.walk(source):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pyrometer":
                yield from ((node.module or "", alias.name) for alias in node.names)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_what_a_script_imports_is_there(script: Path):
    for module, name in names_of_ours(script):
        if not hasattr(importlib.import_module(module), name):
            importlib.import_module(f"{module}.{name}")
