"""Reproducible arithmetic: one thread per library, one kind of processor."""

from __future__ import annotations

import os
import re
from pathlib import Path

# Libraries that use all cores by default.
_ONE_THREAD = dict.fromkeys(("MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# Libraries that choose code by processor: registers of another width change the last bits of a sum. NumPy ignores names
# that the processor lacks. Numba would add the processor's own features to a name alone.
_ONE_PROCESSOR = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "NUMBA_CPU_FEATURES": "+avx2,+fma",
    "NUMBA_CPU_NAME": "x86-64-v3",
    "OPENBLAS_CORETYPE": "Haswell",
}


def pin_arithmetic() -> None:
    """Restrict libraries to one thread, and to one kind of processor.

    Equal inputs then have equal results, bit for bit, on every x86-64 processor with AVX2 under Linux. Call this before
    NumPy or Numba is imported; processes started later inherit it. A rule that may have more threads sets their number
    in its own command.
    """
    os.environ.update(_ONE_THREAD)
    if _has_avx2():
        os.environ.update(_ONE_PROCESSOR)
        # NumPy refuses to start with both variables.
        os.environ.pop("NPY_ENABLE_CPU_FEATURES", None)


def _has_avx2() -> bool:
    """Tell whether the processor runs x86-64-v3, which libraries do not check."""
    try:
        flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return False
    return flags is not None and {"avx2", "bmi2", "fma"} <= set(flags[1].split())
