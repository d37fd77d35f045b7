"""Engines that leave the GPU while vLLM sleeps (`--enable-sleep-mode`). vLLM makes an object of this
class in each of its workers when that sleeps for the first time. Source: vLLM 0.32, device_allocator/sleep_mode_backend.py."""

from __future__ import annotations

from typing import List, Optional

from vllm.device_allocator.sleep_mode_backend import CuMemBackend

from ._vllm_tower import TowerEngine


class EngineBackend(CuMemBackend):  # type: ignore[misc,unused-ignore]
    """vLLM's own backend, and the engines of this process with it."""

    def suspend(self, level: int = 1) -> None:
        """Level 1 keeps the tensors of towers in host memory, level 2 waits for new ones."""
        super().suspend(level)
        for engine in list(TowerEngine.living):
            engine.suspend(keep_tensors=level == 1)

    def resume(self, tags: Optional[List[str]] = None) -> None:
        super().resume(tags)
        if tags is None or "weights" in tags:
            for engine in list(TowerEngine.living):
                engine.resume()
