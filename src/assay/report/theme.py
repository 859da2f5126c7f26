"""Colours and shapes: one colour per backend, one shape and colour per status, and the charts' light and dark
styles."""

from typing import Any

BACKEND_COLOURS = {
    "torch": "#8A9099",
    "inductor": "#E69F00",
    "triton": "#0072B2",
    "cuda": "#009E73",
    "cupy": "#56B4E9",
    "numba": "#CC79A7",
    "njit": "#D55E00",
}
"""Okabe and Ito's palette, whose colours can be distinguished with every kind of colour vision. Its black is replaced
by a grey that is visible on light and dark, for the baseline."""
OTHER_COLOUR = "#B3A125"

STATUS_COLOURS = {
    "pass": "#009E73",
    "compiled": "#56B4E9",
    "skipped": "#8A9099",
    "inconclusive": "#CC79A7",
    "fail": "#D55E00",
}
STATUS_SHAPES = {
    "pass": "M-1,0.05L-0.64,-0.31L-0.25,0.08L0.64,-0.81L1,-0.45L-0.25,0.8Z",
    "compiled": "M0,-0.85A0.85,0.85,0,1,1,0,0.85A0.85,0.85,0,1,1,0,-0.85ZM0,0.55A0.55,0.55,0,0,0,0,-0.55Z",
    "skipped": "M-0.8,-0.22H0.8V0.22H-0.8Z",
    "inconclusive": "M0,-0.85L0.95,0.8H-0.95Z",
    "fail": "M-0.9,-0.55L-0.55,-0.9L0,-0.35L0.55,-0.9L0.9,-0.55L0.35,0"
    "L0.9,0.55L0.55,0.9L0,0.35L-0.55,0.9L-0.9,0.55L-0.35,0Z",
}
"""Outlines in the square from −1 to 1, used for both the charts' symbols and the page's icons."""

FONT = 'Inter, "Segoe UI", system-ui, -apple-system, Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'

LIGHT = {"ink": "#1f2328", "soft": "#59636e", "line": "#d8dee4", "grid": "#ebeef1", "ground": "#ffffff"}
DARK = {"ink": "#e6edf3", "soft": "#9aa4af", "line": "#39414a", "grid": "#262c33", "ground": "#161b22"}


def config(skin: dict[str, str]) -> dict[str, Any]:
    """Return Vega-Lite's configuration for one set of colours. For text and lines, charts use style names instead of
    colours."""
    ink, soft, line, grid = (skin[k] for k in ("ink", "soft", "line", "grid"))
    return {
        "background": None,
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None, "continuousWidth": 900, "continuousHeight": 320},
        "title": {
            "color": ink,
            "subtitleColor": soft,
            "anchor": "start",
            "fontSize": 13,
            "subtitleFontSize": 12,
            "fontWeight": 600,
            "offset": 10,
            "subtitlePadding": 4,
        },
        "axis": {
            "labelColor": soft,
            "titleColor": soft,
            "domainColor": line,
            "tickColor": line,
            "gridColor": grid,
            "labelFontSize": 11.5,
            "titleFontSize": 11.5,
            "titleFontWeight": 400,
            "labelPadding": 6,
            "titlePadding": 10,
            "tickSize": 4,
            "labelLimit": 260,
        },
        "axisY": {"domain": False, "ticks": False},
        "legend": {
            "labelColor": ink,
            "titleColor": soft,
            "labelFontSize": 11.5,
            "titleFontSize": 11.5,
            "titleFontWeight": 400,
            "symbolType": "circle",
            "symbolStrokeWidth": 0,
            "orient": "top",
            "direction": "horizontal",
            "columnPadding": 16,
            "titleOrient": "left",
            "offset": 12,
            "titlePadding": 10,
            "layout": {"top": {"anchor": "start", "margin": 28}},
        },
        "header": {
            "labelColor": ink,
            "titleColor": soft,
            "labelFontSize": 12,
            "labelFontWeight": 600,
            "labelAnchor": "start",
            "titleFontWeight": 400,
            "labelPadding": 8,
        },
        "text": {"color": ink, "fontSize": 11.5},
        "rule": {"color": soft},
        "tick": {"color": ink},
        "bar": {"cornerRadiusEnd": 2},
        "style": {
            "whisker": {"color": ink, "strokeWidth": 1.25, "opacity": 0.85},
            "one": {"color": soft, "strokeWidth": 1},
            "limit": {"color": ink, "strokeWidth": 1.25, "strokeDash": [4, 3]},
            "limit-label": {"color": soft, "fontSize": 11, "fontStyle": "italic"},
            "ceiling": {"color": soft, "strokeWidth": 1.5},
            "halo": {"stroke": skin["ground"], "strokeWidth": 4, "strokeJoin": "round"},
        },
    }


LIGHT_CONFIG = config(LIGHT)
DARK_CONFIG = config(DARK)
