"""The recommended classifier and its guarantee.

Declare two public things before the fit: the classes, and a range that every feature has by its nature. Otherwise they
would be read from the rows, and nothing would be proved.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from privsvm import PrivateLinearClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
model = PrivateLinearClassifier(epsilon=2.0, classes=range(10), bounds=(0, 16), random_state=0)
model.fit(X_train, y_train)

# The guarantee belongs to the model. It can be judged again at any time, from the record alone. Here it says seeded:
# the seed repeats the picture, and anybody who has it can subtract the noise. Without random_state it says proved.
guarantee = model.guarantee_
print(f"status     {guarantee.status}")
print(f"epsilon    {guarantee.epsilon_with_system_noise:.4g} at delta {guarantee.delta:g}, {guarantee.neighbours}")
print(f"mechanism  {guarantee.mechanism}")
print(f"recipe     {model.recipe_}")
print(f"verified   epsilon {guarantee.verify().epsilon:.4g}")
print(f"accuracy   {model.score(X_test, y_test):.3f} on test rows")

# Ten scores of the first test row: the model is linear, and noise is already in its weights.
plt.figure(figsize=(6, 3))
plt.bar(model.classes_, model.decision_function(X_test[:1])[0], color="#1852cc")
plt.xticks(range(10))
plt.xlabel(f"class (the row shows a {y_test[0]})")
plt.ylabel("score")
plt.tight_layout()
plt.show()
