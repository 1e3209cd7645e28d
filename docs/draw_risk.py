"""Draw the risk of a release: the rows that a test names at a rate of errors, and one hundred guesses."""

import math

import numpy as np

from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import EpsilonDelta, Gaussian
from privsvm.privacy.risk import trade_off
from privsvm_bench.charts import BLUE, BROWN, GREY, PANEL, RED, SOFT, TEAL, new_figure, style, svg_text

COLOURS = {0.5: TEAL, 1.0: BLUE, 2.0: BROWN, 4.0: RED}
DELTA = 1e-5
DASHED, DOTTED = (0, (6, 3)), (0, (2, 3))


def draw_guesses(epsilon=1.0):
    """Make the text of a picture of one hundred guesses: right without the model, right with it, and wrong."""
    noise = Gaussian(gaussian_noise_multiplier(epsilon, DELTA))
    guess = math.ceil(100 * trade_off(noise, "add_remove").guess(0.5))
    words = {
        "50 right without the model": (range(50), GREY, GREY),
        f"at most {guess - 50} more right with it": (range(50, guess), RED, RED),
        f"{100 - guess} or more still wrong": (range(guess, 100), PANEL, GREY),
    }
    with style():
        figure, (axes,) = new_figure(760, 130)
        figure.subplots_adjust(0.01, 0.02, 0.6, 0.98)
        for label, (places, fill, edge) in words.items():
            x, y = zip(*[(place % 20, -(place // 20)) for place in places], strict=True)
            axes.scatter(x, y, s=150, color=fill, edgecolors=edge, label=label)
        axes.set(xlim=(-0.7, 19.7), ylim=(-4.7, 0.7))
        axes.axis("off")
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=12)
        return svg_text(figure, f"Of 100 guesses, 50 are right without the model and at most {guess} with it")


def draw_curves():
    """Make the text of a picture of trade-off curves."""
    rates = np.geomspace(1e-4, 1.0, 121)
    with style():
        figure, (axes,) = new_figure(760, 340)
        figure.subplots_adjust(0.1, 0.17, 0.68, 0.96)
        for epsilon, colour in reversed(COLOURS.items()):
            noise = Gaussian(gaussian_noise_multiplier(epsilon, DELTA))
            for event, line, words in (
                (noise, "-", f"Gaussian noise, epsilon {epsilon:g}"),
                (EpsilonDelta(epsilon, DELTA), DASHED, "any noise, epsilon 1"),
            ):
                if line == "-" or epsilon == 1:
                    curve = trade_off(event, "add_remove", delta=DELTA)
                    powers = [100 * curve.true_positive_rate(float(rate)) for rate in rates]
                    axes.plot(100 * rates, powers, color=colour, linestyle=line, label=words)
        axes.plot(100 * rates, 100 * rates, color=SOFT, linestyle=DOTTED, label="without the model")
        axes.set(
            xscale="log", yscale="log", xlim=(0.01, 100), ylim=(0.01, 100), xlabel="rows not used that are named, %",
            ylabel="rows used that are named, at most, %",
        )  # fmt: skip
        ticks = (0.01, 0.1, 1, 10, 100)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.grid(visible=True)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=11)
        return svg_text(figure, f"What a release may reveal of a row, at delta {DELTA:g}")
