"""Finds out what this machine has, without importing anything heavy."""

import ctypes
import importlib.metadata
import importlib.util
import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from assay.errors import UsageError
from assay.target import DEFAULT, Target


@dataclass(frozen=True)
class Gpu:
    name: str
    target: Target
    memory: int
    driver: str
    multiprocessors: int
    bus: str = ""
    """PCI bus id, by which NVML knows the GPU too."""


@cache
def gpu() -> Gpu | None:
    """Return the first visible GPU, asked from the driver itself; None if there is none or the driver fails."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return None
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, number, memory = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return None
    name = ctypes.create_string_buffer(128)
    cuda.cuDeviceGetName(name, 128, device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)

    def attribute(which: int) -> int:
        cuda.cuDeviceGetAttribute(ctypes.byref(number), which, device)
        return number.value

    major, minor, multiprocessors = attribute(75), attribute(76), attribute(16)
    cuda.cuDriverGetVersion(ctypes.byref(number))
    driver = f"CUDA {number.value // 1000}.{number.value % 1000 // 10}"
    version = Path("/proc/driver/nvidia/version")
    if version.exists() and (words := [w for w in version.read_text().split() if w[0].isdigit() and w.count(".") >= 2]):
        driver = f"{words[0]} ({driver})"
    bus = ctypes.create_string_buffer(32)
    cuda.cuDeviceGetPCIBusId(bus, 32, device)
    target = Target(f"sm_{major}{minor}")
    return Gpu(name.value.decode(), target, memory.value, driver, multiprocessors, bus.value.decode())


def gpus() -> int:
    """Return the number of GPUs that NVML knows, visible or not. The driver is not asked: it would not look again at
    which ones are visible."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    number = ctypes.c_uint()
    return 0 if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)) else number.value


def use(device: str) -> str:
    """Choose the device of this process and its children, before anything asks the driver: `cpu`, `cuda`, or `cuda:1`,
    counted among the visible ones. Return `cpu`, `cuda`, or an empty string if none was given."""
    kind, _, number = device.partition(":")
    if kind not in ("", "cpu", "cuda") or (number and not (kind == "cuda" and number.isdigit())):
        raise UsageError(f"no device called '{device}'", fix="cpu, cuda, or cuda:1 for the second GPU")
    if kind == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        gpu.cache_clear()
    elif kind == "cuda":
        listed = os.environ.get("CUDA_VISIBLE_DEVICES")
        visible = [v for v in listed.split(",") if v not in ("", "-1")] if listed is not None else None
        names = visible if visible is not None else [str(n) for n in range(gpus())]
        if not names:
            raise UsageError("there is no GPU here", fix="--device cpu, or leave it out")
        if int(number or 0) >= len(names):
            raise UsageError(f"there is no {device} here", fix=" or ".join(f"cuda:{n}" for n in range(len(names))))
        if number:
            os.environ["CUDA_VISIBLE_DEVICES"] = names[int(number)]
            gpu.cache_clear()
    return kind


COMPILERS = ("nvrtc", "nvcc")
_COMPILER = "ASSAY_COMPILER"


def compile_with(name: str) -> str:
    """Choose the compiler of CUDA C++ for this process and its children."""
    if name not in ("", *COMPILERS):
        raise UsageError(f"no compiler of CUDA C++ called '{name}'", fix=" or ".join(COMPILERS))
    if name:
        os.environ[_COMPILER] = name
    return name


def compiler() -> str:
    """Return the chosen compiler of CUDA C++; empty if none was chosen, so that each source uses its own."""
    return os.environ.get(_COMPILER, "")


_INCLUDE = "ASSAY_INCLUDE"


def include_from(folders: list[str] | None) -> list[str]:
    """Add folders in which CUDA sources find their headers, for this process and its children."""
    paths = [Path(folder).resolve() for folder in folders or []]
    if missing := next((given for given, path in zip(folders or [], paths, strict=True) if not path.is_dir()), ""):
        raise UsageError(f"-I {missing}: there is no such folder", fix="name the folder that the headers lie in")
    if paths:
        os.environ[_INCLUDE] = os.pathsep.join(map(str, paths))
    return folders or []


def include_folders() -> list[Path]:
    """Return the folders that were added, in their order."""
    return [Path(folder) for folder in os.environ.get(_INCLUDE, "").split(os.pathsep) if folder]


@cache
def version(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


@cache
def has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@cache
def torch_sees_cuda() -> bool:
    """Return whether torch was built for CUDA, read from its version file without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    text = (Path(spec.origin).parent / "version.py").read_text()
    return any(line.startswith("cuda") and "None" not in line for line in text.splitlines())


def runs_on_gpu() -> bool:
    return gpu() is not None and torch_sees_cuda()


@cache
def cuda_roots() -> tuple[Path, ...]:
    """Return the folders that may hold a CUDA toolkit: NVIDIA's wheels, then CUDA_HOME, then the usual folder."""
    roots = []
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or []) if spec else []:
        roots += sorted(Path(place).glob("cu[0-9]*"))
    roots += [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    roots.append(Path("/usr/local/cuda"))
    return tuple(r for r in roots if r.is_dir())


@cache
def tool(name: str) -> Path | None:
    """Return the path of a CUDA command-line tool: nvcc, ptxas, nvdisasm, cuobjdump, ncu, compute-sanitizer."""
    for root in cuda_roots():
        for folder in ("bin", "compute-sanitizer"):
            if os.access(root / folder / name, os.X_OK):
                return root / folder / name
    path = shutil.which(name)
    return Path(path) if path else None


@cache
def cuda_include() -> Path | None:
    return next((r / "include" for r in cuda_roots() if (r / "include" / "cuda_fp16.h").exists()), None)


@cache
def cuda_cpp_include() -> Path | None:
    """Return the folder of CUDA's C++ library (`<cuda/…>`, `<nv/target>`). NVIDIA's wheels ship it apart from the other
    headers, so it may have to come from a toolkit."""
    return next((r / "include" / "cccl" for r in cuda_roots() if (r / "include" / "cccl").is_dir()), None)


def cuda_headers() -> list[Path]:
    return [folder for folder in (cuda_include(), cuda_cpp_include()) if folder]


def target() -> Target:
    """Return what code is built for unless a target is named: this machine's GPU, or the default without one."""
    here = gpu()
    return here.target if here else DEFAULT


def cache_folder() -> Path:
    base = os.environ.get("ASSAY_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "assay"


def data_folder() -> Path:
    """Return the folder for data that must outlive a run: the records, the measured model of each machine."""
    base = os.environ.get("ASSAY_DATA") or os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "assay"
