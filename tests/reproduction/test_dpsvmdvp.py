import pytest

from reproduce.dpsvmdvp.panels import knees

from .conftest import SMALL


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ([0.5, 0.52, 0.8, 0.9], (0.01, 0.5)),
        ([0.9, 0.9, 0.9, 0.9], (None, 0.0005)),
        ([0.5, 0.5, 0.5, 0.5], (0.5, None)),
        ([0.7, 0.5, 0.89, 0.85], (None, None)),
    ],
)
def test_knees(curve, expected):
    assert knees(SMALL["dpsvmdvp"]["epsilons"], curve, 0.9) == expected
