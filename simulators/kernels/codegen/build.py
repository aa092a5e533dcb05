"""Generated kernels as cached modules.

A kernel's source is written once to a folder of the user's own, named by its hash, and imported
from there: numba can then keep the machine code beside it, and only the first run on a machine
compiles.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import inspect
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

from simulators.atomic import replacing
from simulators.kernels.codegen import codes, streams

SOURCE_HEADER = """\
import numpy as np
from numba import njit
from simulators.kernels.codegen.codes import *
from simulators.kernels.codegen.streams import *
"""


@cache
def _folder() -> Path:
    """A folder for kernels that only this user can write; a temporary one when there is none."""
    base = os.environ.get("SURROGATE_CACHE")
    if not base:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
        base = os.path.join(home, "surrogate-toolkit")
    try:
        folder = Path(base).expanduser() / "kernels"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            raise PermissionError(folder)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # no home, or no right to write there
        passing = tempfile.TemporaryDirectory(prefix="surrogate-kernels-")
        atexit.register(passing.cleanup)
        return Path(passing.name)


@cache
def _fingerprint() -> str:
    """numba does not see changes in what a kernel imports: it is part of the kernel's name."""
    texts = (inspect.getsource(module) for module in (codes, streams))
    return "".join(texts) + str(numba.__version__)


def compile_kernel(source: str) -> Callable[..., Any]:
    """The function `run` of a generated module."""
    text = SOURCE_HEADER + source
    digest = hashlib.sha256((text + _fingerprint()).encode()).hexdigest()[:20]
    name = f"surrogate_kernel_{digest}"
    if name not in sys.modules:
        path = _folder() / f"{name}.py"
        if not (path.is_file() and path.read_text(encoding="utf-8") == text):
            with replacing(path) as part:
                part.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot load the kernel {path}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    run: Callable[..., Any] = sys.modules[name].run
    return run


def forget(run: Callable[..., Any]) -> None:
    """Remove the cached machine code of a kernel, so that it is compiled again."""
    name = run.__module__
    sys.modules.pop(name, None)
    for kept in (_folder() / "__pycache__").glob(f"{name}.*"):
        kept.unlink(missing_ok=True)
