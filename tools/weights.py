"""Carry data sets and weights to a machine without internet in slices of limited size, with every byte verified there.

    python3 tools/weights.py pack --slice-mb 60        here, after `assay model fetch mnist imdb minilm`
    python3 tools/weights.py unpack build/weights      there; slices may arrive one at a time, in any order

Files larger than a slice are split. It uses only the standard library, so that it runs where nothing is installed.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "weights"
MB = 1_000_000
MANIFEST = "manifest.json"
USUAL = ("datasets/mnist", "datasets/imdb", "weights/minilm")
ARRIVED = "arrived"
"""Folder below the data folder for parts of incomplete files, named by their hash."""


def data_folder() -> Path:
    """Return the same folder as assay.host.data_folder()."""
    base = os.environ.get("ASSAY_DATA") or os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "assay"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def files_in(data: Path, wanted: list[str]) -> list[Path]:
    """Return all files below the requested paths in the data folder."""
    listed: list[Path] = []
    for name in wanted:
        place = data / name
        files = [place] if place.is_file() else sorted(p for p in place.glob("**/*") if p.is_file())
        files = [f for f in files if not f.name.startswith(".")]
        if not files:
            raise SystemExit(f"nothing at {place}: `assay model fetch {PurePosixPath(name).name}` brings it")
        listed += files
    return listed


def pack(data: Path, wanted: list[str], limit: int, out: Path) -> dict[str, Any]:
    """Split the files into slices of at most `limit` bytes below `out`, each with the whole manifest. Old content of
    `out` is removed."""
    if limit < 1:
        raise SystemExit("a slice must hold something (--slice-mb)")
    sources = files_in(data, wanted)
    shutil.rmtree(out, ignore_errors=True)
    files, number, room = [], 1, limit
    for source in sources:
        whole, parts, begin = source.read_bytes(), [], 0
        while begin < len(whole) or not parts:
            if not room:
                number, room = number + 1, limit
            piece = whole[begin : begin + room]
            name = sha256(piece)
            folder = out / f"slice-{number}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.part").write_bytes(piece)
            parts.append({"slice": number, "bytes": len(piece), "sha256": name})
            begin, room = begin + len(piece), room - len(piece)
        path = source.relative_to(data).as_posix()
        files.append({"path": path, "bytes": len(whole), "sha256": sha256(whole), "parts": parts})
    manifest = {"slices": number, "files": files}
    for folder in out.glob("slice-*"):
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def unpack(arrived: Path, data: Path) -> list[str]:
    """Read the slices below `arrived`, put every complete file in its place, and return what is missing."""
    manifests = {text for path in arrived.glob(f"**/{MANIFEST}") if (text := path.read_text())}
    if not manifests:
        raise SystemExit(f"no slice below {arrived}: it should hold slice-N/{MANIFEST}")
    if len(manifests) > 1:
        raise SystemExit(f"slices of different packings are below {arrived}: keep those of one")
    missing = []
    for file in listed(manifests.pop()):
        target = data / file["path"]
        if target.is_file() and sha256(target.read_bytes()) == file["sha256"]:
            continue
        lacking = sorted({p["slice"] for p in file["parts"] if not keep(p, arrived, data / ARRIVED)})
        if lacking:
            missing.append(f"{file['path']}: slice {', '.join(map(str, lacking))}")
            continue
        whole = b"".join((data / ARRIVED / p["sha256"]).read_bytes() for p in file["parts"])
        if sha256(whole) != file["sha256"]:
            raise SystemExit(f"{file['path']}: its parts are whole and it is not; pack again")
        write(target, whole)
    if not missing:
        shutil.rmtree(data / ARRIVED, ignore_errors=True)
    return missing


def keep(part: dict[str, Any], arrived: Path, store: Path) -> bool:
    """Store the part if it has arrived, and return whether it is stored, now or from an earlier call. A damaged part
    counts as not arrived."""
    kept = store / part["sha256"]
    if kept.is_file() and sha256(kept.read_bytes()) == part["sha256"]:
        return True
    for path in arrived.glob(f"**/{part['sha256']}.part"):
        piece = path.read_bytes()
        if sha256(piece) == part["sha256"]:
            write(kept, piece)
            return True
        print(f"{path} is damaged: carry slice {part['slice']} again", file=sys.stderr)
    return False


def write(path: Path, content: bytes) -> None:
    """Write the file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as problem:
        raise SystemExit(f"cannot write {path}: {problem.strerror}; it needs {len(content) / MB:.1f} MB") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def listed(text: str) -> list[dict[str, Any]]:
    """Return the files of a manifest, which may name only parts by their hash and files below the data folder."""
    try:
        files = [
            {
                **{k: file[k] for k in ("path", "sha256")},
                "parts": [{k: p[k] for k in ("slice", "sha256")} for p in parts],
            }
            for file in json.loads(text)["files"]
            if (parts := file["parts"])
        ]
    except (ValueError, KeyError, TypeError):
        raise SystemExit("a damaged manifest: carry the slice again") from None
    for file in files:
        path = PurePosixPath(file["path"])
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise SystemExit(f"a manifest that names {file['path']!r}: not unpacked")
        if not all(re.fullmatch("[0-9a-f]{64}", p["sha256"]) for p in file["parts"]):
            raise SystemExit(f"a manifest whose parts of {file['path']} have no hash: not unpacked")
    return files


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing = verbs.add_parser("pack", help="cut files of the data folder into slices")
    packing.add_argument("what", nargs="*", default=list(USUAL), help=f"below the data folder ({', '.join(USUAL)})")
    packing.add_argument("--slice-mb", type=float, default=60, help="no slice is larger than this (60)")
    packing.add_argument("--out", type=Path, default=OUT)
    unpacking = verbs.add_parser("unpack", help="take in slices; says what is missing, exit code 1 while it is")
    unpacking.add_argument("arrived", type=Path, nargs="?", default=OUT, help="a folder with slices below it")
    for sub in (packing, unpacking):
        sub.add_argument("--data", type=Path, default=None, help="the data folder ($ASSAY_DATA/assay)")
    args = parser.parse_args(argv)
    data = args.data or data_folder()
    if args.verb == "pack":
        manifest = pack(data, args.what, int(args.slice_mb * MB), args.out)
        total = sum(f["bytes"] for f in manifest["files"])
        print(f"{len(manifest['files'])} files, {total / MB:.1f} MB in {manifest['slices']} slice(s): {args.out}")
        print("there, as slices arrive: python3 tools/weights.py unpack")
        return 0
    missing = unpack(args.arrived, data)
    for line in missing:
        print(f"still missing: {line}")
    if not missing:
        print(f"all files are in {data}, verified")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
