"""Condense the rows before an SVM.

CI-SVM replaces three similar rows with their mean. As a step of imbalanced-learn's pipeline it condenses training rows
only. It states no epsilon, and attackers can trace [condensed rows](../docs/condensation.md) back.
"""

import matplotlib.pyplot as plt
from imblearn.pipeline import make_pipeline
from sklearn.datasets import make_moons
from sklearn.model_selection import cross_val_score

from privsvm import CondensedInformation, SVMClassifier

X, y = make_moons(240, noise=0.18, random_state=0)
for name, model in {
    "all rows": SVMClassifier(gamma=2.0),
    "condensed rows": make_pipeline(CondensedInformation(), SVMClassifier(gamma=2.0)),
}.items():
    print(f"{name:15} accuracy {cross_val_score(model, X, y, cv=10).mean():.3f}")

rows, labels = CondensedInformation().fit_resample(X, y)
print(f"{len(X)} rows became {len(rows)}")
plt.figure(figsize=(6, 3.6))
for code, colour, mark in ((0, "#1852cc", "o"), (1, "#7b542d", "s")):
    plt.scatter(*X[y == code].T, s=12, color=colour, marker=mark, alpha=0.3)
    plt.scatter(*rows[labels == code].T, s=45, color=colour, marker=mark, edgecolor="k", label=f"condensed, {code}")
plt.legend()
plt.tight_layout()
plt.show()
