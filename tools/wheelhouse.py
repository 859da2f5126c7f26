"""Collect the pinned wheels that a GPU machine without internet needs, in folders of limited size.

    python3 tools/wheelhouse.py --python 3.12 --platform x86_64 --slice-mb 60 [--peers]
    python3 tools/wheelhouse.py --join         on the other machine: join the parts of large wheels

Such a machine keeps its own torch, triton, cupy, numba and CUDA (see HOST), which fit its driver and are gigabytes in
size. What it usually lacks is small (see NEEDED); `--peers` adds the kernels of other projects with which Assay is
compared (peers.txt). A wheel larger than a slice is split into parts. The script uses only the standard library and
pip, so that it runs before `make venv`.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MB = 1_000_000

# Packages that the GPU machine is expected to have already, with their dependencies (except numpy).
HOST = frozenset({"torch", "triton", "numba", "numba-cuda", "cuda-core", "cuda-bindings", "cupy-cuda13x"})

# name -> why it is needed. Versions come from constraints.txt, never from here.
NEEDED = {
    "numpy": "below 2.4: newer ones break numba-cuda 0.30 and Triton 3.6's interpreter",
    "pydantic": "records read from outside",
    "pydantic-core": "pydantic's compiled half, of exactly its version",
    "annotated-types": "pydantic",
    "typing-inspection": "pydantic",
    "typing-extensions": "pydantic; the machine's own may be too old for it",
    "psutil": "process trees and memory of workers",
    "typer": "the command line",
    "annotated-doc": "typer",
    "shellingham": "typer",
    "rich": "tables and progress",
    "markdown-it-py": "rich",
    "mdurl": "markdown-it-py",
    "pygments": "rich",
    "sqlalchemy": "the store of records",
}
TESTS = {
    "hypothesis": "property tests",
    "sortedcontainers": "hypothesis",
    "pytest-xdist": "tests side by side",
    "execnet": "pytest-xdist",
}

# Newest first. Every wheel we use runs on glibc 2.28, and every machine that runs CUDA 13 has at least that.
GLIBC = ("2_28", "2_27", "2_26", "2_24", "2_17", "2_12", "2_5")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(constraints: Path) -> dict[str, str]:
    """Read canonical name -> exact version from a constraints file."""
    lines = (line.split("#")[0].strip() for line in constraints.read_text().splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {canonical(name): version for name, version in pairs}


def choose(pins: dict[str, str], full: bool, peers: dict[str, str] | None = None) -> dict[str, str]:
    """Return name -> version of the wheels to collect. `full`: every pin except torch, which must fit the driver."""
    names = (set(pins) - {"torch"}) if full else set(NEEDED | TESTS)
    if missing := names - set(pins):
        raise SystemExit(f"not pinned in constraints.txt: {', '.join(sorted(missing))}")
    return dict(sorted({**{name: pins[name] for name in names}, **(peers or {})}.items()))


def download(wanted: dict[str, str], python: str, platform: str, into: Path) -> list[Path]:
    tags = [f"--platform=manylinux_{glibc}_{platform}" for glibc in GLIBC]
    tags += [f"--platform=manylinux{year}_{platform}" for year in ("2014", "2010", "1")]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--no-deps"]
    command += [f"--python-version={python}", "--implementation=cp", *tags, f"--dest={into}"]
    subprocess.run([*command, *(f"{name}=={version}" for name, version in wanted.items())], check=True)
    return sorted(into.glob("*.whl"))


def pack(sizes: dict[str, int], limit: int) -> list[list[str]]:
    """Pack files into slices of at most `limit` bytes by first-fit-decreasing."""
    slices: list[tuple[int, list[str]]] = []
    for name, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        if size > limit:
            raise SystemExit(f"{name} alone is {size / MB:.1f} MB: a slice must hold it (--slice-mb)")
        for i, (used, names) in enumerate(slices):
            if used + size <= limit:
                slices[i] = (used + size, [*names, name])
                break
        else:
            slices.append((size, [name]))
    return [sorted(names) for _, names in slices]


def split(wheels: list[Path], limit: int) -> list[Path]:
    """Return the same files, those above `limit` bytes split into parts: NAME.whl.1, NAME.whl.2, …"""
    result = []
    for wheel in wheels:
        data = wheel.read_bytes() if wheel.stat().st_size > limit else b""
        for number, start in enumerate(range(0, len(data), limit), 1):
            result.append(wheel.with_name(f"{wheel.name}.{number}"))
            result[-1].write_bytes(data[start : start + limit])
        if not data:
            result.append(wheel)
    return result


def join(out: Path) -> list[Path]:
    """Join the parts of wheels in the first part's folder, and remove the parts."""
    parts: dict[str, list[Path]] = {}
    for part in out.glob("slice-*/*.whl.*"):
        parts.setdefault(part.stem, []).append(part)
    wheels = []
    for name, found in parts.items():
        found.sort(key=lambda part: int(part.suffix[1:]))
        wheels.append(found[0].with_name(name))
        wheels[-1].write_bytes(b"".join(part.read_bytes() for part in found))
        for part in found:
            part.unlink()
    return wheels


def write(wheels: list[Path], limit: int, out: Path, python: str, platform: str) -> dict[str, object]:
    """Move wheels into `out`/slice-N and describe them in INDEX.json. The old content of `out` is removed."""
    by_name = {wheel.name: wheel for wheel in split(wheels, limit)}
    plan = pack({name: wheel.stat().st_size for name, wheel in by_name.items()}, limit)
    shutil.rmtree(out, ignore_errors=True)
    entries = []
    for number, names in enumerate(plan, 1):
        folder = out / f"slice-{number}"
        folder.mkdir(parents=True)
        for name in names:
            path = Path(shutil.move(by_name[name], folder / name))
            distribution = canonical(name.split("-")[0])
            entries.append(
                {
                    "file": f"{folder.name}/{name}",
                    "bytes": path.stat().st_size,
                    "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                    "why": (NEEDED | TESTS).get(distribution, "pinned in constraints.txt or peers.txt"),
                }
            )
    index = {"python": python, "platform": platform, "slices": len(plan), "wheels": entries}
    (out / "INDEX.json").write_text(json.dumps(index, indent=2) + "\n")
    return index


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", default="3.12", help="the other machine's Python (3.12)")
    parser.add_argument("--platform", default="x86_64", choices=["x86_64", "aarch64"])
    parser.add_argument("--slice-mb", type=float, default=60, help="no folder is larger than this (60)")
    parser.add_argument("--full", action="store_true", help="every pin but torch, not only what is lacking")
    parser.add_argument("--peers", action="store_true", help="and the kernels of other projects in peers.txt")
    parser.add_argument("--join", action="store_true", help="put parts of wheels together, nothing else")
    parser.add_argument("--out", type=Path, default=ROOT / "wheelhouse")
    args = parser.parse_args(argv)

    if args.join:
        print("\n".join(map(str, join(args.out))) or "no wheel is in parts")
        return
    peers = read_pins(ROOT / "peers.txt") if args.peers else {}
    wanted = choose(read_pins(ROOT / "constraints.txt"), args.full, peers)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            wheels = download(wanted, args.python, args.platform, Path(scratch))
        except subprocess.CalledProcessError as error:
            raise SystemExit(f"pip download failed ({error.returncode}): its reason stands above") from None
        index = write(wheels, int(args.slice_mb * MB), args.out, args.python, args.platform)

    total = sum(file.stat().st_size for file in args.out.glob("slice-*/*"))
    shown = args.out.relative_to(Path.cwd()) if args.out.is_relative_to(Path.cwd()) else args.out
    print(f"{len(wanted)} wheels, {total / MB:.1f} MB in {index['slices']} slice(s): {shown}/INDEX.json")
    print("on the other machine:")
    if list(args.out.glob("slice-*/*.whl.*")):
        print("  python3 tools/wheelhouse.py --join")
    print(f"  python3 -m pip install --no-index --no-deps {shown}/slice-*/*.whl")


if __name__ == "__main__":
    main()
