"""Private naive Bayes from noisy histograms (after Vaidya, Shafiq, Basu and Hong 2013).

Their Differentially private naive Bayes classification releases means and spreads of Gaussians for columns of numbers.
Here numbers are binned by noisy quantiles (`privsvm.families.histograms.quantiles`). How often each class occurs in
each bin of each column, and in all, is one vector: a row is counted ``d + 1`` times, so that is one Gaussian release. A
bin of a class with count h has the share ``(h + s m) / (H + s)`` of the H rows of the class, where m is the bin's share
of all rows and s is twice the noise: counts below the noise do not speak for a class.
"""

from __future__ import annotations

import numpy as np

from privsvm.base.parameters import parameter
from privsvm.families.histograms.quantiles import counts_noise, noisy_counts
from privsvm.families.histograms.training import FEW_BINS, Bins, HistogramClassifier, Trees
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.privacy.events import Event, Gaussian
from privsvm.solvers.features.trees import BEYOND, leaf_numbers, staircase

# Rows of a class in a bin, in units of the noise, below which there are fewer bins; and rows added to a class.
_ROWS_PER_BIN, _SMOOTHING = 2.0, 2.0


class DPNaiveBayesClassifier(HistogramClassifier):
    """Private naive Bayes: columns by themselves, as noisy histograms of every class.

    Examples
    --------
    >>> from privsvm import DPNaiveBayesClassifier
    >>> model = DPNaiveBayesClassifier(epsilon=4.0, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 500, [0, 1] * 500).guarantee_.status
    'proved'
    """

    n_bins: int = parameter(16, FEW_BINS, "The most bins of a column of numbers. Public.")
    reference = (
        "after Vaidya, Shafiq, Basu and Hong (2013), Differentially private naive Bayes classification; "
        "docs/proofs/histograms.md"
    )

    def _events(self, multiplier: float, n_features: int) -> tuple[Event, str]:
        return Gaussian(multiplier), "counts of every class, in all and in each bin of each column"

    def _train(self, bins: Bins, codes: np.ndarray, multiplier: float, source: NoiseSource) -> Trees:
        n_features, n_classes = len(bins.levels), len(self.classes_)
        noise = counts_noise(n_features + 1, multiplier, self.neighbours)
        n_bins = int(self.n_bins)
        if bins.n_rows is not None:
            n_bins = int(min(n_bins, max(2.0, bins.n_rows / (n_classes * _ROWS_PER_BIN * noise))))
        edges = [bins.edges(column, n_bins) for column in range(n_features)]
        # Public, as releases for a grid of budgets share their shapes.
        depth = max(1, (max(int(self.n_bins), int(bins.levels.max())) - 1).bit_length())
        feature = np.repeat(np.arange(n_features)[:, np.newaxis], 2**depth - 1, axis=1)
        low = np.stack([staircase(column, depth) for column in edges])
        high = np.full(low.shape, BEYOND)
        leaves = leaf_numbers(bins.cells, feature, low, high)
        sizes = [len(column) + 1 for column in edges]
        exact = [np.bincount(codes, minlength=n_classes)]
        exact += [
            np.bincount(codes * size + leaves[:, column], minlength=n_classes * size)
            for column, size in enumerate(sizes)
        ]
        counts = noisy_counts(
            np.concatenate(exact).astype(np.int64),
            n_features + 1,
            multiplier,
            self.neighbours,
            source.part("histograms"),
        )
        rows_of_class, *tables = np.split(
            np.maximum(counts, 0.0), np.cumsum([n_classes, *np.multiply(sizes[:-1], n_classes)])
        )
        value = np.zeros((n_features, 2**depth, n_classes))
        for column, table in enumerate(tables):
            histogram = table.reshape(n_classes, -1)
            value[column, : histogram.shape[1]] = _log_ratios(histogram, _SMOOTHING * noise).T
        rows_of_class = np.maximum(rows_of_class, noise)
        return Trees(feature, low, high, value, np.log(rows_of_class / rows_of_class.sum()))


def _log_ratios(histogram: np.ndarray, smoothing: float) -> np.ndarray:
    """Logarithms (c, m) of how much more often a bin occurs in a class than in all."""
    marginal = histogram.sum(axis=0) + 1.0
    marginal /= marginal.sum()
    shares = (histogram + smoothing * marginal) / (histogram.sum(axis=1, keepdims=True) + smoothing)
    ratios: np.ndarray = np.log(shares / marginal)
    return ratios


ESTIMATOR = DPNaiveBayesClassifier
