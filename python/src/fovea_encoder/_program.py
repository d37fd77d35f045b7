"""The command `fovea`: the program that lies in this package, with the plugins of this package."""

import os
import pathlib
import sys

_PACKAGE = pathlib.Path(__file__).parent


def main() -> None:
    """Becomes the program. A FOVEA_PLUGIN_DIR of the caller is kept."""
    os.environ.setdefault("FOVEA_PLUGIN_DIR", str(_PACKAGE / "fovea"))
    program = str(_PACKAGE / "bin" / "fovea")
    os.execv(program, [program, *sys.argv[1:]])
