"""How the kernels are compiled, and where the machine code is kept.

numba's own cache looks at the file of the function that is called and at no other. A step has all the kernels inlined, so an
edit in one of them would go unnoticed. Here the folder's name is a hash of all the kernels' sources, of numba's version and
of the processor's features: what was compiled from other sources, or for another machine, is never found.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numba
from numba import njit
from numba.core.caching import FunctionCache, _CacheLocator

from llmcourse.fetch import cache_dir

# No fast maths: it lets the compiler assume that there is no NaN, and a NaN must come out. `numpy`: dividing by zero gives
# infinity, as in NumPy, instead of an exception, which would leave the other threads waiting at a barrier.
_SETTINGS = dict(nogil=True, error_model="numpy", boundscheck=False)


def kernel(function: Callable) -> Callable:
    """Compile a function that only other kernels call."""
    return njit(**_SETTINGS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def entry(function: Callable) -> Callable:
    """Compile a function that Python calls, and keep its machine code for the next process."""
    compiled = njit(**_SETTINGS)(function)
    compiled._cache = _Kept(function)
    return compiled


@cache
def machine_code_folder() -> Path:
    """Where the machine code of these sources for this processor is kept."""
    sources = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        sources.update(file.name.encode() + b"\0" + file.read_bytes())
    host = (numba.__version__, llvmlite.__version__, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    settings = (numba.config.CPU_NAME, numba.config.CPU_FEATURES, numba.config.OPT)
    sources.update(repr((host, settings)).encode())
    return cache_dir() / "kernels" / sources.hexdigest()[:16]


class _Folder(_CacheLocator):
    """Tells numba the folder. The stamp is constant: the folder's own name changes with the sources."""

    def __init__(self, line: int):
        self.line = line

    @classmethod
    def from_function(cls, py_func, py_file):
        return cls(py_func.__code__.co_firstlineno)

    def get_cache_path(self) -> str:
        return str(machine_code_folder())

    def get_source_stamp(self):
        return "by folder"

    def get_disambiguator(self) -> str:
        return str(self.line)


class _Kept(FunctionCache):
    """numba's cache in our folder. A folder that cannot be written is no error: the kernel is then compiled in every process."""

    class _impl_class(FunctionCache._impl_class):
        _locator_classes = [_Folder]

        def __init__(self, py_func):
            chosen, numba.config.CACHE_LOCATOR_CLASSES = getattr(numba.config, "CACHE_LOCATOR_CLASSES", ""), ""
            try:
                super().__init__(py_func)
            finally:
                numba.config.CACHE_LOCATOR_CLASSES = chosen

    def load_overload(self, sig, target_context):
        try:
            found = super().load_overload(sig, target_context)
        except OSError:
            found = None
        if found is None and self._py_func.__name__ == "step":
            print("compiling the kernels for this processor, once: about ten seconds …", file=sys.stderr, flush=True)
        return found

    def save_overload(self, sig, data) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            self.disable()


def is_kept() -> bool:
    """Whether machine code can be kept: the folder exists or can be made, and a file can be written into it."""
    folder = machine_code_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
