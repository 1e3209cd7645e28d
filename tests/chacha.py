"""ChaCha20 by OpenSSL, the reference for compiled code."""

import struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms


def chacha_block(key, counter, nonce):
    """Compute one block of 16 words (RFC 8439, 2.3) with a 64-bit counter."""
    cipher = algorithms.ChaCha20(struct.pack("<8I", *map(int, key)), struct.pack("<Q2I", counter, *nonce))
    return [*struct.unpack("<16I", Cipher(cipher, mode=None).encryptor().update(bytes(64)))]
