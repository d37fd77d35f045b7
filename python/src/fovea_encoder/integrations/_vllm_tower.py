"""Modules in the place of those that vLLM's models compute rows with. Needs vLLM and torch."""

from __future__ import annotations

import logging
import weakref
from typing import Any, Callable, ClassVar, Dict, Iterable, List, Mapping, Optional, Set, Tuple

import torch

from .._engine import Engine
from .._error import Error
from ._patches import Items, checkpoint_folder, items_of_patches, rows_of_items

_logger = logging.getLogger("fovea.vllm")


class TowerEngine:
    """The engine of a model in vLLM, made of the tensors that vLLM's loader hands over.

    `shared_by`: the ranks of tensor parallelism that are given the same items, of which the first one has an engine and
    the others get its rows; None: each rank encodes what it is given. `sleeps`: the tensors are kept, so that resume() can
    make the engine again."""

    living: ClassVar["weakref.WeakSet[TowerEngine]"] = weakref.WeakSet()

    def __init__(self, model_config: Any, options: Dict[str, Any], shared_by: Any, sleeps: bool = False) -> None:
        TowerEngine.living.add(self)
        self.dtype = model_config.dtype
        self.folder = checkpoint_folder(model_config.model, model_config.revision)
        self._options = options
        self._tensors: Dict[str, torch.Tensor] = {}  # of an engine that is not complete yet
        self._kept: Dict[str, torch.Tensor] = {}  # of the engine
        self._engine: Optional[Engine] = None
        self._problem = "no weights have been loaded"
        self._group = shared_by
        self._sleeps = sleeps

    def load(self, weights: Iterable[Tuple[str, torch.Tensor]]) -> None:
        """Takes tensors under the names of the checkpoint. The engine is made as soon as none is missing.
        @raises Error for misshapen and unusable ones, and for wrong options."""
        if self._group is not None and not self._group.is_first_rank:
            for _ in weights:  # the loader goes on when they have been taken
                pass
            return
        self._tensors.update(weights)
        try:
            self._engine = self._make_engine()
        except Error as error:
            if error.code != "not_found":
                raise
            self._problem = str(error)
        else:
            self._kept = {name: tensor.cpu() for name, tensor in self._tensors.items()} if self._sleeps else {}
            self._tensors.clear()

    def suspend(self, keep_tensors: bool) -> None:
        """Lets go of the engine and of its memory. Without `keep_tensors` load() has to bring all of them again."""
        self._engine = None
        self._problem = "it sleeps"
        if not keep_tensors:
            self._kept = {}

    def resume(self) -> None:
        """Makes the engine again of the tensors that were kept, if there are any."""
        if self._engine is None and self._kept:
            self.load(list(self._kept.items()))

    def _make_engine(self) -> Engine:
        from vllm.platforms import current_platform

        defaults: Dict[str, Any] = {"device": "cpu"}
        if current_platform.is_cuda():
            defaults["device"] = f"cuda:{torch.cuda.current_device()}"
        engine = Engine.from_weights(self.folder, self._tensors, **{**defaults, **self._options})
        engine.warm_up()  # what it captures is there when vLLM measures memory
        _logger.info("%r computes the vision tower", engine)
        return engine

    def rows(self, items: Callable[[Engine], Items], device: torch.device) -> Tuple[torch.Tensor, List[int]]:
        """Rows [rows, width] of the items on `device`, and how many each item has. Called by all ranks: one that fails
        ends vLLM, and with it those that wait."""
        if self._group is None or self._group.is_first_rank:
            engine = self._loaded()
            rows, counts = rows_of_items(engine, items(engine), self.dtype, device)
            if self._group is None:
                return rows, counts
            self._group.broadcast_object((counts, rows.shape[1]))
            return self._group.broadcast(rows), counts
        counts, width = self._group.broadcast_object()
        return self._group.broadcast(torch.empty(sum(counts), width, dtype=self.dtype, device=device)), counts

    def _loaded(self) -> Engine:
        if self._engine is None:
            raise RuntimeError(f"Fovea's vision tower: {self._problem}")
        return self._engine


class EnginePart(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A module whose tensors go to the engine, and that is not called: an engine computes all parts at once. `built` is
    vLLM's module on the meta device: it answers what others ask for (`spatial_merge_size`, `out_hidden_size`)."""

    prefix = ""  # of its tensors in the checkpoint: the name that the model gives it, and a dot
    renamed: Mapping[str, str] = {}  # beginnings of their names with it, where the checkpoint has others

    def __init__(self, built: torch.nn.Module, engine: TowerEngine) -> None:
        super().__init__()
        self.__dict__["_built"] = built  # no module of this one: it has no weights that could be loaded
        self.engine = engine
        # Data-parallel sharding asks the tower for the type of its parameters.
        self.marker = torch.nn.Parameter(torch.empty(0, dtype=engine.dtype, device="cpu"), requires_grad=False)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_built"], name)

    @property
    def dtype(self) -> torch.dtype:
        return self.marker.dtype

    def load_weights(self, weights: Iterable[Tuple[str, torch.Tensor]]) -> Set[str]:
        """vLLM calls it for every file that has some tensors of the module. @raises Error as TowerEngine.load()."""
        self.engine.load((self._stored_name(self.prefix + name), tensor) for name, tensor in weights)
        return {"marker"}

    def _stored_name(self, name: str) -> str:
        for loaded, stored in self.renamed.items():
            if name.startswith(loaded):
                return stored + name[len(loaded) :]
        return name

    def forward(self, *values: Any, **more: Any) -> Any:
        raise RuntimeError(f"Fovea's vision tower: vLLM calls {self.prefix[:-1]} in a way that is not known")


class EngineTower(EnginePart):
    """Rows of an engine as `visual(patches, grid_thw)` of vLLM returns them."""

    def forward(self, x: torch.Tensor, grid_thw: Any, **unknown: Any) -> torch.Tensor:
        """`x` [patches, C * T * P * P] of all items, bytes or normalised floats; `grid_thw` [items, 3].
        Returns [rows, hidden * (1 + levels)] on the device of `x`."""
        if unknown:
            raise TypeError(f"Fovea's vision tower takes patches and grids, got {', '.join(unknown)} too")
        return self.engine.rows(lambda engine: items_of_patches(engine, x, grid_thw), x.device)[0]


def sharing_ranks(model_config: Any, are_items_divided: bool) -> Any:
    """The ranks that are given the same items; None: there is one, or vLLM divides the items among them, which it does in
    towers that are called as `visual`, with `--mm-encoder-tp-mode data`."""
    from vllm.distributed import get_tp_group

    if are_items_divided and model_config.get_multimodal_config().mm_encoder_tp_mode == "data":
        return None
    group = get_tp_group()
    return group if group.world_size > 1 else None
