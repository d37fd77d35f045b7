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
    the meta device: it answers what others ask a tower for (`spatial_merge_size`, `out_hidden_size`).

    Ranks of tensor parallelism: with `--mm-encoder-tp-mode data` vLLM gives each of them items of its own. With
    `weights` it gives all of them the same ones, so that one rank has an engine and the others its rows."""

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
        self._group = _group_of_one_engine(model_config)
        self._width: Optional[int] = None  # of rows, when the ranks of the group have agreed on it

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
        if self._group is not None and not self._group.is_first_rank:
            for _ in weights:  # the loader goes on when they have been taken
                pass
            return {"marker"}
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
        Returns [rows, hidden * (1 + levels)] on the device of `x`."""
        if unknown:
            raise TypeError(f"Fovea's vision tower takes patches and grids, got {', '.join(unknown)} too")
        if self._group is None:
            return self._encode(x, grid_thw)
        return self._encode_once(self._group, x, grid_thw)

    def _encode(self, x: torch.Tensor, grid_thw: Any) -> torch.Tensor:
        return rows_of_patches(self._loaded(), x, grid_thw, self.dtype)

    def _encode_once(self, group: Any, x: torch.Tensor, grid_thw: Any) -> torch.Tensor:
        """As forward(), called by all ranks. One that fails ends vLLM, and with it those that wait."""
        if group.is_first_rank:
            rows = self._encode(x, grid_thw)
            if self._width is None:
                self._width = group.broadcast_object(rows.shape[1])
            return group.broadcast(rows)
        if self._width is None:
            self._width = group.broadcast_object()
        num_rows = int(torch.as_tensor(grid_thw).prod(-1).sum()) // self.spatial_merge_size**2
        return group.broadcast(torch.empty(num_rows, self._width, dtype=self.dtype, device=x.device))

    def _loaded(self) -> Engine:
        if self._engine is None:
            raise RuntimeError(f"Fovea's vision tower: {self._problem}")
        return self._engine


def _group_of_one_engine(model_config: Any) -> Any:
    """The ranks of which the first encodes for all; None: each encodes what it is given."""
    from vllm.distributed import get_tp_group

    if model_config.get_multimodal_config().mm_encoder_tp_mode == "data":
        return None
    group = get_tp_group()
    return group if group.world_size > 1 else None
