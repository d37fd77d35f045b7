from __future__ import annotations

import contextlib
from typing import Callable, ContextManager


def progress_bar(total: int, shown: bool) -> ContextManager[Callable[[int], object]]:
    """What to call with the number of items that were done: it moves a bar of tqdm on stderr, or
    does nothing if the bar is not `shown` or tqdm is not installed."""
    if shown:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            pass
        else:
            return _updates(tqdm(total=total, unit="item"))
    return contextlib.nullcontext(lambda count: None)


@contextlib.contextmanager
def _updates(bar):  # type: ignore[no-untyped-def]
    with bar:
        yield bar.update
