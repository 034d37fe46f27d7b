"""Devices as torch reports them, and running one block of work on one of them.

The engine talks to a `Backend`, so that tests can inject one that reports devices this machine lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import psutil
import torch

from attnviz.frames import DeviceInfo

T = TypeVar("T")


class DeviceError(RuntimeError):
    """A device cannot be used: a sentence that says what happened, and one that says what to do."""

    def __init__(self, sentence: str, advice: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.advice = advice


class Backend(Protocol):
    """Where tensors live and blocks run. Thread: the worker's."""

    def devices(self) -> tuple[DeviceInfo, ...]:
        """Devices there are, the CPU first."""

    def torch_device(self, name: str) -> torch.device:
        """The torch device behind a spec's device name. Raises `DeviceError` where there is none."""

    def free_bytes(self, name: str) -> int:
        """Memory free on a device, in bytes."""

    def run(self, name: str, block: Callable[[], T]) -> T:
        """``block()`` on a device, finished when this returns, so that its errors belong to it."""


class TorchBackend:
    """The devices of this machine's torch."""

    def devices(self) -> tuple[DeviceInfo, ...]:
        memory = psutil.virtual_memory()
        found = [DeviceInfo("cpu", "CPU", memory.total, memory.available)]
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                free, total = torch.cuda.mem_get_info(index)
                found.append(DeviceInfo(f"cuda:{index}", torch.cuda.get_device_name(index), total, free))
        if torch.backends.mps.is_available():
            found.append(DeviceInfo("mps", "Apple GPU", memory.total, memory.available))
        return tuple(found)

    def torch_device(self, name: str) -> torch.device:
        if name == "cpu":
            return torch.device("cpu")
        names = [device.name for device in self.devices()]
        if name not in names:
            raise DeviceError(f"Device {name} is not here.", f"Choose one of: {', '.join(names)}.")
        return torch.device(name)

    def free_bytes(self, name: str) -> int:
        return next((device.free_bytes for device in self.devices() if device.name == name), 0)

    def run(self, name: str, block: Callable[[], T]) -> T:
        done = block()
        if name.startswith("cuda"):
            torch.cuda.synchronize(name)
        elif name == "mps":
            torch.mps.synchronize()
        return done
