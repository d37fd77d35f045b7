"""Types of arguments, checked where they have their names."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def check_type(kind: type, **arguments: Any) -> None:
    """TypeError that names the first argument that is none of this kind."""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise TypeError(f"{name}: expected {_KINDS[kind]}, got a {type(value).__name__}")


_KINDS = {str: "a str", bool: "True or False", Integral: "a whole number"}
