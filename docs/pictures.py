"""Take the pictures of the dashboard: fill a store with runs of two commits, serve it, and look at it in Chromium.

python docs/pictures.py
"""  # noqa: INP001 - a script

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from outputs import IMAGES, run, workplace
from playwright.sync_api import sync_playwright

from pyrometer.dashboard.server import Dashboard

TARGET = "examples/control_loop.py:workload"
COMMIT = "git -c user.name=You -c user.email=you@localhost commit --quiet --all --message"
SETUP = "git init --quiet && echo .pyrometer > .gitignore && git add ."
BEFORE, AFTER = "range(self.horizon)", "range(4 * self.horizon)"
"""The second commit looks four times as far ahead, which takes longer."""

BENCH = f"bench {TARGET} --budget 2s"
OTHERS = (
    "memory examples/bottlenecks/memory_churn.py:workload --leaks 0",
    "check examples/bottlenecks/item_each_step.py:workload --budget 3s",
    f"bench before/control_loop.py:workload --vs {TARGET} --budget 6s",
)
MANY = "import sys; from pyrometer.cli.main import main; [main(verb.split()) for verb in sys.argv[1:]]"
FOLDER = "/home/you/robot/.pyrometer"
"""Shown in the place of a temporary one."""

WIDTH, HEIGHT = 1280, 700
COLOURS = 64


def main() -> None:
    """Make the runs, then the pictures, in light and in dark colours."""
    with workplace() as folder:
        _fill(folder)
        dashboard = Dashboard(folder / ".pyrometer")
        server = threading.Thread(target=dashboard.serve)
        server.start()
        try:
            _photograph(dashboard.url, folder)
        finally:
            dashboard.stop()
            server.join()


def _fill(folder: Path) -> None:
    (folder / "before").mkdir()
    shutil.copy(folder / "examples" / "control_loop.py", folder / "before")
    run(f"{SETUP} && {COMMIT} 'As it was'", folder)
    run(_together([BENCH] * 4), folder)
    example = folder / "examples" / "control_loop.py"
    text = example.read_text(encoding="utf-8")
    if BEFORE not in text:
        raise SystemExit(f"{example.name}: there is no {BEFORE!r} to change")
    example.write_text(text.replace(BEFORE, AFTER), encoding="utf-8")
    run(f"{COMMIT} 'Look further ahead'", folder)
    run(_together([*OTHERS, *[BENCH] * 3]), folder)


def _together(verbs: list[str]) -> str:
    """One command for several verbs: torch is imported once."""
    given = " ".join(map(shlex.quote, verbs))
    return f"python -c {shlex.quote(MANY)} {given}"


def _photograph(url: str, folder: Path) -> None:
    origin = url.partition("/?")[0]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for suffix in ("", "-dark"):
            page = browser.new_context(
                viewport={"width": WIDTH, "height": HEIGHT},
                color_scheme="dark" if suffix else "light",
                locale="en-GB",
            ).new_page()
            page.goto(url)
            with _going(folder):
                page.locator(".running progress[value]").wait_for(timeout=300_000)
                page.locator(".subtitle code").evaluate("(node, text) => node.textContent = text", FOLDER)
                _take(page, f"dashboard{suffix}")
            page.goto(f"{origin}/targets?target={TARGET}")
            page.locator("figure svg .series").first.wait_for()
            _take(page, f"dashboard-target{suffix}")
        browser.close()


class _going:  # noqa: N801 - reads as a phrase
    """A run that goes on as long as the block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._process = subprocess.Popen(  # noqa: S603 - ours
            ["pyrometer", "bench", TARGET, "--budget", "60s"],  # noqa: S607 - of this environment
            cwd=self._folder,
            env={**os.environ, "PATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()
        time.sleep(1)  # until the pages know


def _take(page: Any, name: str) -> None:
    picture = IMAGES / f"{name}.png"
    page.wait_for_timeout(500)
    page.screenshot(path=str(picture))
    if shutil.which("pngquant"):
        shrink = ["pngquant", "--force", "--strip", "--output", str(picture), str(COLOURS), str(picture)]
        subprocess.run(shrink, check=True)  # noqa: S603


if __name__ == "__main__":
    main()
