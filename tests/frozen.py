"""The last that a fork server imports: its copies neither look through what is there by then nor copy its memory."""

import gc

gc.collect()
gc.freeze()
gc.set_threshold(100_000, 50, 1000)
