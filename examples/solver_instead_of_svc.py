"""SVMClassifier instead of SVC.

`SVMClassifier` takes the parameters of `sklearn.svm.SVC` and works wherever `SVC` does, for example in a grid search.
It is not private.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from privsvm import SVMClassifier

X, y = load_iris(return_X_y=True)
X = X[:, 2:]

searches = {}
for name, model in {"sklearn.svm.SVC": SVC(), "privsvm.SVMClassifier": SVMClassifier()}.items():
    grid = {"C": [0.1, 1, 10, 100], "gamma": [0.1, 1, 10]}
    searches[name] = GridSearchCV(model, grid, cv=5).fit(X, y)
    print(f"{name:22} {searches[name].best_params_} {searches[name].best_score_:.4f}")
first, second = (search.best_estimator_ for search in searches.values())
difference = first.decision_function(X) - second.decision_function(X)
print(f"decision values differ by at most {np.abs(difference).max():.1e}")

across, up = np.meshgrid(np.linspace(0.5, 7.5, 250), np.linspace(0, 2.8, 150))
plt.figure(figsize=(6, 4), layout="constrained")
plt.contourf(across, up, second.predict(np.c_[across.ravel(), up.ravel()]).reshape(across.shape), alpha=0.25)
plt.scatter(*X.T, c=y, edgecolor="k", s=25)
plt.scatter(*X[second.support_].T, facecolor="none", edgecolor="k", s=110, label="support vectors")
plt.xlabel("length of a petal, cm")
plt.ylabel("width of a petal, cm")
plt.legend()
plt.show()
