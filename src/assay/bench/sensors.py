"""What the GPU says of itself while it works, through NVML: temperature, power, and why its clocks are held down."""

from __future__ import annotations

import ctypes
from typing import Any

THROTTLE = {
    0x004: "software power cap",
    0x008: "hardware slowdown",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "hardware power brake",
}
"""Reasons that hold clocks down; being idle, or set so by the user, is none."""


class Sensors:
    """The first visible GPU; reads nothing where there is none or NVML is missing."""

    def __init__(self, bus: str = "") -> None:
        self._nvml: ctypes.CDLL | None = None
        self._device = ctypes.c_void_p()
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if nvml.nvmlInit_v2():
            return
        found = (
            nvml.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(self._device))
            if bus
            else nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._device))
        )
        self._nvml = None if found else nvml

    def read(self) -> dict[str, Any]:
        """`celsius`, `watts`, `throttle`; what cannot be read is left out."""
        if self._nvml is None:
            return {}
        seen: dict[str, Any] = {}
        number, reasons = ctypes.c_uint(), ctypes.c_ulonglong()
        if not self._nvml.nvmlDeviceGetTemperature(self._device, 0, ctypes.byref(number)):
            seen["celsius"] = number.value
        if not self._nvml.nvmlDeviceGetPowerUsage(self._device, ctypes.byref(number)):
            seen["watts"] = number.value / 1000
        if not self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._device, ctypes.byref(reasons)):
            seen["throttle"] = [name for bit, name in THROTTLE.items() if reasons.value & bit]
        return seen


def state(readings: list[dict[str, Any]]) -> dict[str, Any]:
    """Over a run: the hottest, the most power, and what held the clocks down in at least half of the readings."""
    if not readings:
        return {}
    often = {
        r for r in THROTTLE.values() if 2 * sum(r in seen.get("throttle", ()) for seen in readings) >= len(readings)
    }
    most = {
        k: max(seen[k] for seen in readings if k in seen) for k in ("celsius", "watts") if any(k in s for s in readings)
    }
    passing = {r for seen in readings for r in seen.get("throttle", ())} - often
    return {**most, "throttle": sorted(often), "throttle_passing": sorted(passing)}
