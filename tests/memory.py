"""Peak memory of a fit in a subprocess."""

from tests.processes import told_by_python

HEADER = """
import resource, sys
import numpy as np
import privsvm
data = np.load(sys.argv[1])
X, y = data["X"], data["y"]
def fit(model):
    model.fit(X[:100], np.arange(100) % 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model.fit(X, y)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def fit_megabytes(model, rows):
    """Measure the megabytes that fitting a model (source code) adds."""
    return float(told_by_python("-c", f"{HEADER}fit(privsvm.{model})", rows))
