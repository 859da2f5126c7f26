"""Reads the GPU's own sensors through NVML: temperature, power, and the reasons for reduced clocks."""

import ctypes
from collections import Counter
from typing import Any

THROTTLE = {
    0x004: "software power cap",
    0x008: "hardware slowdown",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "hardware power brake",
}
"""Reasons for reduced clocks. An idle GPU, or clocks set by the user, do not count."""


class Sensors:
    """The sensors of one GPU. Without NVML nothing is read."""

    def __init__(self, bus: str) -> None:
        self._nvml: ctypes.CDLL | None = None
        self._device = ctypes.c_void_p()
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if nvml.nvmlInit_v2():
            return
        missing = (
            nvml.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(self._device))
            if bus
            else nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._device))
        )
        self._nvml = None if missing else nvml

    def read(self) -> dict[str, Any]:
        """Return `celsius`, `watts` and `throttle`, without those that cannot be read."""
        if self._nvml is None:
            return {}
        reading: dict[str, Any] = {}
        number, reasons = ctypes.c_uint(), ctypes.c_ulonglong()
        if not self._nvml.nvmlDeviceGetTemperature(self._device, 0, ctypes.byref(number)):
            reading["celsius"] = number.value
        if not self._nvml.nvmlDeviceGetPowerUsage(self._device, ctypes.byref(number)):
            reading["watts"] = number.value / 1000
        if not self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._device, ctypes.byref(reasons)):
            reading["throttle"] = [name for bit, name in THROTTLE.items() if reasons.value & bit]
        return reading

    def busy(self) -> int | None:
        """Return the GPU's utilization over the last sampling period in per cent, or None if it cannot be read."""
        rates = (ctypes.c_uint * 2)()  # of the multiprocessors, of the memory
        if self._nvml is None or self._nvml.nvmlDeviceGetUtilizationRates(self._device, rates):
            return None
        return int(rates[0])


def state(readings: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the highest temperature and power, and what reduced the clocks: in at least half of the readings
    (`throttle`), or in fewer (`throttle_passing`)."""
    if not readings:
        return {}
    counts = Counter(reason for reading in readings for reason in reading.get("throttle", ()))
    often = {reason for reason, count in counts.items() if 2 * count >= len(readings)}
    values = {key: [r[key] for r in readings if key in r] for key in ("celsius", "watts")}
    most = {key: max(seen) for key, seen in values.items() if seen}
    return {**most, "throttle": sorted(often), "throttle_passing": sorted(set(counts) - often)}
