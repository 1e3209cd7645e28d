"""Bytes that a line of a file may hold."""

from __future__ import annotations

from hypothesis import strategies as st

# Most of them of what matters to a reader.
RECORDS = st.one_of(
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
    st.lists(
        st.sampled_from([b'"', b",", b"a", b"7", b"\r", b"\xff", b"\xc3", b" ", b"yes", b"\0", b"\xe2\x80\xa8"])
    ).map(b"".join),
)
