"""Draw the idea of each method by running it: .cache/pictures/<method>.svg, which `make docs` shows.

The left panel shows the mechanism, the right one decision boundaries of several releases. `python docs/draw_methods.py`
draws the pictures whose code has changed, `python docs/draw_methods.py <method>` only the pictures of the named
methods.
"""

import functools
import inspect
import math
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from proof_pages import proofs
from rendering import render

from privsvm.registry import estimator_class, implementations
from privsvm_bench.charts import BLUE, BROWN, GREY, INK, TEAL, new_figure, style, svg_text
from privsvm_bench.workflow.sources import closure_digest

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "pictures"
BOX = (-1.1, 1.1)
RELEASES, EPSILONS = 8, (1.0, 8.0)
# Settings for two columns: the defaults suit wider tables.
SETTINGS = {
    "landmark_dual": {"gamma": 2.0, "n_landmarks": 12},
    "private_svm_rbf": {"gamma": 2.0, "n_components": 20},
    "private_svm_rbf_laplace": {"gamma": 2.0, "n_components": 20},
    "dpsvmdvp": {"gamma": 2.0}, "ci_svm": {"gamma": 2.0}, "fcm_svm": {"gamma": 2.0},
    "rsvm": {"gamma": 2.0, "kernel": "gaussian"}, "dp_frank_wolfe": {"radius": 3.0},
}  # fmt: skip
DASHED, DOTTED = (0, (6, 3)), (0, (2, 3))


@functools.cache
def rows():
    """Draw two clouds of rows in the plane, one slightly bent."""
    rng = np.random.default_rng(3)
    first = rng.normal((-0.42, -0.15), (0.24, 0.3), (60, 2))
    second = rng.normal((0.42, 0.15), (0.24, 0.3), (60, 2))
    second[:, 1] += 0.8 * (second[:, 0] - 0.4) ** 2
    return np.clip(np.vstack([first, second]), -1, 1), np.repeat([0, 1], 60)


def fit(name, X=None, y=None, **changes):
    """Fit a method to rows with the declarations that it needs."""
    if X is None:
        X, y = rows()
    method = estimator_class(name)
    chosen = {
        "classes": sorted({int(code) for code in y}), "n_rows": len(y), "allow_unsound": True, "random_state": 0,
        **SETTINGS.get(name, {}), **changes,
    }  # fmt: skip
    return method(**{key: value for key, value in chosen.items() if key in method.declared}).fit(X, y)


def frame(axes, title, x=BOX, y=BOX, across="", up="", ticks=True):
    """Set title, limits and labels of axes."""
    axes.set(title=title, xlim=x, ylim=y, xlabel=across, ylabel=up)
    axes.locator_params(nbins=5)
    if not ticks:
        axes.set(xticks=[], yticks=[])


def marks(axes, points, colour, marker="o", size=4.5, hollow=False, label=None):
    """Mark points of the plane."""
    inside = "none" if hollow else colour
    axes.plot(*np.transpose(points), marker, ms=size, mfc=inside, mec=colour, mew=0.9, ls="", label=label)


def cloud(axes, X=None, y=None, faint=False):
    """Mark rows by class: dots and squares."""
    if X is None:
        X, y = rows()
    looks = [(GREY, "o"), (GREY, "s")] if faint else [(BLUE, "o"), (BROWN, "s"), (TEAL, "x")]
    for code, (colour, marker) in zip(np.unique(y), looks, strict=False):
        marks(axes, X[y == code], colour, marker, 3 if faint else 4)


def boundary(axes, model, level=0.0, colour=INK, dashes="-", width=2.0, label=None):
    """Draw the decision boundary; with several classes, the boundary of each."""
    ends = np.linspace(*BOX, 45)
    across, up = np.meshgrid(ends, ends)
    scores = np.asarray(model.decision_function(np.c_[across.ravel(), up.ravel()]))
    margins = [scores]
    if scores.ndim == 2:
        # Margin of each class over the best other one; the last class lies between the others.
        classes = range(scores.shape[1] - 1)
        margins = [scores[:, c] - np.delete(scores, c, axis=1).max(axis=1) for c in classes]
    for margin in margins:
        axes.contour(ends, ends, margin.reshape(across.shape), [level], colors=colour, linestyles=[dashes],
                     linewidths=width)  # fmt: skip
    axes.plot([], [], color=colour, ls=dashes, lw=width, label=label)


def releases(axes, name):
    """Draw boundaries of several releases at two epsilons."""
    frame(axes, f"{RELEASES} releases: what others get to see", ticks=False)
    cloud(axes, faint=True)
    for epsilon, colour, dashes in zip(EPSILONS, (BROWN, BLUE), (DASHED, "-"), strict=True):
        for seed in range(RELEASES):
            model, label = fit(name, epsilon=epsilon, random_state=seed), None if seed else f"epsilon {epsilon:g}"
            boundary(axes, model, colour=colour, dashes=dashes, width=1.1, label=label)


def noise(axes, name):
    """Draw densities of Gaussian and Laplace noise on a weight."""
    title, across = "Noise on each weight, epsilon 1", "noise, over the sensitivity (L2, L1)"
    frame(axes, title, (-25, 25), (0, 0.36), across, "density")
    x = np.linspace(-25, 25, 101)
    gaussian, laplace = (
        fit(one, epsilon=1.0).guarantee_.event.noise_multiplier for one in ("private_svm", "private_svm_laplace")
    )
    density = np.exp(-0.5 * (x / gaussian) ** 2) / (gaussian * math.sqrt(2 * math.pi))
    axes.plot(x, density, color=BLUE, label="Gaussian")
    axes.plot(x, np.exp(-np.abs(x) / laplace) / (2 * laplace), color=BROWN, ls=DASHED, label="Laplace")


def clipping(axes, name):
    """Draw rows outside a circle that are cut to it."""
    frame(axes, "Rows are cut to length 1", (-2, 2), (-2, 2))
    X, y = rows()
    X = 1.7 * X
    length = np.maximum(1, np.hypot(*X.T))
    angle = np.linspace(0, 2 * np.pi, 61)
    axes.plot(np.cos(angle), np.sin(angle), color=GREY, ls=DOTTED, label="data_norm = 1")
    for row, long in zip(X, length, strict=True):
        if long > 1:
            axes.plot(*np.c_[row, row / long], color=GREY, lw=0.7)
    cloud(axes, X / length[:, None], y)


def classes(axes, name):
    """Draw noise against the number of classes, largest with a budget for each and least for the joint release."""
    counts = range(2, 11)
    frame(axes, "Noise on each weight, epsilon 1", (2, 10), (0, 120), "number of classes", "noise, over C R")
    rng = np.random.default_rng(0)
    for method, changes, label, colour, dashes in (
        ("opera", {"composition": "naive"}, "one budget for each", BROWN, DASHED),
        ("opera", {"composition": "joint"}, "jointly (opera)", TEAL, DOTTED),
        ("ovr_joint_gaussian", {}, "less the mean (ovr_joint)", BLUE, "-"),
    ):
        scales = []
        for count in counts:
            y = np.repeat(np.arange(count), 6)
            X = rng.normal(size=(y.size, 2)) / 4
            scales.append(fit(method, X, y, epsilon=1.0, C=1.0, **changes).guarantee_.noise_scale)
        axes.plot(counts, scales, color=colour, ls=dashes, label=label)


def gradients(axes, name):
    """Draw pulls of single rows that add up to a sum, around which noisy sums lie."""
    model = fit(name, epsilon=1.0)
    X, y = rows()
    ends, across = (-150, 150), "sum over rows, first weight"
    frame(axes, "The first step: cut, summed, plus noise", ends, ends, across, "second weight")
    pulls = (2.0 * y - 1)[:, None] * X
    pulls /= np.maximum(1, np.hypot(*pulls.T))[:, None]
    total = np.cumsum(np.vstack([[0, 0], pulls]), axis=0)
    axes.plot(*total.T, color=GREY, lw=0.9, label="rows, one after another")
    marks(axes, total[-1:], BROWN, "s", 8, label="exact sum")
    scale = model.guarantee_.noise_scale / model.max_grad_norm
    drawn = np.random.default_rng(0).normal(scale=scale, size=(12, 2))
    marks(axes, total[-1] + drawn, BLUE, "x", 7, label="12 noisy sums")


def tilts(axes, name):
    """Draw an objective with two random tilts, each with its own minimum."""
    X, y = rows()
    weights = np.linspace(-3, 3, 61)
    values = np.array([0.5 * w * w + 0.05 * np.maximum(0, 1 - (2.0 * y - 1) * X[:, 0] * w).sum() for w in weights])
    frame(axes, "A random tilt moves the minimum", (-3, 3), (1, 12), "a weight", "objective")
    for label, slope, colour, dashes in (
        ("without", 0.0, GREY, "-"), ("one draw", 1.0, BLUE, DASHED), ("another", -1.2, BROWN, DOTTED)
    ):  # fmt: skip
        tilted = values + slope * weights
        low = int(np.argmin(tilted))
        axes.plot(weights, tilted, color=colour, ls=dashes, label=label)
        marks(axes, [(weights[low], tilted[low])], colour, "s", 8)


def verbatim(axes, name):
    """Mark support vectors that are published as they are: training rows."""
    frame(axes, "Published with the model", ticks=False)
    cloud(axes, faint=True)
    marks(axes, fit(name, epsilon=1.0).support_vectors_, BROWN, "s", 9, hollow=True, label="rows in the clear")


def fourier(axes, name):
    """Draw products of random Fourier features against a Gaussian kernel."""
    from privsvm.solvers.features.fourier import fourier_features, fourier_frequencies

    frame(axes, "Features whose products are a kernel", (0, 2), (-0.5, 1.2), "distance of two rows", "product")
    distance = np.linspace(0, 2, 41)
    for count, colour, dashes in ((10, BROWN, DOTTED), (100, BLUE, DASHED)):
        frequencies = fourier_frequencies(2, count, 2.0, np.random.default_rng(0))
        features = fourier_features(np.c_[distance, 0 * distance], frequencies)
        axes.plot(distance, features @ features[0], color=colour, ls=dashes, label=f"{count} frequencies")
    axes.plot(distance, np.exp(-2.0 * distance**2), color=GREY, label="Gaussian kernel")


def landmarks(axes, name):
    """Mark landmarks, which do not depend on rows."""
    frame(axes, "Public landmarks take the rows' place", ticks=False)
    cloud(axes, faint=True)
    marks(axes, np.clip(fit(name, epsilon=1.0).landmarks_, -1.05, 1.05), BLUE, "s", 8, label="landmarks")


def moments(axes, name):
    """Draw ellipses of the rows' second moment, exact and with noise."""
    X, _ = rows()
    unit = X / np.hypot(*X.T)[:, None]
    events = fit(name, epsilon=1.0).guarantee_.event.events
    multiplier = getattr(events[1], "event", events[1]).noise_multiplier
    frame(axes, "Second moment of the rows, with noise", ticks=False)
    marks(axes, unit, GREY, size=3)
    angle = np.linspace(0, 2 * np.pi, 49)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    rng = np.random.default_rng(0)
    for number in range(5):
        # Two unit rows change the sum by sqrt(2) at most.
        drawn = rng.normal(scale=math.sqrt(2) * multiplier * (number > 0), size=(2, 2))
        values, vectors = np.linalg.eigh((unit.T @ unit + (drawn + drawn.T) / math.sqrt(2)) / len(unit))
        ellipse = circle @ (np.sqrt(np.maximum(values, 0))[:, None] * vectors.T)
        look = {"color": BLUE, "ls": DASHED, "lw": 1.1} if number else {"color": BROWN, "lw": 2.2}
        axes.plot(*ellipse.T, **look, label={0: "exact", 1: "four releases"}.get(number))


def condensation(axes, name):
    """Draw groups of rows, and the row that replaces each group."""
    model = fit(name)
    frame(axes, "Rows become fewer", ticks=False)
    cloud(axes, faint=True)
    for row, group in zip(rows()[0], model.group_of_, strict=True):
        axes.plot(*np.c_[row, model.condensed_rows_[group]], color=GREY, lw=0.6)
    cloud(axes, model.condensed_rows_, model.condensed_codes_)


def sharing(axes, name):
    """Show random kernels of two entities, whose sum trains the model."""
    X, model = rows()[0][np.r_[0:6, 60:66]], fit(name)
    frame(axes, "Random kernels of columns add up", (0, 3), (0, 1.6), ticks=False)
    pairs = zip(model.columns_, model.entities_, strict=True)
    blocks = [entity.publish(X[:, columns], "linear", 1.0) for columns, entity in pairs]
    for number, (block, label) in enumerate(
        zip((*blocks, sum(blocks)), ("entity 1", "entity 2", "their sum"), strict=True)
    ):
        size = 0.82 / block.shape[1]
        extent = (number + 0.08, number + 0.9, 1.25 - size * len(block), 1.25)
        axes.imshow(block, cmap="Greys", extent=extent, aspect="auto", interpolation="nearest")
        axes.text(number + 0.5, 1.35, label, ha="center")
        axes.text(number + 0.99, 0.85, "+= "[number], ha="center")
    axes.set(xlim=(0, 3), ylim=(0, 1.6))
    axes.text(1.5, 0.1, "12 rows down, 12 random ones across", ha="center")


def margin(axes, name):
    """Draw the widest margin between two classes."""
    model = fit(name, kernel="linear")
    plain(axes, name, "Widest margin", kernel="linear")
    for level in (-1.0, 1.0):
        boundary(axes, model, level, GREY, DASHED, 1.6, "margins" if level < 0 else None)
    marks(axes, model.support_vectors_, INK, "o", 9, hollow=True, label="support vectors")


def plain(axes, name, title="Its boundary", **changes):
    """Draw the boundary of a method without noise."""
    frame(axes, title, ticks=False)
    cloud(axes)
    boundary(axes, fit(name, **changes))


def kernel(axes, name):
    """Draw a boundary with a Gaussian kernel."""
    plain(axes, name, "With a Gaussian kernel", kernel="rbf", gamma=2.0)


def three_classes(axes, name):
    """Draw the boundaries of three classes from one problem."""
    rng = np.random.default_rng(5)
    centres = np.array([(-0.55, -0.4), (0.55, -0.4), (0.0, 0.55)])
    X = np.clip(np.vstack([rng.normal(centre, 0.23, (30, 2)) for centre in centres]), -1, 1)
    y = np.repeat([0, 1, 2], 30)
    frame(axes, "Three classes, one problem", ticks=False)
    cloud(axes, X, y)
    boundary(axes, fit(name, X, y))


# Panels of the pictures of all methods of a family, and of a method by itself.
FAMILIES = {"moments": (moments, releases), "gradients": (gradients, releases)}
FIGURES = {
    "svm": (margin, kernel), "ppsvm": (sharing, plain), "dpsvmdvp": (verbatim, releases),
    "pmsvm_wp": (clipping, releases), "objective_perturbation": (tilts, releases),
    "landmark_dual": (landmarks, releases),
    **dict.fromkeys(("ci_svm", "fcm_svm"), (condensation, plain)),
    **dict.fromkeys(("opera", "ovr_joint_gaussian"), (classes, releases)),
    **dict.fromkeys(("private_svm", "private_svm_laplace"), (noise, releases)),
    **dict.fromkeys(("private_svm_rbf", "private_svm_rbf_laplace"), (fourier, releases)),
    **dict.fromkeys(("crammer_singer", "weston_watkins", "m3_svm"), (three_classes,)),
}  # fmt: skip


def panels_of(name):
    """Return the panels of a method's picture: its own, or its family's."""
    method = estimator_class(name)
    rooms = [base.__module__.split(".") for base in method.__mro__]
    family = next((room[2] for room in rooms if room[:2] == ["privsvm", "families"] and room[2] in FAMILIES), None)
    if name in FIGURES or family:
        return FIGURES.get(name) or FAMILIES[family]
    return (releases,) if "epsilon" in method.declared else (plain,)


def describe(panels):
    """Write the alternative text of a picture: what each panel draws, by its docstring."""
    words = "; ".join(panel.__doc__.partition(" ")[2].rstrip(".") for panel in panels)
    return words[0].upper() + words[1:]


def draw(name):
    """Make the picture of a method."""
    panels = panels_of(name)
    width = 330 * len(panels)
    with warnings.catch_warnings(), style():
        warnings.simplefilter("ignore")
        figure, all_axes = new_figure(width, 264, len(panels))
        figure.subplots_adjust(62 / width, 42 / 264, 1 - 12 / width, 1 - 34 / 264, wspace=0.29)
        for axes, panel in zip(all_axes, panels, strict=True):
            panel(axes, name)
            if axes.get_legend_handles_labels()[0]:
                place = "lower left" if panel is releases else "best"
                axes.legend(loc=place, fontsize=10, frameon=True, facecolor="white", framealpha=0.9, edgecolor="none")
        return svg_text(figure, f"{name}: {describe(panels)}")


def picture(name, folder):
    """Write the Markdown of a method's picture, seen from a folder of the site."""
    return f"![{describe(panels_of(name))}]({folder}images/{name}.svg)"


def gallery():
    """Write the pictures of all methods for the end of docs/methods.md."""
    classes = {name: estimator_class(name) for name in implementations()}
    return render("gallery", classes=classes, links=proofs(), picture=picture, getdoc=inspect.getdoc)


def with_pictures(text, page):
    """Put the picture of each method of a proof page below its heading, and below the header if it has one."""
    for name, link in proofs().items():
        file, _, section = link.partition("#")
        if file == f"{page}.md":
            heading = f"## {section}" if section else "# [^\\n]+"
            start = re.compile(rf"^{heading}\n(?:\n```yaml\n(?:.*\n)*?```\n)?", re.MULTILINE)
            text = start.sub(lambda head, name=name: f"{head[0]}\n{picture(name, '../')}\n", text, count=1)
    return text


def draw_stale(names):
    """Draw the pictures whose code has changed since; each ends with the digest of its code."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names:
        mark = f"<!-- {closure_digest('docs/draw_methods.py', estimator_class(name).__module__)} -->\n"
        path = FOLDER / f"{name}.svg"
        if not path.exists() or not path.read_text(encoding="utf-8").endswith(mark):
            path.write_text(draw(name) + mark, encoding="utf-8")


if __name__ == "__main__":
    draw_stale(sys.argv[1:] or implementations())
