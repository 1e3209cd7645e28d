"""A private pipeline, and a model to hand over.

A schema declares the public facts about a table, so that columns become features without reading other rows.
`make_private_pipeline` keeps the proof, and `save` writes files that you may publish. From the command line,
`privsvm release` does all of this ([guide](../docs/guide.md)).
"""

import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import privsvm
from privsvm import PrivateLinearClassifier, PublicSchema, make_private_pipeline

tumours = load_breast_cancer(as_frame=True)
table = tumours.data[["mean radius", "mean texture", "mean concavity"]]
labels = tumours.target_names[tumours.target]

# Ranges that an instrument or a textbook states; the rows are cut to them.
schema = PublicSchema({
    "name": "tumours", "label": "kind", "classes": ["malignant", "benign"],
    "columns": {
        "mean radius": {"bounds": [0, 30], "fill": 14}, "mean texture": {"bounds": [0, 40], "fill": 20},
        "mean concavity": {"bounds": [0, 0.5], "fill": "middle"},
    },
})  # fmt: skip
model = PrivateLinearClassifier(epsilon=1.0, classes=["malignant", "benign"])
pipeline = make_private_pipeline(schema, model).fit(table, labels)
print(f"with a schema: {pipeline.guarantee_.status}, accuracy {pipeline.score(table, labels):.2f} on its own rows")

# A StandardScaler is fitted to private rows, and takes the proof away. Without your consent nothing is trained.
try:
    make_private_pipeline(StandardScaler(), PrivateLinearClassifier(classes=["malignant", "benign"])).fit(table, labels)
except ValueError as refused:
    print("with a StandardScaler:", str(refused).split(":", 2)[2].strip())

with tempfile.TemporaryDirectory() as folder:
    privsvm.save(pipeline, folder)
    print("files:", ", ".join(sorted(path.name for path in Path(folder).iterdir())))
    loaded = privsvm.load(folder)
    print("loaded:", loaded.guarantee_.status, "at epsilon", loaded.guarantee_.epsilon_requested)
    print("first three rows:", ", ".join(loaded.predict(table[:3])))
