"""Draw the idea of each method from the method itself: docs/images/methods/<method>.svg.

On the left what the method does, on the right what it releases: decision boundaries of several releases. Run
`python docs/draw_methods.py` to renew the pictures; a test compares them.
"""

import functools
import inspect
import math
import sys
import warnings
from pathlib import Path

import numpy as np
from contourpy import contour_generator
from plots import BLUE, BROWN, GREY, TEAL, Panel, figure

from privsvm.pipeline.methods import estimator_class, implementations

FOLDER = Path(__file__).resolve().parent / "images" / "methods"
PAGE = FOLDER.parents[1] / "ideas.md"
BOX = ((-1.1, 1.1), (-1.1, 1.1))
RELEASES, EPSILONS = 8, (1.0, 8.0)
# Chosen so that the pictures show something: the defaults suit tables with more columns.
SETTINGS = {
    "landmark_dual": {"gamma": 2.0, "n_landmarks": 12}, "landmark_dual_given": {"gamma": 2.0},
    "private_svm_rbf": {"gamma": 2.0, "n_components": 20},
    "private_svm_rbf_laplace": {"gamma": 2.0, "n_components": 20},
    "dpsvmdvp": {"gamma": 2.0}, "ci_svm": {"gamma": 2.0}, "fcm_svm": {"gamma": 2.0},
    "rsvm": {"gamma": 2.0, "kernel": "gaussian"}, "dp_frank_wolfe": {"radius": 3.0},
}  # fmt: skip


@functools.cache
def rows():
    """Two clouds of rows in the plane, one a little bent."""
    rng = np.random.default_rng(3)
    first = rng.normal((-0.42, -0.15), (0.24, 0.3), (60, 2))
    second = rng.normal((0.42, 0.15), (0.24, 0.3), (60, 2))
    second[:, 1] += 0.8 * (second[:, 0] - 0.4) ** 2
    return np.clip(np.vstack([first, second]), -1, 1), np.repeat([0, 1], 60)


def fitted(name, X=None, y=None, **changes):
    """Fit a method to rows, with whatever it needs of a declaration."""
    if X is None:
        X, y = rows()
    method = estimator_class(name)
    chosen = {
        "classes": sorted({int(code) for code in y}), "n_rows": len(y), "allow_unsound": True, "random_state": 0,
        **SETTINGS.get(name, {}), **changes,
    }  # fmt: skip
    return method(**{key: value for key, value in chosen.items() if key in method.declared}).fit(X, y)


def cloud(panel, X=None, y=None, faint=False):
    """Mark rows by class: dots and squares."""
    if X is None:
        X, y = rows()
    looks = [(GREY, "circle"), (GREY, "square")] if faint else [(BLUE, "circle"), (BROWN, "square"), (TEAL, "cross")]
    for code, (colour, shape) in zip(np.unique(y), looks, strict=False):
        panel.marks(*X[y == code].T, colour, shape, 1.8 if faint else 2.2)


def boundary(panel, model, **look):
    """Draw where the decision changes; of several classes, the borders of each."""
    ends = np.linspace(-1.1, 1.1, 45)
    across, up = np.meshgrid(ends, ends)
    scores = np.asarray(model.decision_function(np.c_[across.ravel(), up.ravel()]))
    if scores.ndim == 2:
        best = np.sort(scores, axis=1)
        # Positive where a class wins, for all classes but the last, which lies between the others.
        margins = [scores[:, c] - np.delete(scores, c, axis=1).max(axis=1) for c in range(best.shape[1] - 1)]
    else:
        margins = [scores]
    for margin in margins:
        for line in contour_generator(ends, ends, margin.reshape(across.shape)).lines(look.get("level", 0.0)):
            # So many points, evenly along the line: as many on every machine.
            length = np.r_[0, np.cumsum(np.hypot(*np.diff(line, axis=0).T))]
            if length[-1] > 0.1:
                even = np.linspace(0, length[-1], 13)
                points = np.c_[np.interp(even, length, line[:, 0]), np.interp(even, length, line[:, 1])]
                panel.line(*points.T, **{key: value for key, value in look.items() if key != "level"})
                look["name"] = ""


def releases(name):
    """Boundaries of several releases at two epsilons."""
    panel = Panel(f"{RELEASES} releases: what others get to see", *BOX, ticks=False)
    cloud(panel, faint=True)
    for epsilon, colour, dashes in zip(EPSILONS, (BROWN, BLUE), ("4 3", ""), strict=True):
        for seed in range(RELEASES):
            name_once = f"epsilon {epsilon:g}" if seed == 0 else ""
            boundary(
                panel, fitted(name, epsilon=epsilon, random_state=seed), colour=colour, dashes=dashes, width=1.1,
                name=name_once,
            )  # fmt: skip
    return panel


def noise_panel(names):
    """Densities of the noise on one released number, over the sensitivity, at epsilon 1."""
    panel = Panel(
        "Noise on each weight, epsilon 1", (-25, 25), (0, 0.36), "noise, over the sensitivity (L2, L1)", "density"
    )
    x = np.linspace(-25, 25, 101)
    for name, colour, dashes in zip(names, (BLUE, BROWN), ("", "6 3"), strict=False):
        multiplier = fitted(name, epsilon=1.0).guarantee_.event.noise_multiplier
        if "laplace" in name:
            panel.line(x, np.exp(-np.abs(x) / multiplier) / (2 * multiplier), colour, dashes, 2, "Laplace")
        else:
            density = np.exp(-0.5 * (x / multiplier) ** 2) / (multiplier * math.sqrt(2 * math.pi))
            panel.line(x, density, colour, dashes, 2, "Gaussian")
    return panel


def clipped_panel():
    """Rows that are too long are drawn to the edge of a ball."""
    panel = Panel("Rows are cut to length 1", (-2, 2), (-2, 2))
    X, y = rows()
    X = 1.7 * X
    length = np.maximum(1, np.hypot(*X.T))
    angle = np.linspace(0, 2 * np.pi, 61)
    panel.line(np.cos(angle), np.sin(angle), GREY, "3 3", name="data_norm = 1")
    for row, long in zip(X, length, strict=True):
        if long > 1:
            panel.line(*np.c_[row, row / long], GREY, width=0.7)
    cloud(panel, X / length[:, None], y)
    return panel


def moves_panel(proved, published):
    """How far one replaced row moves the solution, against its length."""
    X, y = rows()
    lengths = np.array([0.0, 1, 2, 4, 6, 8, 10])
    panel = Panel("How far one row moves the weights", (0, 10), (0, 1.35), "length of the row", "over the largest move")
    moved = {}
    for name in (published, proved):
        far = []
        for length in lengths:
            changed = X.copy()
            changed[0] = np.array([length, 0.0])
            pair = [fitted(name, rows_, y, epsilon=1e6).coef_ for rows_ in (X, changed)]
            far.append(np.linalg.norm(pair[0] - pair[1]))
        moved[name] = np.array(far)
    most = max(values.max() for values in moved.values())
    panel.line(lengths, moved[published] / most, BROWN, "6 3", 2, "as published")
    panel.line(lengths, moved[proved] / most, BLUE, "", 2, "proved variant")
    return panel


def classes_panel():
    """Noise on a weight of one-vs-rest SVMs against the number of classes."""
    counts = range(2, 11)
    panel = Panel("Noise on each weight, epsilon 1", (2, 10), (0, 120), "number of classes", "noise, over C R")
    rng = np.random.default_rng(0)
    for name, changes, words, colour, dashes in (
        ("opera", {"composition": "naive"}, "one budget for each", BROWN, "6 3"),
        ("opera", {"composition": "joint"}, "jointly (opera)", TEAL, "2 3"),
        ("ovr_joint_gaussian", {}, "less the mean (ovr_joint)", BLUE, ""),
    ):
        scales = []
        for count in counts:
            y = np.repeat(np.arange(count), 6)
            X = rng.normal(size=(y.size, 2)) / 4
            scales.append(fitted(name, X, y, epsilon=1.0, C=1.0, **changes).guarantee_.noise_scale)
        panel.line(counts, scales, colour, dashes, 2, words)
    return panel


def clipped_gradients_panel(name):
    """Directions in which single rows pull, cut to one length, and the noise of a step."""
    model = fitted(name, epsilon=1.0)
    X, y = rows()
    panel = Panel(
        "The first step: cut, summed, plus noise",
        (-150, 150),
        (-150, 150),
        "sum over rows, first weight",
        "second weight",
    )
    signs = 2.0 * y - 1
    pulls = signs[:, None] * X
    pulls /= np.maximum(1, np.hypot(*pulls.T))[:, None]
    length = model.max_grad_norm
    total = np.cumsum(np.vstack([[0, 0], pulls]), axis=0)
    panel.line(*total.T, GREY, width=0.9, name="rows, one after another")
    panel.marks(*total[-1:].T, BROWN, "square", 4, name="exact sum")
    noise = np.random.default_rng(0).normal(scale=model.guarantee_.noise_scale / length, size=(12, 2))
    panel.marks(*(total[-1] + noise).T, BLUE, "cross", 3.5, name="12 noisy sums")
    return panel


def tilted_panel(name):
    """Draw the objective along a line, tilted by a random linear term."""
    X, y = rows()
    signs = 2.0 * y - 1
    weights = np.linspace(-3, 3, 61)
    values = np.array([0.5 * w * w + 0.05 * np.maximum(0, 1 - signs * X[:, 0] * w).sum() for w in weights])
    panel = Panel("A random tilt moves the minimum", (-3, 3), (1, 12), "a weight", "objective")
    tilts = [("without", 0.0, GREY, ""), ("one draw", 1.0, BLUE, "6 3"), ("another", -1.2, BROWN, "2 3")]
    for words, slope, colour, dashes in tilts:
        tilted = values + slope * weights
        panel.line(weights, tilted, colour, dashes, 2, words)
        low = int(np.argmin(tilted))
        panel.marks(weights[low : low + 1], tilted[low : low + 1], colour, "square", 4)
    return panel


def choice_panel():
    """Probabilities of the second variable of a pair."""
    sigma = estimator_class("dpwss")().sigma
    panel = Panel("The second variable is drawn", (0, 1), (0, 0.25), "violation, over the largest", "probability")
    shares = np.sort(np.random.default_rng(1).uniform(0.2, 1.0, 30))
    able = shares >= sigma
    for epsilon, colour, dashes, shape in ((0.1, BROWN, "6 3", "square"), (4.0, BLUE, "", "circle")):
        # Sharpness of the exponential mechanism whose scores range over 1 - sigma.
        weight = np.where(able, np.exp(epsilon / (2 * (1 - sigma)) * shares), 0.0)
        weight /= weight.sum()
        panel.line(shares[able], weight[able], colour, dashes, 1, f"epsilon {epsilon:g}")
        panel.marks(shares[able], weight[able], colour, shape, 2.5)
    panel.marks(shares[~able], 0 * shares[~able], GREY, "cross", 3, name="never chosen")
    panel.line([sigma, sigma], [0, 0.25], GREY, "3 3")
    return panel


def verbatim_panel():
    """Support vectors, which a model holds, are training rows."""
    model = fitted("dpsvmdvp", epsilon=1.0)
    panel = Panel("Published with the model", *BOX, ticks=False)
    cloud(panel, faint=True)
    panel.marks(*model.support_vectors_.T, BROWN, "square", 5, hollow=True, name="rows in the clear")
    return panel


def fourier_panel(name):
    """Random Fourier features against the kernel that they stand for."""
    from privsvm.solvers.features import fourier_features, fourier_frequencies

    panel = Panel("Features whose products are a kernel", (0, 2), (-0.5, 1.2), "distance of two rows", "product")
    distance = np.linspace(0, 2, 41)
    pair = np.c_[distance, 0 * distance]
    for count, colour, dashes in ((10, BROWN, "2 3"), (100, BLUE, "6 3")):
        features = fourier_features(pair, fourier_frequencies(2, count, 2.0, np.random.default_rng(0)))
        panel.line(distance, features @ features[0], colour, dashes, 1.8, f"{count} frequencies")
    panel.line(distance, np.exp(-2.0 * distance**2), GREY, "", 2, "Gaussian kernel")
    return panel


def landmarks_panel(name):
    """Landmarks, which no row has a part in."""
    model = fitted(name, epsilon=1.0)
    panel = Panel("Public landmarks take the rows' place", *BOX, ticks=False)
    cloud(panel, faint=True)
    panel.marks(*np.clip(model.landmarks_, -1.05, 1.05).T, BLUE, "square", 4, name="landmarks")
    return panel


def diamond_panel():
    """Weights in an L1 ball: every step goes to a corner."""
    panel = Panel("Weights stay in a ball with corners", (-3.6, 3.6), (-3.6, 3.6), "first weight", "second weight")
    panel.line([3, 0, -3, 0, 3], [0, 3, 0, -3, 0], GREY)
    for epsilon, colour, shape in ((1.0, BROWN, "square"), (8.0, BLUE, "circle")):
        weights = [fitted("dp_frank_wolfe", epsilon=epsilon, random_state=seed).coef_[0] for seed in range(RELEASES)]
        panel.marks(*np.transpose(weights), colour, shape, 3.5, name=f"epsilon {epsilon:g}")
    return panel


def moments_panel(name):
    """Ellipses of the rows' second moment, exact and with noise."""
    X, _ = rows()
    unit = X / np.hypot(*X.T)[:, None]
    events = fitted(name, epsilon=1.0).guarantee_.event.events
    multiplier = getattr(events[1], "event", events[1]).noise_multiplier
    panel = Panel("Second moment of the rows, with noise", *BOX, ticks=False)
    panel.marks(*unit.T, GREY, "circle", 1.6)
    angle = np.linspace(0, 2 * np.pi, 49)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    rng = np.random.default_rng(0)
    for number in range(5):
        # Two unit rows change the sum by sqrt(2) at most.
        noise = rng.normal(scale=math.sqrt(2) * multiplier * (number > 0), size=(2, 2))
        moment = (unit.T @ unit + (noise + noise.T) / math.sqrt(2)) / len(unit)
        values, axes = np.linalg.eigh(moment)
        ellipse = circle @ (np.sqrt(np.maximum(values, 0))[:, None] * axes.T)
        look = (BROWN, "", 2.2, "exact") if number == 0 else (BLUE, "4 3", 1.1, "four releases" if number == 1 else "")
        panel.line(*ellipse.T, look[0], look[1], look[2], look[3])
    return panel


def rule_panel():
    """Draw what the public rule chooses, against the number of rows."""
    from privsvm.base.scaled_descent import Budget
    from privsvm.recommended import choose_recipe

    panel = Panel(
        "A public rule chooses", (2, 6), (0, 180), "rows: log10 (10 features, epsilon 1)", "steps, frequencies"
    )
    grid = np.linspace(2, 6, 81)
    budget = Budget(epsilon=1.0, delta=1e-5, neighbours="replace_one")
    recipes = [choose_recipe(10**power, 10, 2, budget)[0] for power in grid]
    panel.line(grid, [recipe.n_steps for recipe in recipes], BROWN, "6 3", 2, "steps")
    panel.line(grid, [recipe.n_frequencies for recipe in recipes], BLUE, "", 2, "random frequencies")
    return panel


def condensed_panel(name):
    """Draw groups of rows, and the row that takes the place of each."""
    model = fitted(name)
    X, _ = rows()
    panel = Panel("Rows become fewer", *BOX, ticks=False)
    cloud(panel, faint=True)
    for row, group in zip(X, model.group_of_, strict=True):
        panel.line(*np.c_[row, model.condensed_rows_[group]], GREY, width=0.6)
    cloud(panel, model.condensed_rows_, model.condensed_codes_)
    return panel


def sharing_panel():
    """Blocks of two entities, and their sum."""
    X, _ = rows()
    model = fitted("ppsvm")
    shown = np.r_[0:6, 60:66]
    panel = Panel("Random kernels of columns add up", (0, 3), (0, 1.6), ticks=False)
    blocks = [
        entity.publish(X[shown][:, columns], "linear", 1.0)
        for columns, entity in zip(model.columns_, model.entities_, strict=True)
    ]
    scaled = [(block - block.min()) / np.ptp(block) for block in (*blocks, sum(blocks))]
    for number, (block, words) in enumerate(zip(scaled, ("entity 1", "entity 2", "their sum"), strict=True)):
        panel.cells(block, number + 0.08, 1.25, 0.82 / block.shape[1])
        panel.text(number + 0.5, 1.35, words)
        if number < 2:
            panel.text(number + 0.99, 0.85, "+="[number])
    panel.text(1.5, 0.1, "12 rows down, 12 random ones across")
    return panel


def margin_panel(name):
    """Draw a boundary with its margins and support vectors."""
    model = fitted(name, kernel="linear")
    panel = Panel("Widest margin", *BOX, ticks=False)
    cloud(panel)
    boundary(panel, model, colour="#1b1f27", width=2, name="boundary")
    for level in (-1.0, 1.0):
        boundary(panel, model, colour=GREY, dashes="4 3", level=level, name="margins" if level < 0 else "")
    panel.marks(*model.support_vectors_.T, "#1b1f27", "circle", 5, hollow=True, name="support vectors")
    return panel


def plain_panel(name):
    """Draw the boundary of a method without noise."""
    panel = Panel("Its boundary", *BOX, ticks=False)
    cloud(panel)
    boundary(panel, fitted(name), colour="#1b1f27", width=2)
    return panel


def kernels_panel():
    """Draw a boundary with a Gaussian kernel."""
    panel = Panel("With a Gaussian kernel", *BOX, ticks=False)
    cloud(panel)
    boundary(panel, fitted("svm", kernel="rbf", gamma=2.0), colour="#1b1f27", width=2)
    return panel


def violations_panel(name):
    """How far the solution is from optimal, against the stopping tolerance."""
    panel = Panel("Steps of pairs until it stops", (-5, 0), (0, 80), "tolerance: log10", "steps")
    powers = np.arange(-5, 1)
    steps = [int(np.sum(fitted(name, kernel="linear", tol=10.0**power).n_iter_)) for power in powers]
    panel.line(powers, steps, BLUE, "", 2)
    panel.marks(powers, steps, BLUE, "circle", 3)
    return panel


def three_classes_panel(name):
    """Three classes by one problem."""
    rng = np.random.default_rng(5)
    centres = np.array([(-0.55, -0.4), (0.55, -0.4), (0.0, 0.55)])
    X = np.clip(np.vstack([rng.normal(centre, 0.23, (30, 2)) for centre in centres]), -1, 1)
    y = np.repeat([0, 1, 2], 30)
    panel = Panel("Three classes, one problem", *BOX, ticks=False)
    cloud(panel, X, y)
    boundary(panel, fitted(name, X, y), colour="#1b1f27", width=2)
    return panel


def weights_panel(name):
    """Weights of the 1-norm and of the 2-norm, where three of twelve features matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12)) / 2
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    panel = Panel("Three of twelve features matter", (0, 13), (-2, 7), "feature", "weight")
    places = np.arange(1, 13)
    panel.bars(places - 0.2, fitted("svm", X, y, kernel="linear").coef_[0], 0.35, GREY, "2-norm")
    panel.bars(places + 0.2, fitted(name, X, y, C=1.0).coef_[0], 0.35, BLUE, "1-norm")
    return panel


def reduced_panel():
    """Mark the rows that the reduced kernel keeps."""
    model = fitted("rsvm")
    X, _ = rows()
    panel = Panel("A tenth of the rows is in the kernel", *BOX, ticks=False)
    cloud(panel, faint=True)
    panel.marks(*X[model.support_].T, BLUE, "square", 5, name="rows of the kernel")
    boundary(panel, model, colour="#1b1f27", width=2)
    return panel


def majority_panel():
    """Class frequencies; the largest decides."""
    X, y = rows()
    keep = np.r_[0:60, 60:95]
    shares = fitted("majority", X[keep], y[keep]).class_frequencies_
    panel = Panel("The most frequent class, always", (-0.7, 1.7), (0, 1), "class", "share of the rows")
    panel.bars([0.0], shares[:1], 0.6, BLUE, "predicted")
    panel.bars([1.0], shares[1:], 0.6, GREY)
    return panel


# What each method does, for those who do not see the picture, and the panels that show it.
FIGURES = {
    "ci_svm": ("Rows in threes become their mean, beside the boundary of an SVM on the means",
               lambda: (condensed_panel("ci_svm"), plain_panel("ci_svm"))),
    "fcm_svm": ("Rows become the centres of fuzzy clusters, beside the boundary of an SVM on the centres",
                lambda: (condensed_panel("fcm_svm"), plain_panel("fcm_svm"))),
    "crammer_singer": ("Three classes divided by one multi-class problem",
                       lambda: (three_classes_panel("crammer_singer"),)),
    "weston_watkins": ("Three classes divided by one multi-class problem",
                       lambda: (three_classes_panel("weston_watkins"),)),
    "m3_svm": ("Three classes divided by one multi-class problem", lambda: (three_classes_panel("m3_svm"),)),
    "svm": ("The widest margin between two classes, and a boundary with a Gaussian kernel",
            lambda: (margin_panel("svm"), kernels_panel())),
    "svm_smo": ("The widest margin between two classes, and how many steps of pairs it takes",
                lambda: (margin_panel("svm_smo"), violations_panel("svm_smo"))),
    "majority": ("Two bars, of which the higher one is predicted for every row", lambda: (majority_panel(),)),
    "one_norm_svm": ("Weights by the 1-norm are zero but for three features; by the 2-norm all differ from zero",
                     lambda: (weights_panel("one_norm_svm"),)),
    "rsvm": ("The few rows that the kernel keeps, with the boundary", lambda: (reduced_panel(),)),
    "ppsvm": ("Random kernels of two entities, whose sum trains the model, beside its boundary",
              lambda: (sharing_panel(), plain_panel("ppsvm"))),
    "dpsvmdvp": ("Support vectors are published as they are; boundaries of releases",
                 lambda: (verbatim_panel(), releases("dpsvmdvp"))),
    "dpwss": ("Probabilities of choosing the second variable of a pair by its violation; boundaries of releases",
              lambda: (choice_panel(), releases("dpwss"))),
    "recommended": ("Steps and random frequencies that the rule chooses by the number of rows; boundaries of releases",
                    lambda: (rule_panel(), releases("recommended"))),
    "pmsvm_wp": ("Rows outside a circle are cut to it; boundaries of releases",
                 lambda: (clipped_panel(), releases("pmsvm_wp"))),
    "pmsvm_wp_as_published": ("One row moves the weights the more, the longer it is; boundaries of releases",
                              lambda: (moves_panel("pmsvm_wp", "pmsvm_wp_as_published"),
                                       releases("pmsvm_wp_as_published"))),
    "opera_as_published": ("One row moves the weights the more, the longer it is; boundaries of releases",
                           lambda: (moves_panel("opera", "opera_as_published"), releases("opera_as_published"))),
    "opera": ("Noise against the number of classes, largest with a budget for each; boundaries of releases",
              lambda: (classes_panel(), releases("opera"))),
    "ovr_joint_gaussian": ("Noise against the number of classes, least for the joint release; boundaries of releases",
                           lambda: (classes_panel(), releases("ovr_joint_gaussian"))),
    "objective_perturbation": ("An objective with two random tilts, each with another minimum; boundaries of releases",
                               lambda: (tilted_panel("objective_perturbation"), releases("objective_perturbation"))),
    "dp_frank_wolfe": ("Weights of releases inside a ball with corners; boundaries of releases",
                       lambda: (diamond_panel(), releases("dp_frank_wolfe"))),
}  # fmt: skip
for _name in ("private_svm", "private_svm_laplace"):
    FIGURES[_name] = (
        "Densities of Gaussian and Laplace noise on a weight; boundaries of releases",
        lambda name=_name: (noise_panel(["private_svm", "private_svm_laplace"]), releases(name)),
    )
for _name in ("private_svm_rbf", "private_svm_rbf_laplace"):
    FIGURES[_name] = (
        "Products of random Fourier features against a Gaussian kernel; boundaries of releases",
        lambda name=_name: (fourier_panel(name), releases(name)),
    )
for _name in ("landmark_dual", "landmark_dual_given"):
    FIGURES[_name] = (
        "Landmarks beside the rows; boundaries of releases",
        lambda name=_name: (landmarks_panel(name), releases(name)),
    )
for _name in ("dp_least_squares", "dp_feature_covariance", "dp_newton"):
    FIGURES[_name] = (
        "Ellipses of the second moment of the rows, exact and with noise; boundaries of releases",
        lambda name=_name: (moments_panel(name), releases(name)),
    )
for _name in ("grpua", "pmsvm_gp", "pmsvm_agp", "softmax_dpsgd", "softmax_dpadam"):
    FIGURES[_name] = (
        "Pulls of single rows add up to a sum, around which noisy sums lie; boundaries of releases",
        lambda name=_name: (clipped_gradients_panel(name), releases(name)),
    )


def draw(name):
    """Make the picture of a method."""
    words, panels = FIGURES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return figure(f"{name}: {words}", *panels())


def picture(name, folder):
    """Write the Markdown of a method's picture, seen from a folder's page."""
    return f"![{FIGURES[name][0]}]({folder}images/methods/{name}.svg)"


def page():
    """Write the page with all pictures."""
    lines = [
        "# Methods in pictures", "",
        "The idea of each method, and what others see of it: decision boundaries of several releases of the same",
        "rows. The methods themselves compute what is drawn (generated by `make docs`). [What their epsilon is",
        "worth](methods.md) says which of these releases are proved.", "",
    ]  # fmt: skip
    for name in implementations():
        method = estimator_class(name)
        words = inspect.getdoc(method).partition("\n")[0]
        proof = f" [Proof](proofs/{name}.md)." if (FOLDER.parents[1] / "proofs" / f"{name}.md").exists() else ""
        lines += [f"## {name}", "", f"`{method.__name__}`: {words}{proof}", "", picture(name, ""), ""]
    return "\n".join(lines[:-1]) + "\n"


def main():
    """Draw all pictures, or those that are named."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or implementations():
        (FOLDER / f"{name}.svg").write_text(draw(name), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
