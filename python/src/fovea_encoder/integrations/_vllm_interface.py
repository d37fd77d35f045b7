"""What differs between the versions of vLLM that the connector works with, 0.29 to 0.33. Needs vLLM.

Source: vLLM, vllm/distributed/ec_transfer/ec_connector/base.py: `ensure_cache_available` since 0.29,
`take_unavailable_requests` since 0.30, statistics since 0.31. Base classes that a version has not are
`object` here: it does not ask for them.
"""

from __future__ import annotations

from typing import Any

from vllm.distributed.ec_transfer.ec_connector.base import (
    ECConnectorBase,
    ECConnectorMetadata,
    ECConnectorWorkerMetadata,
)

try:
    from vllm.distributed.ec_transfer.ec_connector.metrics import ECConnectorPromMetrics, ECConnectorStats
except ImportError:
    ECConnectorPromMetrics = ECConnectorStats = object

__all__ = [
    "ECConnectorBase",
    "ECConnectorMetadata",
    "ECConnectorPromMetrics",
    "ECConnectorStats",
    "ECConnectorWorkerMetadata",
    "check_version",
    "dtype_of",
    "has_one_worker",
    "steps_in_flight",
    "takes_rows_by_value",
]


def check_version() -> None:
    """@raises ImportError if vLLM would have to wait for rows in its scheduler."""
    if not hasattr(ECConnectorBase, "ensure_cache_available"):
        import vllm

        raise ImportError(
            f"FoveaECConnector: expected vLLM 0.29 or newer, got {getattr(vllm, '__version__', 'an older one')}, "
            "whose scheduler waits for lookups; use ECExampleConnector with `fovea serve --ec-dir` there"
        )


def steps_in_flight(config: Any) -> int:
    """How many steps vLLM schedules before it takes the result of the first of them."""
    return int(config.max_concurrent_batches)


def has_one_worker(config: Any) -> bool:
    """Whether one process loads the rows of a step."""
    return int(config.parallel_config.world_size) == 1


def takes_rows_by_value(config: Any) -> bool:
    """Whether workers get rows themselves, in the metadata of a step, and not the name of an open file:
    where they may be on other hosts, and where they could not say that the file cannot be read, since
    this version does not ask or the first stage of a pipeline returns nothing to the scheduler."""
    parallel = config.parallel_config
    return (
        parallel.nnodes > 1
        or parallel.distributed_executor_backend not in (None, "mp", "uni")
        or parallel.pipeline_parallel_size > 1
        or not hasattr(ECConnectorBase, "take_unavailable_requests")
    )


def dtype_of(config: Any) -> str:
    """What vLLM computes in, as servers spell it."""
    return str(config.model_config.dtype).rpartition(".")[2]
