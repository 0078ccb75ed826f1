"""What every test must leave as it found it, and a browser for those that open pages."""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

# The same few examples everywhere, without limits of time, so that what passes on one machine passes on another;
# `make test-exhaustive` looks for new ones, and says how to repeat what it finds.
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "repeatable", derandomize=True, max_examples=6, deadline=None, suppress_health_check=CHECKS
)
settings.register_profile(
    "exhaustive", max_examples=500, deadline=None, suppress_health_check=CHECKS, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

gc.disable()  # what is collected stays: to look for garbage among it takes a tenth of the time

pytest_plugins = ["calling", "cpu_seconds", "few_files", "file_scheduling", "postgres_server", "pytester"]


def pytest_configure() -> None:
    """Nobody looks: widths follow no terminal, whatever a worker was started with, and no verb says how far it is.

    A job in the background ignores Ctrl-C, as would every program that a test starts in order to interrupt it.

    Whether the compiler builds what this processor understands is believed: to try it takes each new compile cache a quarter of
    a minute of processor time, and a kernel half a second.
    """
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
    os.environ.pop("COLUMNS", None)
    os.environ["PYROMETER_PROGRESS"] = "0"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    gc.enable()


def pytest_sessionfinish() -> None:
    """What the session leaves ends with its process: pytest and Python would walk through it again and again."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What hypothesis searches through is marked, so that many examples can be asked for."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("searching")


def pytest_runtest_setup() -> None:
    """Torch draws the same numbers in a test whatever ran before; the other generators are seeded by pytest-randomly.

    `torch.manual_seed` would keep what it has to do, and its stack, for each device that is not there, again with each test.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(0)


def process_state() -> dict[str, Any]:
    """Everything global that a careless library would change; torch only once something has imported it."""
    # The compiler imports setuptools, which adds its own folder to sys.path for good.
    path = [entry for entry in sys.path if not entry.endswith("setuptools/_vendor")]
    state: dict[str, Any] = {"cwd": Path.cwd(), "sys.path": path, "sys.argv": list(sys.argv)}
    if "torch" in sys.modules:
        state |= torch_state()
    return state


def torch_state() -> dict[str, Any]:
    import torch
    from torch.nn.modules import module
    from torch.optim import optimizer
    from torch.utils.data import DataLoader

    return {
        "threads": torch.get_num_threads(),
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "matmul precision": torch.get_float32_matmul_precision(),
        "cudnn": (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
        "compiled functions run": stance_of_dynamo(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "global hooks": {
            name: dict(value) for name, value in vars(module).items() if is_hook_table(name, value)
        },
        "optimizer hooks": {
            name: dict(value) for name, value in vars(optimizer).items() if is_hook_table(name, value)
        },
        "patched": (torch.nn.Module.__call__, torch.Tensor.backward, torch.compile, DataLoader.__iter__),
        "instrumented": (torch.nn.Module.__call__.__code__, torch.compile.__code__),
    }


def stance_of_dynamo() -> str | None:
    """How compiled functions run; torch tells it nowhere else."""
    module = sys.modules.get("torch._dynamo.eval_frame")
    return None if module is None or module._stance.stance == "default" else str(module._stance.stance)


def is_hook_table(name: str, value: Any) -> bool:
    return name.startswith("_global_") and isinstance(value, dict)


@pytest.fixture(autouse=True)
def unchanged_process() -> Iterator[None]:
    before = process_state()
    yield
    after = process_state()
    assert {name: after[name] for name in before} == before


@pytest.fixture(scope="session", autouse=True)
def frozen_count() -> Iterator[None]:
    """How many objects are frozen is counted when that may have changed: Python walks through all of them each time."""
    freeze, unfreeze, count = gc.freeze, gc.unfreeze, functools.cache(gc.get_freeze_count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: (count.cache_clear(), freeze())[1])
        patch.setattr(gc, "unfreeze", lambda: (count.cache_clear(), unfreeze())[1])
        patch.setattr(gc, "get_freeze_count", count)
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_collections(frozen_count: None) -> Iterator[None]:
    """What earlier files have left is out of the garbage collector's sight: collecting takes a twentieth of the time."""
    gc.freeze()
    yield
    gc.unfreeze()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE_MS = 30_000
"""A page that does what it should takes a fraction of a second; machines that run tests are busy."""
SETTLED = """async () => {
  const turn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const reads = () => [...document.querySelectorAll("[aria-busy=true]")].some((part) => part.checkVisibility());
  do for (let i = 0; i < 3; i++) await turn();
  while (reads());
}"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for the tests of a file: while it runs, Playwright holds an event loop that others would trip over."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    sync.expect.set_options(timeout=PATIENCE_MS)
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens empty pages, whose options go to the browser context; PYROMETER_SLOW_BROWSER=6 slows their script sixfold."""
    contexts = []

    def opened(**options: Any) -> Any:
        usual = {"viewport": {"width": 1280, "height": 800}, "locale": "en-GB", "reduced_motion": "reduce"}
        contexts.append(chromium.new_context(**usual | options))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE_MS)
        if slowed := os.environ.get("PYROMETER_SLOW_BROWSER"):
            session = contexts[-1].new_cdp_session(page)
            session.send("Emulation.setCPUThrottlingRate", {"rate": float(slowed)})
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def settled() -> Callable[[Any], Any]:
    """Returns a page once it has read its data, drawn, and listens to what it drew."""

    def wait(page: Any) -> Any:
        page.evaluate(SETTLED)
        return page

    return wait


@pytest.fixture(scope="session")
def measured() -> ModuleType:
    """Makes runs as a measurement leaves them: `store/measured.py`."""
    path = Path(__file__).parent / "store" / "measured.py"
    spec = importlib.util.spec_from_file_location("store_measured", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
