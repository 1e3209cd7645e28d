"""Compare two settings.

Train both settings on the same splits, and compare them split by split. Training sets overlap, and the interval
corrects for it (Nadeau and Bengio 2003). For results of the benchmark, `python -m privsvm_bench compare A B` does the
same.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import t
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import ShuffleSplit, cross_val_score

from privsvm import PrivateLinearClassifier

X, y = load_breast_cancer(return_X_y=True)
bounds = (np.zeros(X.shape[1]), 2.0 ** np.ceil(np.log2(X.max(axis=0))))  # as if an instrument had stated them
splits = ShuffleSplit(12, test_size=0.25, random_state=0)
settings = {
    epsilon: PrivateLinearClassifier(
        epsilon=epsilon, classes=[0, 1], bounds=bounds, random_state=0,
        allow_composition=True,  # models of the splits are not published
    )
    for epsilon in (0.5, 2.0)
}  # fmt: skip
low, high = (cross_val_score(model, X, y, cv=splits) for model in settings.values())

gaps = high - low
half = t.ppf(0.975, len(gaps) - 1) * np.sqrt(gaps.var(ddof=1) * (1 / len(gaps) + 0.25 / 0.75))
print(f"epsilon 0.5: {low.mean():.3f}; epsilon 2: {high.mean():.3f}")
print(f"difference {gaps.mean():+.3f}, from {gaps.mean() - half:+.3f} to {gaps.mean() + half:+.3f} (95 %)")

plt.figure(figsize=(4, 4))
plt.plot([0, 1], [low, high], color="#8a93a3", marker="o")
plt.plot([0, 1], [low.mean(), high.mean()], color="#1852cc", marker="o", lw=3, label="mean")
plt.xticks([0, 1], ["epsilon 0.5", "epsilon 2"])
plt.ylabel("accuracy, a line for each split")
plt.legend()
plt.tight_layout()
plt.show()
