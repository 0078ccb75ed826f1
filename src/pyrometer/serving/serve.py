"""`pm.serve`: a model behind HTTP from a program of your own, in a thread beside it.

::

    with pm.serve(pm.Inference(model, x), port=8000) as server:
        print(server.url)
        server.wait()          # until Ctrl-C
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from torch import nn

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.serving.deployment import Deployment
from pyrometer.serving.settings import load_serve_settings
from pyrometer.serving.starting.source import Source
from pyrometer.tuning.shapes.axes import Dims
from pyrometer.workload.inference import Inference


class ServedModel:
    """A model that is served until `close`.

    Attributes:
        url: where.
        name: of the model in paths.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._is_ready = threading.Event()
        self._fault: BaseException | None = None
        self.url = deployment.url
        self.name = deployment.name
        try:
            deployment.prepare()
        except BaseException:
            deployment.close()
            raise
        self._thread = threading.Thread(target=self._run, name="pyrometer-serve", daemon=True)
        self._thread.start()
        self._is_ready.wait()
        self._raise_fault()

    def _raise_fault(self) -> None:
        if self._fault is not None:
            self._deployment.close()
            raise self._fault

    def _run(self) -> None:
        from pyrometer.serving.http.server import run_loop

        try:
            run_loop(lambda: self._deployment.run(self._is_ready.set))
        except BaseException as error:  # noqa: BLE001 - raised by the thread that started this one
            self._fault = error
        finally:
            self._is_ready.set()

    def wait(self, timeout_s: Seconds | None = None) -> None:
        """Wait until it has ended.

        Raises:
            UserProgramError: it ended by itself, since memory reached its limit.
        """
        self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._raise_fault()

    def close(self) -> None:
        """Answer what was accepted, and end."""
        if self._thread.is_alive():
            self._deployment.stop()
        self._thread.join()
        self._deployment.close()

    def __enter__(self) -> ServedModel:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()


def serve(
    work: Inference | nn.Module,
    inputs: Any = None,
    *,
    recipe: str | Path | None = None,
    buckets: Dims | None = None,
    token: str | None = None,
    **settings: Any,
) -> ServedModel:
    """Serve a model over the Open Inference Protocol; it is ready when this returns.

    Args:
        work: an inference, or a model with `inputs`.
        inputs: example inputs; they say what requests look like.
        recipe: the file of levers that were proved for it.
        buckets: sizes that vary, with edges: `{"ids": {1: [16, 32, 64]}}`.
        token: that requests need; obligatory where other machines can connect.
        settings: any other key of `[tool.pyrometer.serve]`, which these win over.

    Raises:
        InputError: the model cannot be served so; says why.
        UsageError: other machines could connect, and no token keeps them out.
    """
    if isinstance(work, nn.Module):
        if inputs is None:
            raise InputError(
                "inputs: got none; give an example, such as torch.randn(1, 16), or pm.Inference(model, inputs)"
            )
        work = Inference(work, inputs)
    if not isinstance(work, Inference):
        raise InputError(
            f"work: got {type(work).__name__}; what is served is a forward pass: pm.Inference(model, inputs)"
        )
    source = Source(work=work, recipe=None if recipe is None else Path(recipe))
    return ServedModel(
        Deployment(source, load_serve_settings(Path.cwd(), **settings), buckets or {}, token=token)
    )
