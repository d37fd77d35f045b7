from __future__ import annotations

import logging
import os
from typing import Callable, Optional, Union

from . import _native
from ._arguments import check_type
from ._error import Error

MAIN_REVISION = "main"
_logger = logging.getLogger("fovea")


def pull_model(
    name: str,
    revision: str = MAIN_REVISION,
    output: "Union[str, os.PathLike[str], None]" = None,
    *,
    progress: Optional[Callable[[str, int, int], object]] = None,
) -> str:
    """Downloads what an engine needs of a model of the hub, and returns the directory: of its snapshot
    in the hub cache, or `output`. What is there is kept, what was begun is continued, and every file
    is compared with its digest.

    `progress` is called as progress(file, done bytes, all bytes) some times a second. The hub, its
    cache and a token are those of HF_ENDPOINT, HF_HUB_CACHE, HF_HOME and HF_TOKEN.
    """
    check_type(str, name=name, revision=revision)
    return _native.pull_model(name, revision, "" if output is None else os.fspath(output), progress)


def model_directory(path: "Union[str, os.PathLike[str]]", download: bool, revision: Optional[str]) -> str:
    """The directory that `path` means: itself, or the snapshot of a model of the hub."""
    text = os.fsdecode(path)
    if os.path.exists(text) or not _native.is_hub_name(text):
        if download or revision is not None:
            option = "download" if download else "revision"
            raise Error(f"{option}: expected a name on the hub, <organisation>/<name>, got {text!r}", "invalid_argument")
        return text
    wanted = MAIN_REVISION if revision is None else revision
    check_type(str, revision=wanted)
    found = _native.find_on_disk(text, wanted)
    if download:
        try:
            return pull_model(text, wanted)
        except Error as error:
            if error.code != "unavailable" or found is None:
                raise
            _logger.warning("%s; the hub cache has %s", error, found)
    if found is None:
        cache = _native.hub_cache_dir() or "(no HF_HOME, no HOME)"
        at = "" if revision is None else f" at revision {revision}"
        message = f"expected a directory, or a model in the hub cache {cache}, got {text!r}{at}; download=True gets it"
        raise Error(message, "not_found")
    return found
