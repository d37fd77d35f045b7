"""What a case is, and what may come of it."""
import dataclasses
import signal


@dataclasses.dataclass(frozen=True)
class Expected:
    codes: tuple      # exit codes; negative: signals
    parts: tuple = () # of what is printed


def refused(*parts, code=1):
    """One error line with these parts."""
    return Expected((code,), parts)


def misused(*parts):
    """Refused as wrong usage of the command line."""
    return refused(*parts, code=2)


def answered(*parts):
    """Exit code 0 and these parts on stdout."""
    return Expected((0,), parts)


def bounded(*codes):
    """Refused or answered, whichever; what counts are the limits."""
    return Expected((0, *(codes or (1,))))


def interrupted():
    """Ended by SIGINT or SIGTERM, with nothing left behind."""
    signals = (signal.SIGINT, signal.SIGTERM)
    return Expected(tuple(-number for number in signals) + tuple(128 + n for n in signals))


def interrupted_or_answered():
    return Expected(interrupted().codes + (0,))


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    command: str              # MODEL is the tiny checkpoint; `host` is host.cpp, else the program
    expected: Expected
    files: dict = dataclasses.field(default_factory=dict)  # bytes, text, or a function of either
    cpu: float = 2            # seconds
    memory: int = 512         # MiB above what the model itself takes
    folder: str = "."         # where the command runs
    environment: dict = dataclasses.field(default_factory=dict)
    by_name: bool = False     # started as `fovea`, found in PATH
    slow_calls: bool = False  # under slow_calls.cpp, which holds windows open
    stack: int = 0            # bytes of stack, also of threads; 0: the usual
    stdout: str = None        # a file
    unsaid: tuple = ()        # parts that must not be printed
    meanwhile: object = None  # called while the command runs
