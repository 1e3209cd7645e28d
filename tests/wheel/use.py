"""Fit, save, load and predict with the installed wheel, on every system that CI has: `python -I tests/wheel/use.py`."""

import platform
import tempfile
from pathlib import Path

import numpy as np

import privsvm


def main() -> None:
    """Use the wheel as a reader of the README does."""
    X, y = np.random.default_rng(0).uniform(-1, 1, size=(400, 3)), np.arange(400) % 2
    X[:, 0] = np.where(y, 0.5, -0.5)
    model = privsvm.PrivateLinearClassifier(epsilon=2.0, classes=[0, 1], bounds=(-1, 1)).fit(X, y)
    assert model.guarantee_.status == "proved", model.guarantee_
    with tempfile.TemporaryDirectory() as folder:
        privsvm.save(model, Path(folder) / "model")
        loaded = privsvm.load(Path(folder) / "model")
        assert (loaded.predict(X) == model.predict(X)).all()
        assert loaded.guarantee_.status == "proved", loaded.guarantee_
    print(f"{platform.system()}, Python {platform.python_version()}: fit, saved, loaded and predicted")


if __name__ == "__main__":
    main()
