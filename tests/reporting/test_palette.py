"""Colours of methods: told apart by everyone."""

import itertools

import numpy as np
import pytest

from privsvm.registry import implementations
from privsvm_bench.palette import COLOURS, NAMED, looks_of

# Linear RGB as seen without one kind of cones (Machado, Oliveira and Fernandes 2009, severity 1).
VISIONS = {
    "normal": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    bent = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * bent[1] - 16, 500 * (bent[0] - bent[1]), 200 * (bent[1] - bent[2])])


@pytest.mark.parametrize("vision", VISIONS)
def test_no_two_colours_are_alike(vision: str) -> None:
    for theme in zip(*COLOURS, strict=True):
        seen = [lab(np.array(VISIONS[vision]) @ linear(colour)) for colour in theme]
        distances = {
            pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]])
            for pair in itertools.combinations(range(len(COLOURS)), 2)
        }
        assert min(distances.values()) > (19 if vision == "normal" else 11)
        assert min(distance for pair, distance in distances.items() if max(pair) < len(NAMED)) > 20


def test_no_colour_is_grey_which_is_for_claims() -> None:
    chromas = [np.hypot(*lab(linear(colour))[1:]) for light, dark in COLOURS[8:] for colour in (light, dark)]
    assert min(chromas) > 20


@pytest.mark.parametrize(("theme", "page"), [(0, "#ffffff"), (1, "#1b1f26")])
def test_every_colour_stands_out_from_the_page(theme: int, page: str) -> None:
    for pair in COLOURS:
        dark, bright = sorted(TO_XYZ[1] @ linear(colour) for colour in (pair[theme], page))
        assert (bright + 0.05) / (dark + 0.05) > 3


def test_eight_methods_look_the_same_in_every_report() -> None:
    alone = [looks_of([name])[0] for name in NAMED]
    assert [(look.light, look.dark) for look in alone] == [*COLOURS[: len(NAMED)]]
    assert looks_of([*NAMED, *implementations()])[: len(NAMED)] == alone


def test_no_two_methods_of_a_report_look_alike() -> None:
    """They differ by colour or mark, in whatever order they stand, and no number of methods is too large."""
    names = [f"method_{number}" for number in range(100)]
    for chosen in (implementations(), [*NAMED, *names], names[:16], [*names, *NAMED[::-1]]):
        looks = dict(zip(chosen, looks_of(chosen), strict=True))
        assert len({(look.light, look.symbol) for look in looks.values()}) == len(chosen)
        assert looks_of(chosen[::-1]) == [looks[name] for name in chosen[::-1]]
    # As long as there are colours, none is used twice.
    assert len({look.light for look in looks_of([*NAMED, *names[:16]])}) == len(COLOURS)
    assert len(looks_of([f"package:Class{number}" for number in range(1000)])) == 1000


def test_settings_of_a_method_share_its_colour() -> None:
    for name in ("pmsvm_wp", "dp_newton", "package:Class"):
        alone, first, second = *looks_of([name]), *looks_of([name, name])
        assert first == alone
        assert first.light == second.light
        assert first.symbol != second.symbol
    many = [*(f"method_{number}" for number in range(20)), "dp_newton", "dp_newton"]
    looks = looks_of(many)
    assert len({(look.light, look.symbol) for look in looks}) == len(many)
