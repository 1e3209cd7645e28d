"""ChaCha20 in Python integers, the reference for compiled code."""

import struct


def chacha_block(key, counter, nonce):
    """Compute one block of 16 words (RFC 8439, 2.3) with a 64-bit counter."""
    mask = 0xFFFFFFFF
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *key, counter & mask, counter >> 32, *nonce]
    state = list(start)

    def quarter(a, b, c, d):
        for x, y, z, count in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) & mask
            mixed = state[z] ^ state[x]
            state[z] = (mixed << count | mixed >> (32 - count)) & mask

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return [(value + first) & mask for value, first in zip(state, start, strict=True)]
