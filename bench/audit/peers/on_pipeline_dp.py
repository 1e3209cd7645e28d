"""PipelineDP: count and sum of one public partition at epsilon 1, on its local backend."""

from __future__ import annotations

import numpy as np
import pipeline_dp
from case import ADDED, Case, release

PACKAGE = "pipeline-dp"
_EXTRACTORS = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: 0, value_extractor=lambda row: row[1]
)


def _aggregate(X: np.ndarray, y: np.ndarray) -> list[float]:
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    parameters = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=-1.0,
        max_value=1.0,
    )
    result = engine.aggregate(list(enumerate(X[:, 0].tolist())), parameters, _EXTRACTORS, public_partitions=[0])
    accountant.compute_budgets()
    ((_, metrics),) = result
    return [float(metrics.count), float(metrics.sum)]


CASES = [
    Case("count and sum", release(_aggregate), 2000, options={**ADDED, "delta": 1e-6}),
]
