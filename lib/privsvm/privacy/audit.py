"""Lower bounds on epsilon: what a mechanism loses at least, shown on concrete neighbours."""

from __future__ import annotations

import math

from privsvm.privacy.accounting import gaussian_epsilon
from privsvm.privacy.guarantee import Neighbours, Witness

__all__ = ["gaussian_witness"]


def gaussian_witness(
    distance: float, noise_scale: float, delta: float, neighbours: Neighbours, description: str
) -> Witness:
    """Witness for Gaussian noise on two neighbours whose exact outputs are known.

    Parameters
    ----------
    distance : float
        L2 distance between the exact outputs on the two data sets.
    noise_scale : float
        Standard deviation of the noise on each released number.
    delta : float
        The delta that goes with epsilon.
    neighbours : {"replace_one", "add_remove"}
        How the two data sets differ.
    description : str
        The pair, in words.

    Returns
    -------
    Witness
        Exact for the pair, no sampling: two Gaussians of equal spread are told apart by their
        distance alone.
    """
    multiplier = noise_scale / distance if distance > 0 else math.inf
    return Witness(epsilon=gaussian_epsilon(multiplier, delta), neighbours=neighbours, description=description)
