"""smartnoise-sql: a count and a sum at epsilon 1 each, on a table of pandas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import snsql
from case import ADDED, Case, clip_feature, release

PACKAGE = "smartnoise-sql"
_COLUMN = {"type": "float", "lower": -1.0, "upper": 1.0, "nullable": False}
_TABLE = {"row_privacy": True, "censor_dims": False, "rows": 100, "x": _COLUMN}


def _ask_query(query: str) -> Callable[[np.ndarray, np.ndarray], float]:
    def ask(X: np.ndarray, y: np.ndarray) -> float:
        table, privacy = pd.DataFrame({"x": clip_feature(X)}), snsql.Privacy(epsilon=1.0)
        reader = snsql.from_df(table, privacy=privacy, metadata={"": {"main": {"t": _TABLE}}})
        return float(reader.execute(query)[1][0])

    return ask


_COUNT, _SUM = "SELECT COUNT(*) AS n FROM main.t", "SELECT SUM(x) AS n FROM main.t"
CASES = [
    Case(name, release(_ask_query(query)), 400, options=ADDED) for name, query in (("count", _COUNT), ("sum", _SUM))
]
