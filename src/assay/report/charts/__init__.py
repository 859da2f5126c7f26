"""The charts of the page, in its order. Each is a file with a pure function `draw` from records to a chart, or to None
if there is nothing to draw. Importing this package imports Altair, which takes a second."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.record import Record
from assay.report.charts import (
    attention,
    compile,
    compress,
    copy,
    heatmap,
    infer,
    roofline,
    runtime,
    samples,
    scaling,
    search,
    sensitivity,
    trade,
    train,
    verdicts,
)
from assay.report.charts.parts import Chart


@dataclass(frozen=True)
class Figure:
    name: str
    """The file name of its picture, and its anchor on the page."""
    title: str
    caption: str
    """How to read the chart."""
    draw: Callable[[Sequence[Record]], Chart | None]

    def spec(self, records: Sequence[Record]) -> dict[str, Any] | None:
        """Return the chart as plain Vega-Lite. It has no configuration of its own: the page and the pictures add
        one."""
        chart = self.draw(records)
        spec = chart.to_dict(validate=False) if chart is not None else {}  # the tests validate it
        return {key: value for key, value in spec.items() if key not in ("config", "$schema")} or None


FIGURES = (
    Figure(
        "verdicts",
        "Verdicts",
        "The worst error over all dtypes and variants, as a share of the derived tolerance: "
        "100 % is where a kernel fails. Variants and dtypes that were skipped are counted below.",
        verdicts.draw,
    ),
    Figure(
        "runtime",
        "Runtime and speedup",
        "Median of one cold call, with its 95 % interval over rounds. Dashed: the "
        "floor that the machine model sets. Speedups are against the named baseline, measured in the same rounds. "
        "? marks an inconclusive time.",
        runtime.draw,
    ),
    Figure(
        "roofline",
        "Roofline",
        "Each point is one kernel and workload. Ceilings say which machine model they come from.",
        roofline.draw,
    ),
    Figure(
        "copy",
        "Against a copy",
        "Bandwidth as a share of a plain copy of the same bytes, timed in the same run: 100 % is as fast as copying.",
        copy.draw,
    ),
    Figure(
        "scaling",
        "Scaling",
        "Cold time and bandwidth along one axis of a sweep, everything else held. The thin "
        "dashed line is a copy of the same bytes; a coloured dashed one is a variant.",
        scaling.draw,
    ),
    Figure("heatmap", "Shapes", "Two axes of a sweep at once, one panel per kernel.", heatmap.draw),
    Figure(
        "samples",
        "Every sample",
        "All timed samples, one line of points per round: what the interval must cover "
        "is the offset between rounds, not only the jitter inside one.",
        samples.draw,
    ),
    Figure("models", infer.TITLE, infer.CAPTION, infer.draw),
    Figure("training", train.TITLE, train.CAPTION, train.draw),
    Figure("compile", compile.TITLE, compile.CAPTION, compile.draw),
    Figure("attention", attention.TITLE, attention.CAPTION, attention.draw),
    Figure(
        compress.QUANTIZE,
        compress.TITLES[compress.QUANTIZE],
        compress.CAPTIONS[compress.QUANTIZE],
        compress.draw_quantized,
    ),
    Figure(compress.PRUNE, compress.TITLES[compress.PRUNE], compress.CAPTIONS[compress.PRUNE], compress.draw_pruned),
    Figure("formats", trade.FORMATS_TITLE, trade.FORMATS_CAPTION, trade.draw_formats),
    Figure("pareto", trade.PARETO_TITLE, trade.PARETO_CAPTION, trade.draw_pareto),
    Figure("latency", trade.LATENCY_TITLE, trade.LATENCY_CAPTION, trade.draw_latency),
    Figure("search", search.TITLE, search.CAPTION, search.draw),
    Figure("sensitivity", sensitivity.TITLE, sensitivity.CAPTION, sensitivity.draw),
)
