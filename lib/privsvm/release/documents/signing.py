"""Signatures of cards by Ed25519: an editor of a card can compute its digest again, but not its signature."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from privsvm.errors import PrivSVMError
from privsvm.untrusted import read_regular_file

_LARGEST, _FORM = 1 << 20, "give a key in PEM format"
_MAKE = "make an Ed25519 key with `openssl genpkey -algorithm ed25519`"


def _serialization() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise PrivSVMError("signatures need the package cryptography: run `pip install cryptography`") from None
    return serialization


def _checksum(signed: bytes) -> str:
    return hashlib.sha256(signed).hexdigest()[:16]


def check_form(signature: str | None) -> None:
    """Raise PrivSVMError for a signature that is damaged: no digest of the card covers it."""
    try:
        signed = bytes.fromhex(str(signature)[:128])
        is_complete = str(signature) == signed.hex() + _checksum(signed)
    except ValueError:
        is_complete = False
    if signature is not None and not is_complete:
        raise PrivSVMError("the signature of the card is damaged; get the card again")


def signature_of(digest: str, key: str | os.PathLike[str]) -> str:
    """Sign a digest of 64 hexadecimal digits; return 128 hexadecimal digits, and 16 of a checksum.

    `key` is an Ed25519 private key, PEM without password (``openssl genpkey -algorithm ed25519``).
    """
    serialization = _serialization()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    pem = read_regular_file(key, _LARGEST, _FORM)
    try:
        private = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise PrivSVMError(f"{key}: no private key without password ({error}); {_MAKE}") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise PrivSVMError(f"{key}: a key of another kind ({type(private).__name__}); {_MAKE}")
    signed: bytes = private.sign(digest.encode())
    return signed.hex() + _checksum(signed)


def check_signature(digest: str, signature: str | None, key: str | os.PathLike[str]) -> None:
    """Raise PrivSVMError unless a signature of a digest is by the owner of a public key (PEM)."""
    serialization = _serialization()
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if signature is None:
        raise PrivSVMError("the card is not signed: ask for a signed one, or verify without --key")
    pem = read_regular_file(key, _LARGEST, _FORM)
    try:
        public = serialization.load_pem_public_key(pem)
        signed = bytes.fromhex(signature[:128])
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise PrivSVMError(f"{key}: no public key, or no signature ({error}); give the signer's key") from None
    if not isinstance(public, Ed25519PublicKey):
        raise PrivSVMError(f"{key}: a key of another kind ({type(public).__name__}); give the signer's Ed25519 key")
    try:
        public.verify(signed, digest.encode())
    except InvalidSignature:
        raise PrivSVMError(
            "the signature was not made with this key: the card was edited, or another key signed it"
        ) from None
