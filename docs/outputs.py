"""Rewrite what the documentation shows of the program; run by hand, on a quiet machine.

    python docs/outputs.py [PAGE ...]                  # the outputs in these pages, by default in all, and the pictures
    python docs/outputs.py --honesty honesty.json      # only the tables of benchmarks/honesty.py --out honesty.json

An output stands between `<!-- output: COMMAND -->` and `<!-- /output -->`, such a table between `<!-- honesty -->` and
`<!-- /honesty -->`. The commands of a page run one after the other in a folder that holds only a copy of the examples and the benchmarks,
and the files that the page itself shows, as blocks with a title; a page and its translation share one folder and one run.
"""  # noqa: INP001 - a script

from __future__ import annotations

import argparse
import contextlib
import getpass
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyrometer.quantity import format_seconds

ROOT = Path(__file__).resolve().parent.parent
READMES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]
PAGES = [*READMES, *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tasks").glob("*.md"))]
IMAGES = ROOT / "docs" / "images"
PICTURED = "pyrometer check examples/perception.py:workload"
TRACED = "python examples/job_traces.py ranks && pyrometer trace ranks/*.json.gz --html trace.html"
"""Makes the page of the second picture."""

COMPILED = "pyrometer compile examples/detector.py:workload --with rewrites --html compile.html --no-store"
"""Makes the page of the third."""

REMEMBERED = "pyrometer memory examples/gpt/workload.py:workload --leaks 0 --html memory.html --no-store"
"""Makes the page of the fourth."""

WIDTH, HEIGHT = 1280, 900
DRAWN_MS = 5000
"""Until then a page has decoded its data and drawn."""
BAD_INPUT = 2

BESIDE = re.compile(r"\*{20,}$|Setting OMP_NUM_THREADS|\[rank\d+\]:\[W|[\w ,.:]+: \d+%, \d+ s(?:,|$)")
"""Lines that torchrun, its ranks and progress print beside what a page is about."""

TITLED = re.compile(r'^```\w+ title="(?P<name>[^"]+)"\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"<!-- output: (?P<command>.+?) -->\n.*?<!-- /output -->", re.DOTALL)
TABLE = re.compile(r"(?P<head><!-- honesty -->\n\|[^\n]*\n\|[^\n]*\n).*?<!-- /honesty -->", re.DOTALL)
RIVALS = {
    "pyrometer": "**Pyrometer**",
    "welch p<0.05 and d>0.2": "Welch, p < 0.05 and d > 0.2",
    "mann-whitney p<0.05": "Mann–Whitney, p < 0.05",
    "torch.utils.benchmark, IQRs apart": "torch.utils.benchmark, IQRs apart",
}


def main() -> None:
    """Rewrite the pages that were named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", type=lambda name: Path(name).resolve(), metavar="PAGE")
    parser.add_argument("--honesty", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.honesty:
        rows = "\n".join(honesty_rows(json.loads(arguments.honesty.read_text())["rows"]))
        for page in PAGES:
            rewrite(page, TABLE, lambda match: f"{match['head']}{rows}\n<!-- /honesty -->")
        return
    asked = arguments.pages or PAGES
    originals = [page for page in PAGES if page not in READMES and not page.stem.endswith(".zh")]
    for group in [READMES, *([page, page.with_name(f"{page.stem}.zh.md")] for page in originals)]:
        pages = [page for page in group if page in asked and page.exists()]
        if pages:
            rewrite_outputs(pages)


def rewrite_outputs(pages: list[Path]) -> None:
    """Run the commands of some pages in one folder, each once, then put what they printed into the pages."""
    texts = [page.read_text(encoding="utf-8") for page in pages]
    commands = dict.fromkeys(command for text in texts for command in OUTPUT.findall(text))
    with workplace() as folder:
        for text in texts:
            write_files(text, folder)
        printed = {command: run(command, folder) for command in commands}
        if PICTURED in printed and pages[0] in READMES:
            run(TRACED, folder)
            take_pictures(min(folder.glob(".pyrometer/artifacts/*/report.html")), "report")
            take_pictures(folder / "trace.html", "trace", "#/timeline")
            run(COMPILED, folder)
            take_pictures(folder / "compile.html", "compile", "#/compile")
            run(REMEMBERED, folder)
            take_pictures(folder / "memory.html", "memory", "#/memory")

    def replacement(match: re.Match[str]) -> str:
        command = match["command"]
        return (
            f"<!-- output: {command} -->\n```console\n$ {command}\n{printed[command]}\n```\n<!-- /output -->"
        )

    for page in pages:
        rewrite(page, OUTPUT, replacement)


def rewrite(page: Path, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> None:
    """Replace every match in a page."""
    page.write_text(pattern.sub(replacement, page.read_text(encoding="utf-8")), encoding="utf-8")


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder with nothing but a copy of the examples and the benchmarks."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("examples", "benchmarks"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        yield folder


def write_files(text: str, folder: Path) -> None:
    """Write the files that a page shows, where its commands run."""
    for match in TITLED.finditer(text):
        (folder / match["name"]).write_text(match["text"], encoding="utf-8")


def run(command: str, folder: Path) -> str:
    """What a command prints on both streams, in 100 columns without colour.

    Raises:
        SystemExit: it was used wrongly, failed, or printed something about this machine that is nobody's business.
    """
    sys.stderr.write(f"$ {command}\n")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYROMETER_", "TORCH"))
    }
    environment |= {"COLUMNS": "100", "NO_COLOR": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603 - the commands of our own pages
        ["bash", "-o", "pipefail", "-c", command],  # noqa: S607 - whichever bash there is
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    lines = (line.rstrip() for line in done.stdout.splitlines() if not BESIDE.match(line))
    text = "\n".join(lines).strip("\n")
    if done.returncode == BAD_INPUT or done.returncode > 3:
        raise SystemExit(f"{command}: exit code {done.returncode}\n{text}")
    for private in (str(folder), str(ROOT), str(Path.home()), platform.node(), getpass.getuser()):
        if re.search(rf"(?<!\w){re.escape(private)}(?!\w)", text):
            raise SystemExit(f"{command}: prints {private!r}, which does not belong into the documentation")
    return text


def take_pictures(report: Path, stem: str, fragment: str = "") -> None:
    """What is first seen of a page of a report, in its light and its dark colours; made smaller where pngquant is installed."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.stderr.write("no chromium: the pictures stay as they are\n")
        return
    IMAGES.mkdir(exist_ok=True)
    for name, colours in {f"{stem}.png": [], f"{stem}-dark.png": ["--force-dark-mode"]}.items():
        picture = IMAGES / name
        size = [f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}"]
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *colours, *size]
        flags.append(f"--virtual-time-budget={DRAWN_MS}")
        subprocess.run([browser, *flags, report.as_uri() + fragment], check=True, capture_output=True)  # noqa: S603
        if shutil.which("pngquant"):
            shrink = ["pngquant", "--force", "--strip", "--output", str(picture), "64", str(picture)]
            subprocess.run(shrink, check=True)  # noqa: S603


def honesty_rows(rows: list[dict[str, Any]]) -> Iterator[str]:
    """One line per size and method, for the sizes whose trials are complete."""
    for size in dict.fromkeys(row["size"] for row in rows):
        by_effect = {row["effect_percent"]: row for row in rows if row["size"] == size}
        if len(by_effect) < 4:
            continue
        label = format_seconds(by_effect[0]["step_s"])
        for method, rival in RIVALS.items():
            trials = {effect: row[method] for effect, row in by_effect.items()}
            slower = [trial for effect, some in trials.items() if effect for trial in some]
            every = [*trials[0], *slower]
            cells = [
                share(trials[0], {"faster", "slower"}),
                *(share(trials[effect], {"slower"}) for effect in (2, 5, 10)),
                share(slower, {"faster", "same"}),
                share(every, {"undecided"}) if method == "pyrometer" else "–",
                format_seconds(statistics.median(trial["s"] for trial in every)),
            ]
            yield f"| {label} | {rival} | {' | '.join(cells)} |"


def share(trials: list[dict[str, Any]], outcomes: set[str]) -> str:
    """How many trials came out so."""
    return f"{sum(trial['outcome'] in outcomes for trial in trials)} of {len(trials)}"


if __name__ == "__main__":
    main()
