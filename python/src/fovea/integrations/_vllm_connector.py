"""The connector of vLLM's encoder cache to `fovea serve`. Needs vLLM."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Dict, Optional

from vllm.distributed.ec_transfer.ec_connector.base import ECConnectorBase, ECConnectorMetadata

from ._encode_servers import EncodeServers

if TYPE_CHECKING:
    import torch

_OPTIONS = ("fovea_urls", "fingerprint", "timeout_s", "start_timeout_s", "api_key")


@dataclasses.dataclass
class FoveaLoads(ECConnectorMetadata):  # type: ignore[misc]
    """What the scheduler tells the worker to load: identifier -> URL of the server."""

    urls: Dict[str, str] = dataclasses.field(default_factory=dict)


class FoveaECConnector(ECConnectorBase):  # type: ignore[misc]
    """Rows of `fovea serve` in vLLM's encoder cache, over HTTP. For vLLM 0.22 and newer, as consumer.

    Options in ec_connector_extra_config: `fovea_urls`, the servers, in the order in which they are
    asked; `fingerprint`, what /info of each must say, by default what the first says; `timeout_s` (5)
    of a request; `start_timeout_s` (60), how long to wait for the first server; `api_key`.
    """

    def __init__(self, vllm_config: Any, role: Any) -> None:
        super().__init__(vllm_config=vllm_config, role=role)
        if self.is_producer:
            raise ValueError('FoveaECConnector only takes rows: expected ec_role "ec_consumer"')
        options = dict(vllm_config.ec_transfer_config.ec_connector_extra_config)
        unknown = sorted(set(options) - set(_OPTIONS))
        urls = options.get("fovea_urls")
        if unknown or not isinstance(urls, (list, tuple)) or not urls:
            problem = f"fovea_urls is {urls!r}, not a list of URLs"
            if unknown:
                problem = f"unknown {', '.join(unknown)}"
            raise ValueError(f"ec_connector_extra_config: {problem}; expected some of {', '.join(_OPTIONS)}")
        self._servers = EncodeServers(
            urls,
            fingerprint=options.get("fingerprint"),
            dtype=_dtype(vllm_config),
            timeout=float(options.get("timeout_s", 5)),
            api_key=options.get("api_key"),
        )
        self._found: Dict[str, str] = {}
        self._wanted: Dict[str, str] = {}
        self._servers.wait(float(options.get("start_timeout_s", 60)))

    def shutdown(self) -> None:
        self._servers.close()

    # Of the scheduler.

    def has_cache_item(self, identifier: str) -> bool:
        return self._where(identifier) is not None

    def update_state_after_alloc(self, request: Any, index: int) -> None:
        identifier = request.mm_features[index].identifier
        url = self._where(identifier)
        if url is not None:
            self._wanted[identifier] = url

    def build_connector_meta(self, scheduler_output: Any) -> ECConnectorMetadata:
        loads, self._wanted, self._found = FoveaLoads(self._wanted), {}, {}
        return loads

    # Of the worker.

    def start_load_caches(self, encoder_cache: "Dict[str, torch.Tensor]", **kwargs: Any) -> None:
        device = _device()
        for identifier, url in self._get_connector_metadata().urls.items():
            if identifier not in encoder_cache:
                encoder_cache[identifier] = self._servers.rows(url, identifier).torch().to(device)

    def save_caches(self, encoder_cache: "Dict[str, torch.Tensor]", mm_hash: str, **kwargs: Any) -> None:
        """Nothing: a consumer has no rows for others."""

    def _where(self, identifier: str) -> Optional[str]:
        """The server with these rows; the same one until the end of a scheduling step."""
        if identifier not in self._found:
            url = self._servers.find(identifier)
            if url is None:
                return None
            self._found[identifier] = url
        return self._found[identifier]


def _dtype(vllm_config: Any) -> Optional[str]:
    """What vLLM computes in, as servers spell it."""
    dtype = getattr(getattr(vllm_config, "model_config", None), "dtype", None)
    return None if dtype is None else str(dtype).rpartition(".")[2]


def _device() -> str:
    from vllm.platforms import current_platform

    if current_platform.is_cuda_alike():
        # The worker's own: a bare "cuda" would be the first of the machine.
        return f"{current_platform.device_type}:{current_platform.current_device()}"
    return str(current_platform.device_type)
