"""Strategies for lines of files."""

from hypothesis import strategies as st

# Arbitrary bytes, and bytes with a meaning for parsers.
RECORDS = st.one_of(
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
    st.lists(
        st.sampled_from([b'"', b",", b"a", b"7", b"\r", b"\xff", b"\xc3", b" ", b"yes", b"\0", b"\xe2\x80\xa8"])
    ).map(b"".join),
)
