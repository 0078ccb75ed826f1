"""Write the parts of the documentation that are generated from the code; run by `make docs`."""  # noqa: INP001 - a script

from __future__ import annotations

import sys
from pathlib import Path

from pyrometer.report.schema import write_schemas

if __name__ == "__main__":
    for path in write_schemas(Path(__file__).parent / "schemas"):
        sys.stdout.write(f"{path}\n")
