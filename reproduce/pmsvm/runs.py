"""What the experiments of pmsvm-2025 compute: its released protocol, the sound methods, and times.

The protocol is read from the authors' public repository (``JinseongP/private_multiclass_svm``, commits c0f4d7b and
7a9bb28) and checked by what reproduces; none of its code is here.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.data.catalogue import resolve
from privsvm.data.readers import SPARSE_DENSITY, SPARSE_FEATURES
from privsvm.errors import PrivSVMError
from privsvm.methods.opera import OPERAClassifier
from privsvm.methods.opera_as_published import OPERAAsPublishedClassifier
from privsvm.methods.pmsvm_wp import PMSVMWPClassifier
from privsvm.methods.pmsvm_wp_as_published import PMSVMWPAsPublishedClassifier
from privsvm.numerics.rows import row_norms
from privsvm.pipeline.methods import estimator_class
from privsvm.privacy.accounting import gaussian_epsilon, sampled_gaussian_noise_multiplier
from privsvm.reproduction.context import ClassRows, Context, MissingError
from privsvm.solvers.noisy_gradient import GradientSteps, noisy_gradient_steps

__all__ = [
    "TorchLinear",
    "batches_per_epoch",
    "released_softmax",
    "run",
    "scaled",
    "split_rows",
    "true_epsilon",
]

# A norm that no gradient reaches: no clipping.
_NO_CLIPPING = 1e100


def scaled(X, scaling: str) -> np.ndarray:
    """Scale features by statistics of all rows, test rows included, as the released scripts do: not private.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows.
    scaling : {"none", "min_max", "z_score"}
        To [0, 1], or to mean 0 and variance 1.

    Returns
    -------
    ndarray (n, d)
    """
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
    if scaling == "none":
        return X
    return {"min_max": MinMaxScaler, "z_score": StandardScaler}[scaling]().fit_transform(X)


def split_rows(X: np.ndarray, codes: np.ndarray, test_size: float, seed: int) -> tuple[np.ndarray, ...]:
    """Split rows as the released scripts do: not stratified, seeded by the number of the run.

    Returns
    -------
    training rows, test rows, training codes, test codes
    """
    from sklearn.model_selection import train_test_split

    return tuple(train_test_split(X, codes, test_size=test_size, random_state=seed))


def _accuracy(scores: np.ndarray, codes: np.ndarray, labels: np.ndarray | None = None) -> float:
    """Share of rows whose largest score (n, k) is that of their class; `labels` (k,) are the classes of the columns."""
    answers = np.argmax(scores, axis=1)
    return float(np.mean((answers if labels is None else labels[answers]) == codes))


# Weight perturbation


def _liblinear(X, codes: np.ndarray, C: float, multi_class: str, seed: int):
    """Solve as the released code does; one-vs-rest takes scikit-learn's default loss, the squared hinge."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solver = LinearSVC(C=C, multi_class=multi_class, fit_intercept=False, max_iter=10_000, random_state=seed)
        return solver.fit(X, codes)


def true_epsilon(noise_scale: float, C: float, largest_norm: float, delta: float) -> float:
    """Epsilon of PMSVM-WP with given noise on rows of a given norm.

    Parameters
    ----------
    noise_scale : float
        Standard deviation of the noise on every weight.
    C : float
        Weight of one row's loss.
    largest_norm : float
        Largest norm of a row.
    delta : float
        Goes with epsilon.

    Returns
    -------
    float
        Exact for the Gaussian mechanism with sensitivity ``2 sqrt(2) C R`` (replace_one).
    """
    return gaussian_epsilon(noise_scale / (2.0 * math.sqrt(2.0) * C * largest_norm), delta)


class _Remembering:
    """Keeps the exact solutions of one job: many releases, one solve."""

    C: float

    def __init__(self, *, memory: dict[tuple[float, bytes, bytes], np.ndarray], **parameters: Any):
        super().__init__(**parameters)
        self.memory = memory

    def _solve_as_published(self, X, codes: np.ndarray, n_classes: int) -> np.ndarray:
        key = (self.C, hashlib.sha256(np.ascontiguousarray(X).data).digest(), codes.tobytes())
        if key not in self.memory:
            self.memory[key] = super()._solve_as_published(X, codes, n_classes)  # type: ignore[misc]
        return self.memory[key]


class _PMSVM(_Remembering, PMSVMWPAsPublishedClassifier):
    pass


class _OPERA(_Remembering, OPERAAsPublishedClassifier):
    pass


def _releases(
    parameters: Mapping[str, Any],
    context: Context,
    rows: ClassRows,
    X: np.ndarray,
    make: Callable[[], Any],
    purpose: Sequence[str | float],
    n_audited: int,
) -> dict[str, Any]:
    """Accuracies of one setting on all splits, for every epsilon; noise scales and witnesses of the first split."""
    found: dict[str, Any] = {"as released": [], "corrected": [], "noise_scale": [], "witness": []}

    def noise(split: int, epsilon: float, repeat: int) -> np.random.Generator:
        return context.stream(parameters["seed"], parameters["dataset"], *purpose, split, epsilon, repeat)

    for number, split in enumerate(parameters["splits"]):
        train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], split)
        model = make()
        path = model.release_path(
            train, y_train, parameters["epsilons"], 1, functools.partial(noise, split), audit=number < n_audited
        )
        scores = [path.scores(test, index)[0] for index in range(len(path.epsilons))]
        # As released: the number of the row of weights, although a class may be missing among the training rows.
        found["as released"].append([_accuracy(own, y_test) for own in scores])
        found["corrected"].append([_accuracy(own, y_test, model.classes_) for own in scores])
        if not number:
            found["noise_scale"] = [guarantee.noise_scale for guarantee in path.guarantees]
            found["witness"] = [
                guarantee.witness.epsilon if guarantee.witness else None for guarantee in path.guarantees
            ]
    return {**found, **{key: np.transpose(found[key]).tolist() for key in ("as released", "corrected")}}


def _weight(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """PMSVM-WP as released, for several settings of what the paper and its code disagree on."""
    rows = context.class_rows(*parameters["source"])
    X = scaled(rows.X, "min_max")
    largest_norm = float(np.linalg.norm(X, axis=1).max())
    memory: dict[tuple[float, bytes, bytes], np.ndarray] = {}

    def compute(C: float, factor: float, n_audited: int) -> dict[str, Any]:
        # Rows are not clipped here, so that data_norm does nothing but scale the noise.
        make = functools.partial(
            _PMSVM, memory=memory, C=C, data_norm=factor, delta=parameters["delta"],
            allow_unsound=True,
        )  # fmt: skip
        return _releases(parameters, context, rows, X, make, ["PMSVM-WP", C, factor], n_audited)

    variants = {}
    for name, variant in parameters["variants"].items():
        numbers = (variant["C"], variant["noise_factor"], int(name == parameters["audited"]))
        key = {"parameters": _without(parameters, "variants", "audited"), "numbers": numbers}
        variants[name] = context.part(key, functools.partial(compute, *numbers))
    first, C = variants[parameters["audited"]], parameters["variants"][parameters["audited"]]["C"]
    return {
        "variants": variants,
        "largest_norm": largest_norm,
        "true_epsilon": [
            true_epsilon(noise, C, largest_norm, parameters["delta"]) for noise in first["noise_scale"]
        ],
        "n_rows": int(X.shape[0]),
    }  # fmt: skip


def _without(parameters: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in parameters.items() if key not in names}


def _one_vs_rest(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """OPERA and PrivateSVM as released: one program, but for how epsilon becomes noise."""
    rows = context.class_rows(*parameters["source"])
    X = scaled(rows.X, "min_max")
    memory: dict[tuple[float, bytes, bytes], np.ndarray] = {}

    def compute(method: str, C: float, factor: float, n_audited: int) -> dict[str, Any]:
        make = functools.partial(
            _OPERA, memory=memory, C=C, constant=factor, delta=parameters["delta"],
            calibration="analytic" if method == "OPERA" else "classic", allow_unsound=True,
        )  # fmt: skip
        return _releases(parameters, context, rows, X, make, [method, C, factor], n_audited)

    variants = {}
    for method in parameters["methods"]:
        for name, variant in parameters["variants"].items():
            numbers = (method, variant["C"], variant["sensitivity_factor"], int(name == parameters["audited"]))
            key = {"parameters": _without(parameters, "variants", "methods", "audited"), "numbers": numbers}
            variants[f"{method}, {name}"] = context.part(key, functools.partial(compute, *numbers))
    return {"variants": variants, "n_rows": int(X.shape[0])}


# Gradient perturbation


def batches_per_epoch(n_rows: int, batch: int | None) -> int:
    """Count the steps of one epoch: one over the probability with which a step draws a row; None draws all rows."""
    return 1 if batch is None else math.ceil(n_rows / min(batch, n_rows))


def noise_multiplier(epsilon: float, delta: float, n_rows: int, batch: int | None, epochs: int) -> float:
    """Noise of Poisson-sampled steps over the clipping norm, for add_remove; 0 for an infinite epsilon."""
    if math.isinf(epsilon):
        return 0.0
    per_epoch = batches_per_epoch(n_rows, batch)
    return sampled_gaussian_noise_multiplier(epsilon, delta, 1.0 / per_epoch, epochs * per_epoch, "add_remove")


def released_softmax(
    X: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    training: Mapping[str, Any],
    multiplier: float,
    rng: np.random.Generator,
    record_every: int = 0,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Softmax regression by noisy clipped steps, as the released scripts train what they call a support vector machine.

    The mean of the cross-entropy over rows *and* classes, weights and offsets that start at random, and no
    regulariser: its gradient does not reach the private step there.

    Parameters
    ----------
    X : ndarray (n, d)
        Training rows.
    codes : ndarray of int (n,)
        Class codes.
    n_classes : int
        Number of classes c.
    training : mapping
        ``loss_weight`` of a row's cross-entropy (None: 1 / c), ``optimizer`` (``"sgd"`` or ``"adam"``),
        ``learning_rate``, ``epochs``, ``batch`` (None: all rows), ``clip``, ``schedule`` (``"constant"`` or
        ``"linear"``, which falls to 0 by epochs).
    multiplier : float
        Noise over the clipping norm; 0: neither noise nor clipping.
    rng : numpy.random.Generator
        First the start, then of every step the rows, then the noise.
    record_every : int, default=0
        Also return the model after every so many steps.

    Returns
    -------
    coef : ndarray (c, d + 1)
        Weights, and offsets in the last column.
    records : list of ndarray (c, d + 1)
    """
    n, d = X.shape
    rows = np.hstack([X, np.ones((n, 1))])
    norms = np.linalg.norm(rows, axis=1)
    per_epoch = batches_per_epoch(n, training["batch"])
    rate, expected = 1.0 / per_epoch, max(int(n / per_epoch), 1)
    weight = 1.0 / n_classes if training["loss_weight"] is None else training["loss_weight"]
    clip, noise = (training["clip"], multiplier * training["clip"]) if multiplier else (_NO_CLIPPING, 0.0)
    # The starting values of PyTorch's linear layer.
    coef = rng.uniform(-1.0, 1.0, (n_classes, d + 1)) / math.sqrt(d)
    adam = _Adam(coef.shape) if training["optimizer"] == "adam" else None
    records = []
    for step in range(training["epochs"] * per_epoch):
        drawn = np.flatnonzero(rng.random(n) < rate)
        gradient = _clipped_sum(coef, rows[drawn], norms[drawn], codes[drawn], weight, clip)
        if noise:
            gradient += noise * rng.standard_normal(coef.shape)
        gradient /= expected
        fallen = 1.0 - (step // per_epoch) / training["epochs"] if training["schedule"] == "linear" else 1.0
        coef -= training["learning_rate"] * fallen * (gradient if adam is None else adam.direction(gradient))
        if record_every and (step + 1) % record_every == 0:
            records.append(coef.copy())
    return coef, records


def _clipped_sum(
    coef: np.ndarray, rows: np.ndarray, norms: np.ndarray, codes: np.ndarray, weight: float, clip: float
) -> np.ndarray:
    """Sum over rows of the weighted cross-entropy's gradients (c, d + 1), each clipped as Opacus does."""
    scores = rows @ coef.T
    scores -= scores.max(axis=1, keepdims=True, initial=-np.inf)
    slopes = np.exp(scores)
    slopes /= slopes.sum(axis=1, keepdims=True)
    slopes[np.arange(codes.size), codes] -= 1.0
    slopes *= weight
    slopes *= np.minimum(1.0, clip / (np.linalg.norm(slopes, axis=1) * norms + 1e-6))[:, None]
    return slopes.T @ rows


class _Adam:
    """Moving averages of gradients and of their squares, with PyTorch's constants."""

    def __init__(self, shape: tuple[int, ...]):
        self.first, self.second, self.steps = np.zeros(shape), np.zeros(shape), 0

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Take in a gradient; return what the weights move against."""
        self.steps += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        mean = self.first / (1.0 - 0.9**self.steps)
        return mean / (np.sqrt(self.second / (1.0 - 0.999**self.steps)) + 1e-8)


def _engine_steps(
    X: np.ndarray, codes: np.ndarray, n_vectors: int, training: Mapping[str, Any], multiplier: float, rng
) -> np.ndarray:
    """Weights and offsets (c, d + 1) of the library's own steps, which start at zero."""
    per_epoch = batches_per_epoch(len(codes), training["batch"])
    steps = GradientSteps(
        loss=training["loss"],
        smoothing=training.get("smoothing", 0.1),
        loss_weight=1.0 / n_vectors if training["loss_weight"] is None else training["loss_weight"],
        margin_weight=training.get("margin_weight", 0.0),
        regulariser=training.get("regulariser", "outside"),
        max_grad_norm=training["clip"] if multiplier else _NO_CLIPPING,
        noise_scale=multiplier * training["clip"],
        sample_rate=1.0 / per_epoch,
        n_steps=training["epochs"] * per_epoch,
        expected_batch=len(codes) / per_epoch,
        optimizer=training["optimizer"],
        learning_rate=training["learning_rate"],
        schedule=training["schedule"],
    )
    result = noisy_gradient_steps(X, codes, n_vectors, steps, rng)
    return np.column_stack([result.coef, result.intercept])


def _train(
    X: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    training: Mapping[str, Any],
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Weights and offsets (c, d + 1) of one private training."""
    plan = (len(codes), training["batch"], training["epochs"])
    if training["loss"] == "one_vs_rest_hinge":
        # Every class alone, with epsilon / c and, as the baselines of the released scripts, the whole delta.
        multiplier = noise_multiplier(epsilon / n_classes, delta, *plan)
        problems = ((codes == code).astype(np.int64) for code in range(n_classes))
        return np.concatenate([_engine_steps(X, own, 1, training, multiplier, rng) for own in problems])
    multiplier = noise_multiplier(epsilon, delta, *plan)
    if training["start"] == "random":
        return released_softmax(X, codes, n_classes, training, multiplier, rng)[0]
    return _engine_steps(X, codes, n_classes, training, multiplier, rng)


def _scores(rows: np.ndarray, coef: np.ndarray) -> np.ndarray:
    return rows @ coef[:, :-1].T + coef[:, -1]


def _gradient(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Models of gradient perturbation: one split, several draws of noise, as released."""
    rows = context.class_rows(*parameters["source"])
    n_classes = int(rows.codes.max()) + 1

    def compute(name: str, training: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
        X = scaled(rows.X, training["scaling"])
        train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], parameters["split"])
        found = []
        for repeat in range(parameters["runs"]):
            stream = context.stream(
                parameters["seed"], parameters["dataset"], name, parameters["split"], epsilon, repeat
            )
            coef = _train(train, y_train, n_classes, training, epsilon, parameters["delta"], stream)
            found.append([_accuracy(_scores(test, coef), y_test), _accuracy(_scores(train, coef), y_train)])
        accuracy, training_accuracy = np.transpose(found).tolist()
        return {"accuracy": accuracy, "training accuracy": training_accuracy, "n_test": len(y_test)}

    common = {key: parameters[key] for key in ("dataset", "source", "test_size", "split", "runs", "seed", "delta")}
    epsilons = [math.inf if epsilon is None else epsilon for epsilon in parameters["epsilons"]]
    variants: dict[str, list[dict[str, Any]]] = {}
    for name, training in parameters["variants"].items():
        variants[name] = [
            context.part(
                {**common, "name": name, "training": training, "epsilon": str(epsilon)},
                functools.partial(compute, name, training, epsilon),
            )
            for epsilon in epsilons
        ]
    return {"variants": variants}


def _curves(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Loss, training and test accuracy after each epoch, means of some runs."""
    rows = context.class_rows(*parameters["source"])
    n_classes = int(rows.codes.max()) + 1
    variants: dict[str, list[dict[str, Any]]] = {}
    for name, training in parameters["variants"].items():
        X = scaled(rows.X, training["scaling"])
        train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], parameters["split"])
        per_epoch = batches_per_epoch(len(y_train), training["batch"])
        variants[name] = []
        for epsilon in parameters["epsilons"]:
            multiplier = noise_multiplier(
                epsilon, parameters["delta"], len(y_train), training["batch"], training["epochs"]
            )
            runs = []
            for repeat in range(parameters["runs"]):
                stream = context.stream(
                    parameters["seed"], parameters["dataset"], name, parameters["split"], epsilon, repeat
                )
                records = released_softmax(train, y_train, n_classes, training, multiplier, stream, per_epoch)[1]
                runs.append(
                    [
                        (
                            _cross_entropy(_scores(train, coef), y_train) / n_classes,
                            _accuracy(_scores(train, coef), y_train),
                            _accuracy(_scores(test, coef), y_test),
                        )
                        for coef in records
                    ]
                )
            loss, train_accuracy, test_accuracy = np.mean(runs, axis=0).T.tolist()
            steps = [per_epoch * (epoch + 1) for epoch in range(training["epochs"])]
            variants[name].append(
                {"steps": steps, "loss": loss, "training accuracy": train_accuracy, "accuracy": test_accuracy}
            )
    return {"variants": variants}


def _cross_entropy(scores: np.ndarray, codes: np.ndarray) -> float:
    """Mean cross-entropy of scores (n, c)."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(codes.size), codes]))


def _not_private(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Accuracies without noise: what the paper's gaps are measured from."""
    rows = context.class_rows(*parameters["source"])
    X = scaled(rows.X, "min_max")
    found: dict[str, list[float]] = {}
    for method, setting in parameters["solvers"].items():
        accuracies = []
        for split in parameters["splits"]:
            train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], split)
            solver = _liblinear(train, y_train, setting["C"], setting["multi_class"], split)
            accuracies.append(float(np.mean(solver.predict(test) == y_test)))
        found[method] = accuracies
    gradient = _gradient({**parameters, "epsilons": [None]}, context)["variants"]
    return {"accuracies": found | {method: own[0]["accuracy"] for method, own in gradient.items()}}


# Sound methods


def _public_scaling(X, dataset: str, scaling: Sequence[str]):
    """Scale rows without looking at other rows; sparse rows stay sparse unless zero is moved.

    ``bounds``: features from the catalogue's public bounds to [-1, 1], values beyond them cut. ``unit_rows``: rows to
    norm 1.
    """
    for step in scaling:
        if step == "bounds":
            bounds = resolve(dataset).bounds
            if bounds is None:
                raise ValueError(f"dataset {dataset}: the catalogue has no public bounds")
            low, high = np.asarray(bounds.lower, dtype=float), np.asarray(bounds.upper, dtype=float)
            X = np.clip(2.0 * (scaled(X, "none") - low) / (high - low) - 1.0, -1.0, 1.0)
        elif step == "unit_rows":
            factors = 1.0 / np.maximum(row_norms(X), 1e-12)
            X = (scipy.sparse.diags_array(factors) @ X).tocsr() if scipy.sparse.issparse(X) else X * factors[:, None]
        else:
            raise ValueError(f"scaling {step!r}: must be bounds or unit_rows")
    return X


def _estimator(name: str) -> Callable[..., Any]:
    """Find the class of a method by its file, as params.yaml names it."""
    try:
        return estimator_class(name)
    except PrivSVMError:
        raise MissingError("not available", f"{name} is not in this version") from None


def _sound(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Run a method of the library, with its proof, on every split."""
    make = _estimator(parameters["estimator"])
    rows = context.class_rows(*parameters["source"])
    X = _public_scaling(rows.X, parameters["source"][0], parameters["scaling"])
    accepted = inspect.signature(make).parameters

    def compute(split: int, repeats: int) -> dict[str, Any]:
        train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], split)
        # The class set and the number of training rows are public.
        known = {"delta": parameters["delta"], "neighbours": parameters["neighbours"], "n_rows": len(y_train)}
        model = make(
            classes=list(range(len(rows.labels))),
            **{key: value for key, value in known.items() if key in accepted},
            **parameters["settings"],
        )
        path = model.release_path(
            train,
            y_train,
            parameters["epsilons"],
            repeats,
            lambda epsilon, repeat: context.stream(
                parameters["seed"], parameters["dataset"], parameters["method"], split, epsilon, repeat
            ),
        )
        accuracies, proved = [], []
        for index, guarantee in enumerate(path.guarantees):
            answers = path.codes(path.scores(test, index))
            accuracies.append(np.mean(answers == y_test, axis=1).tolist())
            proved.append([guarantee.status, guarantee.neighbours, guarantee.epsilon_proved, guarantee.delta])
        return {"accuracies": accuracies, "proved": proved}

    common = _without(parameters, "splits", "repeats", "paper_split", "paper_runs")

    def part(split: int, repeats: int) -> dict[str, Any]:
        return context.part({**common, "split": split, "repeats": repeats}, functools.partial(compute, split, repeats))

    found = [part(split, parameters["repeats"]) for split in parameters["splits"]]
    return {
        # One list of splits times repeats for each epsilon.
        "accuracies": [
            [value for own in found for value in own["accuracies"][index]]
            for index in range(len(parameters["epsilons"]))
        ],
        # The paper's own split, where only the noise varies.
        "paper split": part(parameters["paper_split"], parameters["paper_runs"])["accuracies"],
        "proved": found[0]["proved"],
    }


# Times


def _fastest(candidates: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Smallest processor time of each candidate in seconds, taking turns; a first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(repeats + 1):
        for name, candidate in candidates.items():
            started = time.process_time()
            candidate()
            if number:
                times[name].append(time.process_time() - started)
    return {name: min(own) for name, own in times.items()}


class TorchLinear:
    """The released training step: a linear layer under Opacus.

    Parameters
    ----------
    X : ndarray (n, d)
        Training rows.
    codes : ndarray of int (n,)
        Class codes.
    n_classes : int
        Number of outputs; with 1, codes are 0 and 1.
    batch : int
        Expected number of drawn rows.

    Raises
    ------
    ImportError
        Where Opacus or PyTorch is not installed.
    """

    def __init__(self, X: np.ndarray, codes: np.ndarray, n_classes: int, batch: int):
        import torch
        from opacus import PrivacyEngine

        torch.set_num_threads(1)
        data = torch.utils.data.TensorDataset(
            torch.tensor(X, dtype=torch.float32), torch.tensor(codes, dtype=torch.long)
        )
        loader = torch.utils.data.DataLoader(data, batch_size=min(batch, len(codes)))
        layer = torch.nn.Linear(X.shape[1], n_classes)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model, self.optimizer, self.loader = PrivacyEngine().make_private(
                module=layer, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0
            )
        self.n_classes, self.torch = n_classes, torch

    def epoch(self) -> int:
        """Make the steps of one epoch; returns how many."""
        steps = 0
        for rows, codes in self.loader:
            self.optimizer.zero_grad()
            scores = self.model(rows)
            if self.n_classes == 1:
                margin = 1.0 - (2.0 * codes.to(scores.dtype) - 1.0) * scores[:, 0]
                loss = (0.5 * (margin + self.torch.sqrt(margin**2 + 0.01))).mean()
            else:
                loss = self.torch.nn.functional.cross_entropy(scores, codes) / self.n_classes
            with warnings.catch_warnings():
                # Of hooks that Opacus sets on a first layer.
                warnings.simplefilter("ignore", UserWarning)
                loss.backward()
            self.optimizer.step()
            steps += 1
        return steps


def _times(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Seconds of a fit, and milliseconds of a step, beside the libraries that the paper used."""
    rows = context.class_rows(*parameters["source"])
    X, split, batch = scaled(rows.X, "min_max"), parameters["split"], parameters["batch"]
    train, _, y_train, _ = split_rows(X, rows.codes, parameters["test_size"], split)
    if X.shape[1] >= SPARSE_FEATURES and np.count_nonzero(X) < SPARSE_DENSITY * X.size:
        # Both sides then work on what is not zero.
        train = scipy.sparse.csr_array(train)
    n_classes, C, repeats = int(rows.codes.max()) + 1, parameters["C"], parameters["repeats"]
    classes = list(range(n_classes))

    def fit(estimator: Callable[..., Any]) -> None:
        estimator(epsilon=1.0, C=C, classes=classes, random_state=0).fit(train, y_train)

    candidates: dict[str, Callable[[], object]] = {
        "PMSVM-WP": lambda: fit(PMSVMWPClassifier),
        "PMSVM-WP, LIBLINEAR": lambda: _liblinear(train, y_train, C, "crammer_singer", split),
        "OPERA, LIBLINEAR": lambda: _liblinear(train, y_train, C, "ovr", split),
        "OPERA": lambda: fit(OPERAClassifier),
    }
    missing = {}
    seconds = _fastest(candidates, repeats)

    gradient_rows = scaled(rows.X, parameters["scaling"])
    train, _, y_train, _ = split_rows(gradient_rows, rows.codes, parameters["test_size"], split)
    per_epoch = batches_per_epoch(len(y_train), batch)
    # So many steps that what precedes them hardly counts.
    epochs = max(parameters["epochs"], math.ceil(parameters["least_steps"] / per_epoch))
    training = {
        "loss_weight": None, "clip": 1.0, "batch": batch, "optimizer": "sgd", "learning_rate": 0.1,
        "schedule": "constant", "epochs": epochs,
    }  # fmt: skip
    n_steps = epochs * per_epoch
    stream = context.stream(parameters["seed"], parameters["dataset"], "time")

    def one_vs_rest() -> None:
        for code in classes:
            own = {**training, "loss": "one_vs_rest_hinge"}
            _engine_steps(train, (y_train == code).astype(np.int64), 1, own, 1.0, stream)

    steps: dict[str, Callable[[], object]] = {
        "PMSVM-GP": lambda: _engine_steps(train, y_train, n_classes, {**training, "loss": "hinge"}, 1.0, stream),
        "GRPUA": one_vs_rest,
    }
    try:
        together = TorchLinear(train, y_train, n_classes, batch)
        apart = [TorchLinear(train, (y_train == code).astype(np.int64), 1, batch) for code in classes]
    except ImportError as error:
        missing["PMSVM-GP, Opacus"] = missing["GRPUA, Opacus"] = f"not installed: {error}"
    else:
        steps["PMSVM-GP, Opacus"] = lambda: [together.epoch() for _ in range(epochs)]
        steps["GRPUA, Opacus"] = lambda: [own.epoch() for _ in range(epochs) for own in apart]
    milliseconds = {name: 1e3 * own / n_steps for name, own in _fastest(steps, repeats).items()}
    return {
        "fit_seconds": seconds, "ms_per_iteration": milliseconds, "absent": missing, "n_classes": n_classes,
        "n_rows": len(y_train), "n_features": int(X.shape[1]),
    }  # fmt: skip


_KINDS: Mapping[str, Callable[[Mapping[str, Any], Context], dict[str, Any]]] = {
    "weight": _weight,
    "one_vs_rest": _one_vs_rest,
    "gradient": _gradient,
    "curves": _curves,
    "not_private": _not_private,
    "sound": _sound,
    "times": _times,
}


def run(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Run one job.

    Parameters
    ----------
    parameters : mapping
        ``kind`` says what, and what else there is.
    context : Context
        Data, random streams, partial results.

    Returns
    -------
    dict
        What JSON can hold.
    """
    return _KINDS[parameters["kind"]](parameters, context)
