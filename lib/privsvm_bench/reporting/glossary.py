"""The project's vocabulary: the report's glossary and docs/glossary.md are made from it."""

from __future__ import annotations

from typing import NamedTuple

from privsvm_bench.metrics import METRICS


class Term(NamedTuple):
    """A word and its meaning here."""

    name: str  # As written in the text.
    definition: str  # One to three sentences. Names of parameters stand between backticks.
    in_report: bool = False  # Whether the report shows it; docs/glossary.md has all.


GLOSSARY: dict[str, tuple[Term, ...]] = {
    "Privacy": (
        Term(
            "Epsilon (ε)",
            "How much more likely any outcome of training can become when one person's row changes: by a factor of at "
            "most e^ε. At 0.1 that is hardly more likely (about 1.1 times), at 1 up to 2.7 times, at 8 up to 3,000 "
            "times. Smaller is more private.",
            True,
        ),
        Term(
            "Delta (δ)",
            "A small slack: probabilities may exceed the factor e^ε by at most δ in total. It should be far below one "
            "divided by the number of rows. An epsilon means nothing without its delta.",
            True,
        ),
        Term(
            "Neighbours",
            "Two datasets that differ in one row. `replace_one`: one row is exchanged for any other, and the number "
            "of rows is public. `add_remove`: one row is added or removed. The same noise gives a different epsilon "
            "under each, so compare only like with like.",
            True,
        ),
        Term(
            "Sensitivity",
            "The furthest that a computed value, such as the weights, can move between two neighbouring datasets. "
            "Noise is scaled to it. If the sensitivity is understated, so is epsilon.",
            True,
        ),
        Term(
            "Noise scale, noise multiplier",
            "The noise scale is the spread of the noise that is added. The noise multiplier is that spread divided by "
            "the sensitivity, or by the clipping norm.",
            True,
        ),
        Term("Mechanism", "The random step that makes an output private, such as adding Gaussian noise."),
        Term(
            "Sample rate",
            "The probability with which each row takes part in one step of noisy training (Poisson sampling).",
        ),
        Term(
            "Clipping",
            "Shortening any row or gradient that is longer than a fixed bound to that bound, so that no single row "
            "has more influence. `data_norm` bounds rows, `max_grad_norm` bounds gradients.",
            True,
        ),
        Term(
            "Accountant",
            "The calculation that adds up what every noisy step reveals and returns one epsilon and delta.",
            True,
        ),
        Term(
            "Composition",
            "How the epsilons of several releases add up. `naive`: each binary problem gets its own share of the "
            "budget. `joint`: all are released at once with noise for their joint sensitivity.",
        ),
        Term("Guarantee", "The record that comes with every model: its status, epsilon, delta and assumptions."),
        Term(
            "Proved",
            "A theorem covers exactly the steps of the code, the code enforces the theorem's assumptions, and an "
            "accountant computed epsilon and delta.",
            True,
        ),
        Term(
            "Seeded",
            "As proved, but the noise of this model was drawn from a seed, so that a benchmark can be repeated. "
            "Anyone with the seed can subtract the noise, so nothing is proved of this model: its epsilon would hold "
            "for a release with system noise.",
            True,
        ),
        Term(
            "System noise",
            "Noise drawn from the operating system's entropy, which nobody can draw again. Every release has it.",
            True,
        ),
        Term(
            "Gate, fact",
            "The gate is the only code that grants the status proved or seeded. It judges facts: declared words for "
            "the origin of the rows, their split, their scaling, the classes and the number of rows. An unstated fact "
            "counts as broken.",
        ),
        Term(
            "Event",
            "The steps of a release that accounting needs: mechanisms, noise and sampling. Epsilon follows from it.",
        ),
        Term(
            "Claimed",
            "An epsilon is stated, and nothing proves it. The proved epsilon of such a method is infinite: it promises "
            "no protection, however much noise it adds.",
            True,
        ),
        Term("None", "No formal guarantee is stated.", True),
        Term("Audit", "An attempt to refute a stated epsilon by measuring outputs on neighbouring datasets."),
        Term(
            "Witness",
            "A concrete pair of neighbouring datasets on which the outputs differ more than a stated epsilon allows. "
            "It refutes every epsilon below its own and never proves one. Finding none is no evidence of privacy.",
            True,
        ),
        Term(
            "Public",
            "Known without the private rows, such as a sensor's range or the list of possible classes. A proof may use "
            "only public values and values released with noise.",
        ),
        Term(
            "Privacy-utility curve",
            "Accuracy, or another metric, against epsilon, usually on held-out rows. It shows what privacy costs, if "
            "the epsilon is proved.",
            True,
        ),
    ),
    "Data": (
        Term("Dataset", "A named table of rows with features and a class label."),
        Term("Split", "One division of a dataset into training rows and test rows."),
        Term("Repeat", "One draw of the noise. Every split and epsilon has `privacy.repeats` of them."),
        Term("Bounds", "Public lower and upper limits of the features. `scaling: bounds` scales features by them."),
        Term(
            "Condensing",
            "Replacing about three training rows with one: their mean (`ci`, CI-SVM), or a centre of fuzzy c-means "
            "(`fcm`, FCM-SVM). No noise is added, and no guarantee is stated.",
            True,
        ),
    ),
    "Support vector machines": (
        Term("C", "The weight of one training row's loss against the regulariser."),
        Term(
            "Kernel, gamma",
            "The kernel is the SVM's measure of similarity between two rows: `linear`, or `rbf`, the Gaussian kernel, "
            "with width parameter gamma. Compiled functions are not called kernels here.",
        ),
        Term("Support vector", "A training row with a non-zero coefficient in the model."),
        Term(
            "Duality gap",
            "An upper bound on how far the objective is from its optimum. Solvers that stop at a certified gap report "
            "one that the dual solution proves.",
        ),
        Term(
            "One-vs-rest, one-vs-one", "Multi-class training by one binary problem per class, or per pair of classes."
        ),
        Term("Release", "A model with its noise added, as it may be published."),
        Term("Release path", "The releases for a whole grid of epsilons, made from one solution where possible."),
    ),
    "Several parties": (
        Term("Entity", "A party with some columns of the rows that all parties share (PPSVM)."),
        Term("Block", "The kernel of an entity's own columns with its secret random matrix. The entity publishes it."),
    ),
    "Workflow": (
        Term("Experiment", "One benchmark: all settings of `params.yaml`, under a name."),
        Term("Rule, job", "A rule makes one kind of file. A job runs the rule once, for one dataset or method."),
        Term("Stage", "A group of rules that DVC runs and versions together, such as `train`."),
        Term("Closure", "A source file, all that it imports, and what those files import in turn."),
        Term(
            "Record",
            "The JSON file that describes a model or a result. Only `privsvm_bench.records` reads and writes it.",
        ),
        Term(
            "Verdict",
            "How a printed number compares with our runs: `agrees`, `unlikely`, `refuted`, `cannot discriminate`, "
            "`no data` ...",
        ),
    ),
}


def glossary() -> list[Term]:
    """Terms of the report's glossary: those that its readers need, and all metrics."""
    terms = [term for section in GLOSSARY.values() for term in section if term.in_report]
    return [*terms, *(Term(metric.title, metric.definition, True) for metric in METRICS.values())]


def glossary_page() -> str:
    """Text of docs/glossary.md: every term, and all metrics."""
    metrics = (Term(metric.title, f"In files: `{metric.name}`. {metric.definition}") for metric in METRICS.values())
    sections = GLOSSARY | {"Metrics": tuple(metrics)}
    lines = ["# Glossary", "", "Generated by `make docs` from `lib/privsvm_bench/reporting/glossary.py`.", ""]
    for title, terms in sections.items():
        lines += [f"## {title}", "", *(f"- **{term.name}.** {term.definition}" for term in terms), ""]
    return "\n".join(lines)
