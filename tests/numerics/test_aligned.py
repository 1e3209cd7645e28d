"""Memory that begins at a multiple of a unit."""

import pytest

from privsvm.numerics.compiled.aligned import allocate_aligned


@pytest.mark.parametrize("unit", [1, 64, 4096])
@pytest.mark.parametrize("size", [1, 63, 10_000])
def test_it_begins_at_a_multiple_of_the_unit(size, unit):
    # Kept, so that every one lies somewhere else.
    kept = [allocate_aligned(size, unit) for _ in range(20)]
    for number, memory in enumerate(kept):
        assert memory.shape == (size,)
        assert memory.ctypes.data % unit == 0
        memory[:] = number
    assert all((memory == number).all() for number, memory in enumerate(kept))
