"""Read a benchmark's results into pandas.

`make run` writes one row per curve and epsilon to `reports/curves.csv`. The repository has the rows of one dataset,
with fewer columns, for README's picture. Group by `status` to keep proofs and claims apart; the noise of a benchmark
has a seed, so proved methods say *seeded* here.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

repository = next(folder for folder in (Path.cwd(), *Path.cwd().parents) if (folder / "params.yaml").exists())
curves = pd.read_csv(repository / "docs" / "images" / "curves.csv")
print(curves.groupby("status")["method"].nunique().rename("methods"), end="\n\n")

at_one = curves[(curves["epsilon"] == 1) & (curves["status"] == "seeded")]
table = at_one.pivot(index="method", columns="dataset", values="accuracy")
dataset = table.columns[0]
table = table.sort_values(dataset, ascending=False)
print(table.to_string(float_format="{:.3f}".format, na_rep="-"))

table[dataset].sort_values().plot.barh(color="#1852cc", figsize=(6, 4))
plt.xlim(0.5, 1)
plt.xlabel(f"accuracy of proved methods on {dataset} at epsilon 1")
plt.ylabel("")
plt.tight_layout()
plt.show()
