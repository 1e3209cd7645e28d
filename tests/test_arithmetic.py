"""A job's results do not depend on the processor."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from privsvm.digests import canonical_json
from privsvm.files import write_json, write_npz
from privsvm_bench.datasets.prepare import write_prepared
from tests.scripts import REPOSITORY

OLD = {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"}
OTHER = {"OPENBLAS_CORETYPE": "Zen", "NPY_ENABLE_CPU_FEATURES": "X86_V3", "NUMBA_CPU_NAME": "nehalem"}
PINNED = "from privsvm.arithmetic import pin_arithmetic; pin_arithmetic();"
CONSTANTS = """
import importlib, sys
import numpy as np
from privsvm.warm_up import MODULES
for name in MODULES:
    importlib.import_module("privsvm." + name)
for name, module in sorted(sys.modules.items()):
    for key, value in vars(module).items() if name.startswith("privsvm.") else ():
        if isinstance(value, (float, np.floating, np.ndarray, tuple)):
            print(name, key, value.tobytes() if isinstance(value, np.ndarray) else repr(value))
"""
JOB = "import sys; sys.path.insert(0, 'stages'); import train; train.main()"


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Return a function that trains in a process and digests its outputs."""
    folder = tmp_path_factory.mktemp("job")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 13))
    arrays = {
        "X": rows / np.linalg.norm(rows, axis=1, keepdims=True), "y": (rows[:, 0] > 0).astype(int),
        "scale_shift": np.zeros((1, 13)), "scale_factor": np.ones((1, 13)),
        "train_0": np.arange(120), "test_0": np.arange(120, 150),
    }  # fmt: skip
    description = {
        "dataset": "rows", "n_rows": 150, "n_features": 13, "n_splits": 1, "sparse": False, "classes": ["a", "b"],
        "classes_origin": "declared", "declared_training_rows": None, "n_features_origin": "declared", "missing": {},
        "prescaled": None, "protocol": {"kind": "holdout"}, "scaling": {"kind": "none", "origin": "declared"},
    }  # fmt: skip
    write_prepared(folder / "rows.npz", folder / "rows.json", arrays, description)
    write_npz(folder / "condensed.npz", {"condense": np.array("none")})
    write_json(folder / "condensed.json", {})
    parameters = {
        "condense": "none", "experiment": "test", "implementation": "landmark_dual", "method": "landmark_dual",
        "seed": 0, "parameters": {"C": 0.05, "gamma": 0.1, "n_landmarks": 50},
        "delta": 1e-5, "epsilons": [1.0], "neighbours": "replace_one", "repeats": 1,
    }  # fmt: skip

    def run(code, **variables):
        outputs = {name: folder / f"{name}.out" for name in ("models", "record", "timings")}
        subprocess.run(
            [
                sys.executable, "-c", code, "--prepared", folder / "rows.npz",
                "--condensed", folder / "condensed.npz", "--condensed-record", folder / "condensed.json",
                "--parameters", canonical_json(parameters),
                *(word for name, path in outputs.items() for word in (f"--{name}", path)),
            ],
            cwd=REPOSITORY, env={**os.environ, **variables}, check=True,
        )  # fmt: skip
        return hashlib.sha256(outputs["models"].read_bytes() + outputs["record"].read_bytes()).hexdigest()

    return run


@pytest.mark.skipif(os.environ.get("OPENBLAS_CORETYPE") != "Haswell", reason="a processor without AVX2 is left alone")
def test_a_job_writes_equal_bytes_on_all_processors_with_avx2(train):
    pinned = train(PINNED + JOB, **OLD)
    assert pinned == train(PINNED + JOB, **OTHER)
    # Without the pin, the older processor has other last bits.
    assert pinned != train(JOB, **OLD)


def test_constants_do_not_depend_on_the_processor():
    """Compiled copies hold them, and serve every process of this machine, whatever code its libraries choose."""
    here, there = (
        subprocess.run([sys.executable, "-c", CONSTANTS], cwd=REPOSITORY / "lib", env=os.environ | variables,
                       capture_output=True, check=True)
        for variables in ({}, OLD)
    )  # fmt: skip
    assert b"_B11" in here.stdout
    assert here.stdout == there.stdout
