"""Loss curves on the page."""

from hypothesis import given
from hypothesis import strategies as st

from assay.report.charts.train import thinned


@given(st.lists(st.floats(0, 100), max_size=400))
def test_a_curve_of_any_length_keeps_its_last_step_and_its_mean_loss(losses):
    """Of no step at all, too: a training may diverge at once."""
    points = thinned(list(enumerate(losses)))
    assert len(points) <= 60 and bool(points) == bool(losses)
    if losses:
        assert points[-1][0] == len(losses) - 1
        assert (
            min(losses) - 1e-9
            <= min(loss for _, loss in points)
            <= max(loss for _, loss in points)
            <= max(losses) + 1e-9
        )
