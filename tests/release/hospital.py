"""A made-up hospital table: identifiers, dates, sex, wards, 3 % positives, five rows a person."""

import csv
from pathlib import Path

import numpy as np

SCHEMA = Path(__file__).with_name("hospital.yaml").read_text(encoding="utf-8")


def write_table(path, persons, seed):
    """Write the table; returns the labels."""
    rng = np.random.default_rng(seed)
    with open(path, "w", newline="") as handle:
        table = csv.writer(handle)
        table.writerow(["patient", "visit", "sex", "ward", "age", "pressure", "smoker", "note", "died"])
        labels = []
        for person in range(persons):
            age, sex, smoker = int(rng.integers(18, 100)), rng.choice(["f", "m"]), rng.choice(["yes", "no"])
            for visit in range(5):
                ward, pressure = rng.choice(list("abc"), p=[0.5, 0.4, 0.1]), float(np.round(rng.normal(130, 20), 1))
                risk = (age - 60) / 20 + (pressure - 130) / 30 + 1.5 * (ward == "c") + 0.7 * (smoker == "yes")
                died = "yes" if risk + 0.7 * rng.normal() > 3.65 else "no"
                day = f"{rng.integers(1, 28):02d}.{rng.integers(1, 13):02d}.{rng.integers(2010, 2025)}"
                shown = "" if rng.random() < 0.05 else pressure
                table.writerow([f"P{person:05d}", day, sex, ward, age, shown, smoker, f"n{visit}, x", died])
                labels.append(died)
    return np.array(labels)
