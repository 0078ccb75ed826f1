"""What names and files of libraries stand for: JSON, regular expressions, files, locks, operators of torch."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyrometer.host.profile import LeafKind
from pyrometer.source.ownership import owner_of
from pyrometer.source.words import words


class Library(NamedTuple):
    """A frame of a library above the user's line."""

    file: str
    function: str


_NAMES: Mapping[LeafKind, str] = {
    "torch.save": "torch.save torch.serialization",
    "pickle": "torch.load pickle _pickle cloudpickle dill marshal shelve joblib",
    "synchronisation": "torch.cuda.synchronize",
    "backward": "torch.autograd.backward torch.autograd.grad",
    "data": "torch.utils.data",
    "operator": "torch",
    "fsync": "os.fsync os.fdatasync os.sync",
    "process": "os.system os.popen os.fork os.waitpid subprocess multiprocessing",
    "python": "os.getenv os.environ",
    "file": "os open io _io pathlib shutil tempfile gzip zipfile tarfile csv _csv fileinput",
    "sleep": "time.sleep",
    "regex": "re regex",
    "json": "json _json orjson ujson simplejson",
    "logging": "logging loguru",
    "print": "print sys.stdout sys.stderr",
    "copy": "copy",
    "random": "numpy.random random _random secrets",
    "numpy": "numpy",
    "hash": "hashlib _hashlib hmac zlib.crc32 zlib.adler32 xxhash",
    "lock": "_thread threading queue _queue",
    "network": "socket _socket ssl http urllib requests httpx aiohttp",
    "garbage": "gc",
    "import": "importlib __import__",
}  # fmt: skip
_BY_NAME: Mapping[str, LeafKind] = {name: kind for kind, names in _NAMES.items() for name in words(names)}
"""The longest that a dotted name begins with tells what it does."""

_PLAIN_MODULES = frozenset(
    words(
        "math cmath operator itertools collections functools heapq bisect time datetime string types typing struct array "
        "dataclasses enum contextlib abc weakref statistics decimal fractions builtins _operator _functools _collections"
    )
)
"""Modules whose functions are Python's own work."""

ALLOCATING = frozenset(
    words(
        "zeros empty ones full rand randn randint randperm arange linspace eye zeros_like empty_like ones_like full_like "
        "rand_like randn_like new_zeros new_empty new_ones new_full new_tensor"
    )
)
"""Functions and methods of torch that make a tensor of no other."""

_FILES: Sequence[tuple[str, LeafKind]] = (
    (r"/torch/utils/data/", "data"),
    (r"/torch/serialization\.py$", "torch.save"),
    (r"/torch/_tensor_str\.py$", "print"),
    (r"/torch/autograd/(?:__init__|graph)\.py$", "backward"),
    (r"/json/", "json"),
    (r"/(?:re|regex)/|/sre_\w+\.py$|/re\.py$", "regex"),
    (r"/logging/|/loguru/", "logging"),
    (r"/pickle\.py$|/copyreg\.py$|/cloudpickle/|/dill/|/joblib/", "pickle"),
    (r"/copy\.py$", "copy"),
    (r"/numpy/random/|/random\.py$|/secrets\.py$", "random"),
    (r"/numpy/", "numpy"),
    (r"/hashlib\.py$|/hmac\.py$", "hash"),
    (r"/subprocess\.py$|/multiprocessing/", "process"),
    (r"/(?:socket|ssl)\.py$|/(?:http|urllib|urllib3|requests|httpx|aiohttp)/", "network"),
    (r"/threading\.py$|/queue\.py$", "lock"),
    (r"frozen importlib|/importlib/", "import"),
    (
        r"/(?:shutil|pathlib|tempfile|gzip|zipfile|tarfile|csv|codecs|_pyio|fileinput)\.py$|/pathlib/",
        "file",
    ),
)


def kind_of_library(frames: Sequence[Library]) -> LeafKind:
    """What libraries do, told by the outermost that has a kind of its own.

    >>> kind_of_library([Library("/usr/lib/python3.12/json/encoder.py", "encode")])
    'json'
    """
    for frame in reversed(frames):
        path = frame.file.replace("\\", "/")
        for pattern, kind in _FILES:
            if re.search(pattern, path):
                return kind
    owners = {owner_of(frame.file, frame.function) for frame in frames}
    return "operator" if "torch" in owners else "library"


def kind_of_name(dotted: str) -> LeafKind | None:
    """The kind of what a dotted name means; None where it says nothing.

    >>> kind_of_name("os.fsync"), kind_of_name("json.dumps"), kind_of_name("torch.relu"), kind_of_name("mine.f")
    ('fsync', 'json', 'operator', None)
    """
    module, _, function = dotted.rpartition(".")
    if module == "torch" and function in ALLOCATING:
        return "allocation"
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        if kind := _BY_NAME.get(".".join(parts[:length])):
            return kind
    first = parts[0]
    if first in _PLAIN_MODULES or (first == dotted and hasattr(builtins, dotted)):
        return "python"
    return "library" if first in sys.stdlib_module_names else None
