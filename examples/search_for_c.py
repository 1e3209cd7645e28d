"""Search for C in private.

A grid search on private rows spends privacy, even if you publish only its winner. `PrivateSearch` pays for all of it:
it trains a random number of candidates, compares noisy counts, and releases the best one.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

from privsvm import ObjectivePerturbationClassifier, PrivateSearch

X, y = load_breast_cancer(return_X_y=True)
X = minmax_scale(X, (-1, 1))  # for the picture only: these ranges are not public
candidates = [0.001, 0.01, 0.1, 1.0, 10.0]

model = ObjectivePerturbationClassifier(classes=[0, 1])
search = PrivateSearch(model, {"C": candidates}, epsilon=4.0, mean_runs=20, random_state=0).fit(X, y)
print(f"chosen C: {search.best_params_['C']}, {search.best_score_} of {len(X)} rows right by a noisy count")
print(f"{search.guarantee_.status}: epsilon {search.guarantee_.epsilon_with_system_noise:.4g} for the whole search")
print(f"each run trains with epsilon {search.run_epsilon_:.3g}")

# Not for publication: the same candidates without a search, each with the budget of one run.
alone = [model.set_params(C=C, epsilon=search.run_epsilon_, random_state=0).fit(X, y).score(X, y) for C in candidates]
plt.figure(figsize=(6, 3.2))
plt.semilogx(candidates, alone, color="#8a93a3", marker="o", label="one run each (not released)")
chosen = candidates.index(search.best_params_["C"])
plt.plot(candidates[chosen], alone[chosen], color="#1852cc", marker="D", ms=10, label="C that the search chose")
plt.xlabel("C")
plt.ylabel("accuracy on training rows")
plt.legend()
plt.tight_layout()
plt.show()
