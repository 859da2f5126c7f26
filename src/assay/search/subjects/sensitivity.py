"""The sensitivity of each layer: one tensor at each width, all others unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.compress.treatment import Treatment
from assay.models.subject.knobs import Knob
from assay.search.subjects.precision import Precision

if TYPE_CHECKING:
    from assay.search.space import Space


class Sensitivity(Precision):
    """A point is a tensor and a width."""

    def space(self) -> Space:
        tensors = tuple(f"{path}.{part}" for path, part in sorted(self._values))
        widths = tuple(map(str, sorted(self.setup.widths)))
        return {"tensor": Knob(tensors, tensors[0]), "width": Knob(widths, widths[0])}

    def treatments(self, point: Mapping[str, str]) -> dict[str, Treatment]:
        return super().treatments({point["tensor"]: point["width"]})
