"""Draw the verdicts on five papers, docs/images/reproductions.svg, from the committed results."""

import collections

from write_reproductions import DECIDED, judge_papers

from privsvm_bench.charts import BLUE, BROWN, GREY, LINE, RED, named, new_figure, style, svg_text

COLOURS = {"agrees": BLUE, "unlikely": BROWN, "refuted": RED, "undecided": GREY, "no data, given": LINE}
# Other verdicts have no number of ours, or none of the paper's.
PARTS = {word: word for word in DECIDED} | dict.fromkeys(("too weak to tell", "cannot discriminate"), "undecided")


def shares():
    """Return the share of each verdict by paper, and the number of rows."""
    result = {}
    for judged in judge_papers():
        counts = collections.Counter(PARTS.get(word, "no data, given") for word in judged.verdicts)
        result[judged.paper.name] = {word: counts[word] / counts.total() for word in COLOURS}, counts.total()
    return result


def draw():
    """Make the picture's text."""
    with style():
        figure, (axes,) = new_figure(760, 240)
        figure.subplots_adjust(0.17, 0.2, 0.98, 0.86)
        parts_by_paper = shares()
        for place, (parts, _) in enumerate(reversed(parts_by_paper.values())):
            left = 0.0
            for word, share in parts.items():
                bar = axes.barh(place, 100 * share, left=left, color=COLOURS[word], height=0.7)[0]
                named(bar, f"{word}: {100 * share:.1f} %")
                left += 100 * share
        axes.set(xlim=(0, 100), xlabel="share of the paper's rows, %")
        names = [f"{name} ({total})" for name, (_, total) in reversed(parts_by_paper.items())]
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(axis="y", length=0)
        handles = [axes.barh(0, 0, color=colour, label=word) for word, colour in COLOURS.items()]
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=len(COLOURS), frameon=False)
        return svg_text(figure, "Rows of each paper by verdict")
