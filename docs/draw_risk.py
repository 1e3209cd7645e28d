"""Draw what a release may reveal, docs/images/risk.svg: how many of the rows used a test names, at a rate of errors."""

from pathlib import Path

import numpy as np

from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import EpsilonDelta, Gaussian
from privsvm.privacy.risk import trade_off
from privsvm_bench.charts import BLUE, BROWN, RED, SOFT, TEAL, new_figure, style, svg_text

PICTURE = Path(__file__).resolve().parent / "images" / "risk.svg"
COLOURS = {0.5: TEAL, 1.0: BLUE, 2.0: BROWN, 4.0: RED}
DELTA = 1e-5
DASHED, DOTTED = (0, (6, 3)), (0, (2, 3))


def draw():
    """Make the picture's text."""
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


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
