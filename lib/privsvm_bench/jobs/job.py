"""Parameters of each kind of job: the workflow builds them from params.yaml, the job's stage reads them."""

from __future__ import annotations

import math
import os
from typing import Annotated, Any

import pydantic
from pydantic_core import PydanticCustomError

from privsvm.constraints import POSITIVE, REPEATS, SHARE, one_of, real
from privsvm.digests import canonical_json
from privsvm.errors import without_passwords
from privsvm.models import Obeys
from privsvm.privacy.events import Neighbours
from privsvm_bench.datasets.settings import ParsedProtocol, Section
from privsvm_bench.records import Condense

_EPSILON = real("every epsilon must be a number above 0 (from 1e-6 to 1000)", least=1e-6, most=1000)


def distinct(wish: str, most: int | None = None) -> pydantic.AfterValidator:
    """Refuse a list that is empty or too long, or holds equal values."""

    def check(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if values is not None and not 0 < len(set(values)) == len(values) <= (most or len(values)):
            raise PydanticCustomError("constraint", "{wish}", {"wish": wish})
        return values

    return pydantic.AfterValidator(check)


Epsilons = Annotated[
    tuple[Annotated[float, Obeys(_EPSILON)], ...],
    distinct("must be a list of different epsilons, at most 1000", 1000),
]


class Privacy(Section):
    """The privacy that all private methods must offer."""

    epsilons: Epsilons
    delta: Annotated[float, Obeys(SHARE)]
    neighbours: Annotated[Neighbours, Obeys(one_of("replace_one", "add_remove"))]
    repeats: Annotated[int, Obeys(REPEATS)]


class Job(Section):
    """Parameters of one job; a base."""

    def argument(self) -> str:
        """Write the parameters as canonical JSON for the job's command."""
        return canonical_json(self.model_dump(exclude_unset=True))


class DownloadJob(Job):
    """Settings of a dataset to download."""

    settings: dict[str, Any] = pydantic.Field(default_factory=dict)


class PrepareJob(Job):
    """Prepare a dataset."""

    experiment: str
    protocol: ParsedProtocol
    seed: int
    settings: dict[str, Any]


class CondenseJob(Job):
    """Condense the training rows of a dataset."""

    condense: Condense
    experiment: str
    seed: int


class TrainJob(Job):
    """Method and dataset; the defaults are those of a method without privacy, which has one model and no epsilon."""

    condense: Condense
    experiment: str
    implementation: str
    method: str
    parameters: dict[str, Any]
    seed: int
    # As in `Privacy`.
    epsilons: Epsilons = (math.inf,)
    delta: float | None = None
    neighbours: Neighbours | None = None
    repeats: int = 1


class AuditJob(Job):
    """Audit the releases of a method."""

    delta: float
    draws: int
    epsilons: Epsilons
    implementation: str
    method: str
    neighbours: Neighbours
    parameters: dict[str, Any]
    seed: int


class ReportJob(Job):
    """Write the report. The user brought the datasets of ``own_datasets``; ``left_out`` has lines for readers."""

    experiment: str | None = None
    left_out: tuple[str, ...] = ()
    own_datasets: tuple[str, ...] = ()
    reference_epsilon: Annotated[float, Obeys(POSITIVE)] = 1.0


class TrackJob(Job):
    """Log the results to MLflow, at an address without its password, and register models at an epsilon."""

    tracking_uri: str
    experiment: str = ""
    epsilon: float | None = None

    @property
    def address(self) -> str:
        """The address, with the password that the environment holds: no command line does."""
        uri = os.environ.get("PRIVSVM_TRACKING_URI", "")
        return uri if without_passwords(uri) == self.tracking_uri else self.tracking_uri
