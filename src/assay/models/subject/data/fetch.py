"""`assay model fetch`: fetches data sets and weights to this machine before they are needed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from assay import provenance
from assay.errors import AssayError, UsageError
from assay.models.subject.data.asset import CACHE, Asset, Tell, silent
from assay.models.subject.data.digits import FASHION_MNIST, MNIST
from assay.models.subject.data.published import MINILM, WORD_PIECES
from assay.models.subject.data.reviews import IMDB, IMDB_OFFICIAL
from assay.record import Record, Status

ASSETS: Mapping[str, Asset] = {a.name: a for a in (MNIST, FASHION_MNIST, IMDB, WORD_PIECES, MINILM, IMDB_OFFICIAL)}
USUAL = tuple(name for name in ASSETS if name != IMDB_OFFICIAL.name)
"""Assets fetched by default. The official reviews are on a single server, and nothing needs them."""


def fetch(*names: str, run: str = "", tell: Tell = silent) -> Iterator[Record]:
    """Yield a record for each named asset (default: the usual ones), which says if it is here and verified."""
    for name in names:
        if name not in ASSETS:
            raise UsageError(f"nothing called '{name}' to fetch", fix=f"there are: {', '.join(ASSETS)}")
    run = run or provenance.new_run()
    for name in names or USUAL:
        yield _record(ASSETS[name], run, tell)


def _record(asset: Asset, run: str, tell: Tell) -> Record:
    began = time.perf_counter()
    files = {f.name: {"bytes": f.size, "sha256": f.sha256} for f in asset.files}
    try:
        origin = asset.ensure(tell)
    except AssayError as problem:
        status, reason, origin = Status.FAIL, str(problem), ""
    else:
        size = sum((asset.place / f.name).stat().st_size for f in asset.files)
        verb = "verified in" if origin == CACHE else "fetched and verified, from"
        status, reason = Status.PASS, f"{len(files)} files, {size / 1e6:.1f} MB, {verb} {origin}"
    return Record(
        "model",
        asset.name,
        "fetch",
        status,
        reason,
        run,
        evidence={"origin": origin, "files": files},
        replay=f"assay model fetch {asset.name}",
        provenance=provenance.provenance(0),
        seconds=time.perf_counter() - began,
    )
