"""Plans the workloads to try: coverage by construction.

A plan starts from the op's typical workload and its neighbours, adds sizes and values around the constants in the
kernel's own code, and visits every pair of levels of two factors as far as the contract and the element budget allow.
At the end it repeats earlier sizes. Pairs that are not visited are counted by reason."""

import random
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from assay.coverage import again, contract, pairs, white_box
from assay.coverage.constants import Constants
from assay.coverage.factors import Factors
from assay.coverage.row import Effort, Pair, Planned
from assay.dtype import DType
from assay.op import Op


@dataclass
class Plan:
    """Workloads in the order in which they are tried, cheap ones first and repeats of earlier sizes last, and the pairs
    that they leave out."""

    rows: list[Planned]
    pairs: int
    """The number of pairs of levels in the contract."""
    impossible: dict[str, list[Pair]] = field(default_factory=dict)
    """Pairs that no workload can visit, by reason."""
    constants: Constants = field(default_factory=Constants)

    def visited(self, tried: Iterable[Planned]) -> int:
        """Return the number of pairs that these workloads visit."""
        return len({pair for row in tried for pair in row.pairs})


def plan(
    op: Op,
    dtype: DType,
    effort: Effort,
    seed: int = 0,
    constants: Constants | None = None,
    sizes: Iterable[int] = (),
    omittable: Iterable[str] = (),
    dtypes: Iterable[DType] = (),
) -> Plan:
    """Return the workloads for one kernel and dtype. `sizes` are axis lengths to try besides all others; `omittable`
    outputs may be left out of a call; `dtypes` are all that the kernel takes."""
    known = constants or Constants()
    known = replace(known, sizes=(*dict.fromkeys((*sizes, *known.sizes)),))
    space = Factors(
        op, dtype, effort, random.Random(zlib.crc32(f"{op.name}/{dtype}/{seed}".encode())), tuple(omittable)
    )
    rows = [*contract.typical(space), *contract.huge(space), *contract.equal(space), *contract.ragged(space)]
    rows += [*contract.attributes(space), *contract.at_length(space), *contract.masked(space)]
    rows += white_box.around(space, known)
    rows += pairs.covering(space, rows.copy())
    rows += contract.multiples(space)
    distinct = {str(row.workload): row for row in reversed(rows)}
    ordered = sorted(distinct.values(), key=lambda row: _patience(op, row))
    ordered += again.revisits(space, ordered, dtypes)
    return Plan(ordered, len(space.all_pairs), space.impossible, known)


def _patience(op: Op, row: Planned) -> tuple[int, int, int]:
    """Sort key that puts cheap rows first. At about the same cost, rows with few independent results come first: each
    tends to be a block, and an interpreter runs blocks one after another."""
    return row.cost.bit_length(), dict(row.workload.axes).get(op.independent or "", 0), row.cost
