"""Runs one command under limits and says what it took."""
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import traceback

MACHINE_LIMIT = 8 << 30  # address space: a defect must not take the machine with it
WALL_SECONDS = 60        # for what hangs without computing


@dataclasses.dataclass
class Outcome:
    code: int           # negative: the signal that ended it
    out: str
    err: str
    cpu: float          # seconds, of all threads and children
    memory: int         # peak of resident memory in MiB
    left: list          # names in the folder that were not there before
    hung: bool
    lingered: float     # seconds from a signal of `send` to the end


def _limits(cpu, stack):
    limits = ["prlimit", f"--cpu={int(cpu) + 3}", "--core=0", f"--as={MACHINE_LIMIT}"]
    return limits + ([f"--stack={stack}"] if stack else [])


def _listing(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _wait(process, seconds):
    """Waits as Popen does, and for the resources used."""
    killed = threading.Event()

    def kill():
        killed.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(seconds, kill)
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage, killed.is_set()


def make_files(folder, files):
    """In a process of its own: commands that this one starts inherit its peak of memory."""
    child = os.fork()
    if child == 0:
        try:
            _make_files(folder, files)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError("the files of a case could not be made")


def _make_files(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = content() if callable(content) else content
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content)
        else:
            content.make(path)


def run(command, folder, *, cpu=2, stack=0, environment=None, stdout=None, meanwhile=None,
        seconds=WALL_SECONDS):
    """Runs `command` in `folder`. `meanwhile` is called with the process and the folder once the
    command runs."""
    before = _listing(folder)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(_limits(cpu, stack) + command, cwd=folder,
                                   stdin=subprocess.DEVNULL, stderr=err, start_new_session=True,
                                   stdout=open(stdout, "wb") if stdout else out,
                                   env={**os.environ, "HOME": "/nonexistent",
                                        "XDG_CACHE_HOME": "", **(environment or {})})
        if meanwhile:
            meanwhile(process, folder)
        usage, hung = _wait(process, seconds)
        lingered = time.monotonic() - getattr(process, "signalled", time.monotonic())
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(1 << 20).decode(errors="backslashreplace"))
    return Outcome(process.returncode, *texts, usage.ru_utime + usage.ru_stime,
                   usage.ru_maxrss >> 10, sorted(_listing(folder) - before), hung, lingered)


class TemporaryFolder:
    """A folder that is gone afterwards."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="fovea-attack-"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def after(seconds, action):
    """For `meanwhile`: calls action(process, folder) some time after the start."""

    def meanwhile(process, folder):
        time.sleep(seconds)
        action(process, folder)

    return meanwhile


def send(number):
    def action(process, _):
        os.killpg(process.pid, number)
        process.signalled = time.monotonic()

    return action


def shrink(name):
    return lambda _, folder: os.truncate(folder / name, 0)
