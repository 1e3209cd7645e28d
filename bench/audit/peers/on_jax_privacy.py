"""jax_privacy: one noisy sum of clipped gradients at epsilon 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dp_accounting
import jax
import jax.numpy as jnp
import numpy as np
from case import DELTA, GAUSSIAN, Case, release
from dp_accounting.pld import PLDAccountant
from jax_privacy.clipping import clipped_grad
from jax_privacy.noise_addition import gaussian_privatizer

PACKAGE = "jax-privacy"
_MULTIPLIER = float(
    dp_accounting.calibrate_dp_mechanism(
        PLDAccountant, dp_accounting.GaussianDpEvent, 1.0, DELTA, dp_accounting.ExplicitBracketInterval(0.1, 20.0)
    )
)
_RNG = np.random.default_rng()


def _step(norm: float) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Publish a noisy gradient clipped at a norm; the noise is calibrated to norm 1."""
    gradient = clipped_grad(lambda weights, rows: jnp.sum(weights * rows), l2_clip_norm=norm)

    @jax.jit
    def noisy(key: jax.Array, rows: jax.Array) -> jax.Array:
        weights = jnp.zeros(1)
        noise = gaussian_privatizer(stddev=_MULTIPLIER, prng_key=key)
        return noise.update(gradient(weights, rows), noise.init(weights))[0]

    return lambda X, y: noisy(jax.random.key(int(_RNG.integers(2**31))), jnp.asarray(X, dtype=jnp.float32))


CASES = [
    Case("one step", release(_step(1.0)), 2000, options=GAUSSIAN),
    Case("one step, noise of another norm", release(_step(4.0)), 2000, source="planted", options=GAUSSIAN),
]
