"""The connector of vLLM's encoder cache to `fovea serve`. Needs vLLM."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING, Any, Dict, Optional, Set, Tuple, Union

from ..client._device import Memory
from ._encode_servers import EncodeServers
from ._lent_rows import NOT_COPIED, Borrower, Lenders, LentRows, Mapped, gpu_of
from ._row_files import Rows
from ._row_scheduler import RowScheduler
from ._vllm_interface import (
    ECConnectorBase,
    ECConnectorMetadata,
    ECConnectorWorkerMetadata,
    check_version,
    dtype_of,
    has_one_worker,
    steps_in_flight,
    takes_rows_by_value,
)
from ._vllm_metrics import FoveaPromMetrics, FoveaStats

if TYPE_CHECKING:
    import torch

_logger = logging.getLogger("fovea.vllm")

_OPTIONS = ("fovea_urls", "fingerprint", "timeout_s", "start_timeout_s", "api_key", "ec_dir")


@dataclasses.dataclass
class FoveaLoads(ECConnectorMetadata):  # type: ignore[misc]
    """What the scheduler tells the workers to load, by identifier, and the memories of servers that
    they have to have mapped; False: and report."""

    rows: Dict[str, Union[Rows, LentRows]] = dataclasses.field(default_factory=dict)
    memories: Dict[Memory, bool] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class FoveaReport(ECConnectorWorkerMetadata):  # type: ignore[misc]
    """What workers tell the scheduler: identifiers of rows that they could not read, and what became
    of memories that they were to map."""

    unreadable: Set[str] = dataclasses.field(default_factory=set)
    mapped: Mapped = dataclasses.field(default_factory=Mapped)

    def aggregate(self, other: "FoveaReport") -> "FoveaReport":
        return FoveaReport(self.unreadable | other.unreadable, self.mapped | other.mapped)


class FoveaECConnector(ECConnectorBase):  # type: ignore[misc]
    """Rows of `fovea serve` in vLLM's encoder cache. For vLLM 0.29 and newer, as consumer.

    The scheduler brings rows in the background, once for all workers, and passes a request over until
    they are here; workers map them. An item whose rows do not come within `timeout_s` is encoded by
    vLLM. Neither side waits for a server after the start, and neither fails because of one. What a
    server with --lend-rows has in memory of the GPU of the only worker, this copies there.

    Options in ec_connector_extra_config: `fovea_urls`, the servers, in the order in which they are
    asked; `fingerprint`, what /info of each must say, by default what the first says; `timeout_s` (5)
    until an item is given up; `start_timeout_s` (60), how long to wait for the first server;
    `api_key`; `ec_dir`, the folder --ec-dir of servers on this host.
    """

    def __init__(self, vllm_config: Any, role: Any) -> None:
        check_version()
        super().__init__(vllm_config=vllm_config, role=role)
        if self.is_producer:
            raise ValueError('FoveaECConnector only takes rows: expected ec_role "ec_consumer"')
        options = _options(vllm_config)
        self._report = FoveaReport()
        self._borrower: Optional[Borrower] = None
        if role.name == "SCHEDULER":
            self._connect(vllm_config, options)

    def _connect(self, config: Any, options: Dict[str, Any]) -> None:
        seconds = float(options.get("timeout_s", 5))
        by_value = takes_rows_by_value(config)
        self._lenders = Lenders() if has_one_worker(config) and not by_value else None
        self._servers = EncodeServers(
            options["fovea_urls"],
            fingerprint=options.get("fingerprint"),
            dtype=dtype_of(config),
            timeout=seconds,
            api_key=options.get("api_key"),
            folder=options.get("ec_dir"),
            lenders=self._lenders,
        )
        self._servers.wait(float(options.get("start_timeout_s", 60)))
        self._num_away = 0
        self._scheduler = RowScheduler(
            self._servers.find,
            seconds,
            steps_in_flight=steps_in_flight(config),
            by_value=by_value,
        )

    def shutdown(self) -> None:
        if self.role.name == "SCHEDULER":
            self._scheduler.close()
            self._servers.close()

    # Of the scheduler.

    def ensure_cache_available(self, request: Any, num_computed_tokens: int) -> bool:
        return self._scheduler.ensure(request, num_computed_tokens)

    def has_cache_item(self, identifier: str) -> bool:
        return self._scheduler.has(identifier)

    def update_state_after_alloc(self, request: Any, index: int) -> None:
        self._scheduler.allocated(request, index)

    def build_connector_meta(self, scheduler_output: Any) -> ECConnectorMetadata:
        rows = self._scheduler.step(scheduler_output.free_encoder_mm_hashes)
        memories = {} if self._lenders is None else self._lenders.memories()
        for one in rows.values():
            if isinstance(one, LentRows):
                memories.setdefault(one.memory, True)  # its server may have gone since
        return FoveaLoads(rows, memories)

    def update_connector_output(self, connector_output: Any) -> None:
        report = connector_output.ec_connector_worker_meta
        if report:
            self._scheduler.unreadable(report.unreadable)
            if self._lenders is not None:
                self._lenders.report(report.mapped)

    def take_unavailable_requests(self) -> Set[str]:
        return self._scheduler.take_unavailable()

    def request_finished(self, request: Any) -> Tuple[bool, Optional[Dict[str, Any]]]:
        self._scheduler.finished(request)
        return False, None

    # Of the workers.

    def start_load_caches(self, encoder_cache: "Dict[str, torch.Tensor]", **kwargs: Any) -> None:
        device, loads = _device(), self._get_connector_metadata()
        copied = self._copy_lent(loads, device)
        for identifier, rows in loads.rows.items():
            try:
                if not isinstance(rows, LentRows):
                    encoder_cache[identifier] = rows.tensor(device)
                elif identifier in copied:
                    encoder_cache[identifier] = copied[identifier]
                else:
                    raise ValueError("they were not copied while they were lent")
            except (OSError, ValueError) as problem:
                _logger.error("the rows of %s cannot be read: %s; its requests fail", identifier, problem)
                encoder_cache[identifier] = rows.zeros(device)
                self._report.unreadable.add(identifier)

    def _copy_lent(self, loads: FoveaLoads, device: str) -> "Dict[str, torch.Tensor]":
        if self._borrower is None:
            if not loads.memories:
                return {}
            self._borrower = Borrower(gpu_of(device))
        self._report.mapped |= self._borrower.map(loads.memories)
        lent = {identifier: rows for identifier, rows in loads.rows.items() if isinstance(rows, LentRows)}
        try:
            return self._borrower.copy(lent)
        except NOT_COPIED as problem:
            _logger.error("rows that are lent cannot be copied: %s", problem)
            return {}

    def save_caches(self, encoder_cache: "Dict[str, torch.Tensor]", mm_hash: str, **kwargs: Any) -> None:
        """Nothing: a consumer has no rows for others."""

    def build_connector_worker_meta(self) -> Optional[ECConnectorWorkerMetadata]:
        report, self._report = self._report, FoveaReport()
        return report if report.unreadable or report.mapped else None

    # Metrics.

    def get_ec_connector_stats(self) -> Optional[FoveaStats]:
        if self.role.name != "SCHEDULER":
            return None
        counters, num_away = self._scheduler.take_counters(), self._servers.num_away()
        if not counters and num_away == self._num_away:
            return None
        self._num_away = num_away
        return FoveaStats(data={**counters, "servers_away": num_away})

    @classmethod
    def build_ec_connector_stats(cls, data: Optional[Dict[str, Any]] = None) -> FoveaStats:
        return FoveaStats(data=dict(data or {}))

    @classmethod
    def build_prom_metrics(
        cls, vllm_config: Any, metric_types: Any, labelnames: Any, per_engine_labelvalues: Any
    ) -> FoveaPromMetrics:
        return FoveaPromMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)


def _options(vllm_config: Any) -> Dict[str, Any]:
    """Those of the connector. @raises ValueError for unknown ones, and without servers."""
    options = dict(vllm_config.ec_transfer_config.ec_connector_extra_config)
    unknown = sorted(set(options) - set(_OPTIONS))
    urls = options.get("fovea_urls")
    if unknown or not isinstance(urls, (list, tuple)) or not urls:
        problem = f"fovea_urls is {urls!r}, not a list of URLs"
        if unknown:
            problem = f"unknown {', '.join(unknown)}"
        raise ValueError(f"ec_connector_extra_config: {problem}; expected some of {', '.join(_OPTIONS)}")
    return options


def _device() -> str:
    from vllm.platforms import current_platform

    if current_platform.is_cuda_alike():
        # The worker's own: a bare "cuda" would be the first of the machine.
        return f"{current_platform.device_type}:{current_platform.current_device()}"
    return str(current_platform.device_type)
