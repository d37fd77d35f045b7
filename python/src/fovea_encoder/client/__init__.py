"""Clients of a running `fovea serve`: the rows of `Engine.encode`, without a model in this process."""

from ._async import AsyncClient
from ._http import ServerError
from ._sync import Client

__all__ = ["AsyncClient", "Client", "ServerError"]
