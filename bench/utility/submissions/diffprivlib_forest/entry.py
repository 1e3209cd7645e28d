"""diffprivlib's random forest with its defaults, as an entry of the leaderboard."""

from diffprivlib.models import RandomForestClassifier

GUARANTEE = {
    "name": "diffprivlib_forest",
    "status": "claimed",
    "relation": "add_remove",
    "delta": 0.0,
    "reference": "https://diffprivlib.readthedocs.io/en/latest/modules/models.html",
    "tuning": "none",
}


def fit(X, y, bounds, classes, epsilon, delta, neighbours, rng):
    """Fit ten trees of depth five on disjoint tenths of the rows."""
    return RandomForestClassifier(epsilon=epsilon, bounds=bounds, classes=classes, random_state=rng).fit(X, y)
