"""Imported by Python itself before the script: starts the observation, and removes every trace of how it came in.

Nothing of ours is below the script on the stack, so `__main__`, `sys.argv`, exit codes and tracebacks are Python's own.
"""

import os
import sys


def _observe() -> None:
    log = os.environ.pop("_PYROMETER_EVENT_LOG", None)
    pythonpath = os.environ.pop("_PYROMETER_PYTHONPATH", None)
    trace_request = os.environ.pop("_PYROMETER_TRACE", None)
    follow_request = os.environ.pop("_PYROMETER_FOLLOW", None)
    is_asked = os.environ.pop("_PYROMETER_ASKED", None) is not None
    if log is None:
        return
    if pythonpath is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = pythonpath
    try:
        from _pyrometer_inside.start import start  # type: ignore[import-not-found, unused-ignore]

        start(log, trace_request, follow_request, is_asked)
    except Exception as error:  # noqa: BLE001 - the script must run whatever happens to us; the parent reports it
        with open(log + ".failure", "w") as report:  # noqa: PTH123 - pathlib is not loaded here
            report.write(f"{type(error).__name__}: {error}")


_observe()
_folder = os.path.dirname(__file__)  # noqa: PTH120 - pathlib is not loaded here
if _folder in sys.path:
    sys.path.remove(_folder)
for _entry in [entry for entry in sys.path_importer_cache if entry.startswith(_folder)]:
    del sys.path_importer_cache[_entry]
# Now the user's own sitecustomize, which ours has hidden. Where there is none, this raises what `site` expects in
# that case and passes over.
sys.modules.pop("sitecustomize", None)
__import__("sitecustomize")
