"""All that a verb told anyone: on its streams, in its page and in the store."""

from __future__ import annotations

import gzip
from pathlib import Path


def everything_told(out: str, err: str, folder: Path) -> str:
    """Both streams, and every file below a folder but the programs; what is packed is unpacked."""
    told = [out, err]
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix not in {".py", ".pyc"}:
            content = path.read_bytes()
            told.append(
                (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8", "replace")
            )
    return "\n".join(told)
