"""Counters of the connector, as vLLM logs them and gives them to Prometheus. Needs vLLM."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List

from ._vllm_interface import ECConnectorPromMetrics, ECConnectorStats

# Of items: how they were settled, or what became of them in a worker.
_RESULTS = ("found", "absent", "mismatched", "late", "unreadable")


@dataclasses.dataclass
class FoveaStats(ECConnectorStats):  # type: ignore[misc]
    """Counts of an interval: items by result, `bytes` and `seconds` of those that were found; and the
    number of servers that are away at its end, `servers_away`."""

    data: Dict[str, Any] = dataclasses.field(default_factory=dict)

    def reset(self) -> None:
        self.data = {}

    def is_empty(self) -> bool:
        return not self.data

    def aggregate(self, other: "FoveaStats") -> "FoveaStats":
        for name, value in other.data.items():
            self.data[name] = value if name == "servers_away" else self.data.get(name, 0) + value
        return self

    def reduce(self) -> Dict[str, float]:
        reduced = {f"items {name}": self.data[name] for name in _RESULTS if name in self.data}
        if "found" in self.data:
            reduced["rows MB"] = round(self.data["bytes"] / 1e6, 3)
            reduced["ms per item found"] = round(1e3 * self.data["seconds"] / self.data["found"], 3)
        reduced["servers away"] = self.data.get("servers_away", 0)
        return reduced


class FoveaPromMetrics(ECConnectorPromMetrics):  # type: ignore[misc]
    """vllm:fovea_items_total{result}, vllm:fovea_rows_bytes_total, vllm:fovea_rows_seconds_total and
    vllm:fovea_servers_away."""

    def __init__(
        self, config: Any, types: Any, labelnames: List[str], labelvalues: Dict[int, List[object]]
    ) -> None:
        super().__init__(config, types, labelnames, labelvalues)
        self._items = self._counter_cls(
            "vllm:fovea_items",
            "Items that fovea servers were asked for, by how that ended.",
            labelnames=[*labelnames, "result"],
        )
        self._totals = {
            name: self._counter_cls(f"vllm:fovea_rows_{name}", text, labelnames=labelnames)
            for name, text in (
                ("bytes", "Bytes of rows that came from fovea servers."),
                ("seconds", "Seconds that these rows took to come, added up over items."),
            )
        }
        self._away = self._gauge_cls(
            "vllm:fovea_servers_away",
            "Fovea servers that are asked for nothing because they failed.",
            multiprocess_mode="mostrecent",
            labelnames=labelnames,
        )

    def observe(self, transfer_stats_data: Dict[str, Any], engine_idx: int = 0) -> None:
        values = self.per_engine_labelvalues[engine_idx]
        for result in _RESULTS:
            if result in transfer_stats_data:
                self._items.labels(*values, result).inc(transfer_stats_data[result])
        for name, counter in self._totals.items():
            if name in transfer_stats_data:
                counter.labels(*values).inc(transfer_stats_data[name])
        self._away.labels(*values).set(transfer_stats_data.get("servers_away", 0))
