import struct

import numpy as np
import pytest
from tests.chacha import chacha_block

from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.compiled.vector_random import logarithms, normal_pair, random_bits

# Chance of a false alarm of one statistical check.
ALARM = 1e-7


@jit(fastmath={"contract"})
def fill_normals(bits, out):
    """Turn uniform bits into as many standard normal numbers."""
    half = out.shape[0] // 2
    radius_bits, angle_bits, first, second = bits[:half], bits[half:], out[:half], out[half:]
    for i in range(half):
        first[i], second[i], _, _ = normal_pair(radius_bits[i], angle_bits[i])


def first_blocks(key, counter, nonce, count=1):
    """The first words of the key stream, block by block (count, 16)."""
    out = np.zeros(128, dtype=np.uint64)
    random_bits(np.array(key, dtype=np.uint32), np.uint64(counter), np.uint64(nonce), out)
    return out.view(np.uint32).reshape(16, 16).T[:count]


# Key, the 16 bytes after it in the state as two uint64 (our counter and nonce), and the block: RFC 8439, 2.3.2 and A.1.
RFC_8439 = [
    (
        bytes(range(32)),
        (1 | 0x09000000 << 32, 0x4A000000),
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        b"\x00\xff" + bytes(30),
        (2, 0),
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    (
        bytes(32),
        (0, 0x02 << 56),
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
]


@pytest.mark.parametrize(("key", "start", "stream"), RFC_8439)
def test_the_published_vectors(key, start, stream):
    """RFC 8439: its nonce of 96 bits begins where our counter's upper half is."""
    block = first_blocks(struct.unpack("<8I", key), *start)[0]
    assert block.astype("<u4").tobytes().hex() == stream


@pytest.mark.parametrize("counter", [0, 1, 2**32 - 10, 2**40 + 3])
@pytest.mark.parametrize("nonce", [0, 1, 2**32, 2**64 - 1])
def test_bits_are_the_key_stream(counter, nonce):
    key = np.random.default_rng(0).integers(0, 2**32, size=8, dtype=np.uint32)
    out = np.zeros(256, dtype=np.uint64)
    random_bits(key, np.uint64(counter), np.uint64(nonce), out)
    # Two groups of 16 blocks: word by word, the 16 blocks side by side.
    words = out.view(np.uint32).reshape(2, 16, 16)
    for group in range(2):
        for lane in range(16):
            expected = chacha_block(
                [int(word) for word in key], counter + 16 * group + lane, (nonce & 0xFFFFFFFF, nonce >> 32)
            )
            assert words[group, :, lane].tolist() == expected


def test_logarithms():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.random(10**5), 1 - rng.random(1000) * 1e-9, 2.0 ** -np.arange(1.0, 66.0), [1.0]])
    out = np.empty_like(values)
    logarithms(values, out)
    assert np.all(np.abs(out - np.log(values)) <= 1e-15 * np.abs(np.log(values)))


def test_normals_are_box_and_muller():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**64, size=4096, dtype=np.uint64)
    # Every corner: all bits clear or set, for the radius and for the angle.
    bits[:4] = [0, 0, 2**64 - 1, 2**64 - 1]
    bits[2048:2052] = [0, 2**64 - 1, 0, 2**63]
    out = np.empty(4096)
    fill_normals(bits, out)
    radius = np.sqrt(-2 * np.log((bits[:2048].astype(float) + 0.5) * 2.0**-64))
    sign = np.where(bits[2048:] >> np.uint64(63), -1.0, 1.0)
    angle = (bits[2048:] << np.uint64(1)).view(np.int64).astype(float) * (np.pi / 2 * 2.0**-63)
    assert np.abs(out[:2048] - sign * radius * np.cos(angle)).max() < 1e-14
    assert np.abs(out[2048:] - radius * np.sin(angle)).max() < 1e-14
    assert np.abs(out).max() > 9.0
