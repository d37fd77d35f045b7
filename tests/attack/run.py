#!/usr/bin/env python3
"""Attacks the program and the library with the cases of cases.py, each under limits on CPU time
and memory, in a folder of its own. Exit code 1 if one of them does not end as it must.

usage: run.py [--program FILE] [--host FILE] [--slow-calls FILE]
              [--list] [--only PATTERN] [--full [N]] [--seed N]

  --only PATTERN  cases whose names match the pattern, such as 'D6.*'
  --list          names only
  --full [N]      N mutations of images, configurations and flags besides (default 4000)
"""
import argparse
import fnmatch
import os
import pathlib
import shlex
import signal
import sys
import unicodedata

import cases
import mutations
import sandbox

LINE_BYTES = 4096 + 64  # longest line on stderr: an Error and what stands in front of it
MODEL = str(cases.MODEL)
LINGER_SECONDS = 1  # most from a signal to the end
HIDDEN = {"Cc", "Cf"}  # control characters, and those that turn a line around


def argument_list():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--program", default="build/release/apps/cli/fovea")
    parser.add_argument("--host", default="build/release/tests/attack/fovea_attack_host")
    parser.add_argument("--slow-calls", default="build/release/tests/attack/slow_calls.so")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="*")
    parser.add_argument("--full", nargs="?", type=int, const=4000, default=0)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def command_of(case, tools):
    words = [MODEL if word == "MODEL" else word.replace("MODEL/", MODEL + "/")
             for word in shlex.split(case.command)]
    if words[0] == "host":
        return [tools.host] + words[1:]
    return [tools.program] + words


def environment_of(case, tools):
    environment = dict(case.environment)
    if case.slow_calls:
        environment.update(LD_PRELOAD=str(pathlib.Path(tools.slow_calls).resolve()))
    if case.by_name:
        folder = pathlib.Path(tools.program).resolve().parent
        environment.update(PATH=f"{folder}:/usr/bin:/bin")
    return environment


def stderr_objections(outcome, failed):
    """What is wrong with stderr: errors are one line, the last; only warnings come before it."""
    lines = outcome.err.splitlines()
    errors = [line for line in lines if line.startswith("fovea: error: ")]
    if failed and (len(errors) != 1 or lines[-1] != errors[0]):
        yield f"expected one error line, the last, got {len(errors)} of {len(lines)} lines"
    if not failed and errors:
        yield "an error line, but exit code 0"
    for line in lines:
        if len(line.encode()) > LINE_BYTES:
            yield f"a line of {len(line.encode())} bytes"
        if any(unicodedata.category(letter) in HIDDEN for letter in line):
            yield "control characters in a line"


def objections(case, outcome, idle):
    """All that differs from what must hold; `idle` is the memory of the model alone, in MiB."""
    if outcome.hung:
        yield f"still ran after {sandbox.WALL_SECONDS} s"
    if outcome.code not in case.expected.codes:
        yield f"exit code {outcome.code}, expected {case.expected.codes}"
    if 0 <= outcome.code < 128 and not outcome.hung:
        yield from stderr_objections(outcome, failed=outcome.code != 0)
    if outcome.lingered > LINGER_SECONDS:
        yield f"ended {outcome.lingered:.1f} s after a signal"
    if outcome.code in (-signal.SIGINT, 128 + signal.SIGINT) and "fovea: error" in outcome.err:
        yield "an error line, although the user knows why it ended"
    for part in case.expected.parts:
        if part not in outcome.out + outcome.err:
            yield f"'{part}' is not said"
    for part in case.unsaid:
        if part in outcome.out + outcome.err:
            yield f"'{part}' is said"
    if outcome.cpu > case.cpu:
        yield f"{outcome.cpu:.1f} s of CPU, limit {case.cpu}"
    if outcome.memory > idle + case.memory:
        yield f"{outcome.memory} MiB, limit {case.memory} above the {idle} of the model"
    results = {"out.st"} if outcome.code == 0 else set()
    if set(outcome.left) - results:
        yield "left behind: " + ", ".join(sorted(set(outcome.left) - results))


def run_case(case, tools):
    with sandbox.TemporaryFolder() as folder:
        sandbox.make_files(folder, case.files)
        return sandbox.run(command_of(case, tools), folder / case.folder, cpu=case.cpu,
                           stack=case.stack, environment=environment_of(case, tools),
                           stdout=case.stdout, meanwhile=case.meanwhile)


def report(case, outcome, wrong):
    verdict = "FAILED" if wrong else "ok"
    print(f"{verdict:6} {case.name:40} {outcome.cpu:6.2f} s {outcome.memory:6} MiB", flush=True)
    if wrong:
        print("       $ " + case.command[:300])
        print("\n".join("       - " + objection for objection in wrong))
        print("".join(f"       | {line[:300]}\n" for line in outcome.err.splitlines()[:5]), end="")


def recorder():
    """A function that notes what became of a case, as tests/support/main.cpp does."""
    path = os.environ.get("FOVEA_TEST_RECORD", "")
    if not os.path.isdir(os.path.dirname(path)):
        return lambda event, case: None
    file = open(path, "w", encoding="utf-8")
    return lambda event, case: print(event, case.name, file=file, flush=True)


def main():
    tools = argument_list()
    for name in ("program", "host"):
        setattr(tools, name, str(pathlib.Path(getattr(tools, name)).resolve()))
    chosen = [case for case in [*cases.CASES, *mutations.cases(tools.seed, tools.full)]
              if fnmatch.fnmatch(case.name, tools.only)]
    if tools.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not chosen:
        sys.exit(f"no case is called {tools.only}")
    idle = run_case(cases.IDLE, tools).memory
    record = recorder()
    failed = 0
    for case in chosen:
        record("started", case)
        outcome = run_case(case, tools)
        wrong = list(objections(case, outcome, idle))
        record("failed" if wrong else "passed", case)
        failed += bool(wrong)
        if wrong or not case.name.startswith("mutation."):
            report(case, outcome, wrong)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
