"""Accuracy against epsilon.

A smaller epsilon costs accuracy. The picture shows how much, with the spread over ten draws of the noise. The dashed
line is the accuracy without privacy.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

from privsvm import PMSVMWPClassifier, PrivateLinearClassifier, SVMClassifier

X, y = load_breast_cancer(return_X_y=True)
# For the picture only: ranges that are read from the rows are not public, and prove nothing of these rows.
X = minmax_scale(X, (-1, 1))
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

epsilons = [0.1, 0.25, 0.5, 1, 2, 4, 8]
candidates = {
    "recommended": ("#1852cc", "o", PrivateLinearClassifier(classes=[0, 1])),
    "PMSVM with weight perturbation": ("#7b542d", "s", PMSVMWPClassifier(classes=[0, 1], C=0.05)),
}
for name, (colour, mark, model) in candidates.items():
    scores = np.array([
        [model.set_params(epsilon=epsilon, random_state=seed).fit(X_train, y_train).score(X_test, y_test)
         for seed in range(10)]
        for epsilon in epsilons
    ])  # fmt: skip
    print(f"{name:32}" + " ".join(f"{mean:.3f}" for mean in scores.mean(axis=1)))
    plt.plot(epsilons, scores.mean(axis=1), color=colour, marker=mark, label=name)
    plt.fill_between(epsilons, scores.min(axis=1), scores.max(axis=1), color=colour, alpha=0.15)
plt.axhline(SVMClassifier(kernel="linear").fit(X_train, y_train).score(X_test, y_test), color="k", ls="--")
plt.xscale("log")
plt.xticks(epsilons, epsilons)
plt.xlabel("epsilon (smaller is more private)")
plt.ylabel("accuracy on test rows")
plt.legend()
plt.show()
