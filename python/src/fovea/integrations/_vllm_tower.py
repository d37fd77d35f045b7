"""The module in the place of vLLM's vision tower. Needs vLLM and torch."""

from __future__ import annotations

import logging
from typing import Any, Dict, Iterable, Optional, Set, Tuple

import torch

from .._engine import Engine
from .._error import Error
from ._patches import checkpoint_folder, rows_of_patches

_logger = logging.getLogger("fovea.vllm")


class EngineTower(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """Rows of an engine as `visual(patches, grid_thw)` of vLLM returns them. `built` is vLLM's tower on
    the meta device: it answers what others ask a tower for (`spatial_merge_size`, `out_hidden_size`)."""

    def __init__(self, built: torch.nn.Module, model_config: Any, options: Dict[str, Any]) -> None:
        super().__init__()
        self.__dict__["_built"] = built  # no module of this one: it has no weights that could be loaded
        # Data-parallel sharding asks the tower for the type of its parameters.
        self.marker = torch.nn.Parameter(torch.empty(0, dtype=model_config.dtype, device="cpu"), requires_grad=False)
        self._folder = checkpoint_folder(model_config.model, model_config.revision)
        self._options = options
        self._tensors: Dict[str, torch.Tensor] = {}
        self._engine: Optional[Engine] = None
        self._problem = "no weights have been loaded"

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_built"], name)

    @property
    def dtype(self) -> torch.dtype:
        return self.marker.dtype

    def load_weights(self, weights: Iterable[Tuple[str, torch.Tensor]]) -> Set[str]:
        """Takes tensors of the tower; vLLM calls it for every file that has some. The engine is made as soon
        as none is missing. @raises Error for misshapen and unusable ones, and for wrong options."""
        self._tensors.update((f"visual.{name}", tensor) for name, tensor in weights)
        try:
            self._engine = self._make_engine()
        except Error as error:
            if error.code != "not_found":
                raise
            self._problem = str(error)
        else:
            self._tensors.clear()
        return {"marker"}

    def _make_engine(self) -> Engine:
        from vllm.platforms import current_platform

        defaults: Dict[str, Any] = {"device": "cpu"}
        if current_platform.is_cuda():
            defaults["device"] = f"cuda:{torch.cuda.current_device()}"
        engine = Engine.from_weights(self._folder, self._tensors, **{**defaults, **self._options})
        engine.warm_up()  # what it captures is there when vLLM measures memory
        _logger.info("%r computes the vision tower", engine)
        return engine

    def forward(self, x: torch.Tensor, grid_thw: Any, **unknown: Any) -> torch.Tensor:
        """`x` [patches, C * T * P * P] of all items, bytes or normalised floats; `grid_thw` [items, 3].
        Returns [rows, hidden * (1 + levels)] on the device of `x`. Patches pass through host memory."""
        if self._engine is None:
            raise RuntimeError(f"Fovea's vision tower: {self._problem}")
        if unknown:
            raise TypeError(f"Fovea's vision tower takes patches and grids, got {', '.join(unknown)} too")
        return rows_of_patches(self._engine, x, grid_thw, self.dtype)
