"""Servers of tools/engine_servers.py that do not come up."""

import pathlib
import subprocess
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import engine_servers  # noqa: E402


def start(program, log, seconds=60):
    command = [sys.executable, "-c", program]
    with engine_servers.running("a server", command, lambda: False, log, seconds):
        raise AssertionError("it is up")


def test_a_server_that_ends_shows_the_end_of_its_log(tmp_path):
    program = "import sys; print(*range(100), sep='\\n'); sys.exit('no such model')"
    with pytest.raises(RuntimeError, match="a server ended with 1 before it was up") as error:
        start(program, tmp_path / "log")
    assert "  | no such model\n" in str(error.value)
    assert "  | 42\n" not in str(error.value)


def test_a_server_that_is_not_up_in_time_is_ended(tmp_path, monkeypatch):
    started, start_process = [], subprocess.Popen

    def kept(*command, **more):
        started.append(start_process(*command, **more))
        return started[0]

    monkeypatch.setattr(engine_servers.subprocess, "Popen", kept)
    with pytest.raises(RuntimeError, match="a server was not up after 0 s .--start-seconds."):
        start("import time; time.sleep(600)", tmp_path / "log", seconds=0)
    assert started[0].poll() is not None
