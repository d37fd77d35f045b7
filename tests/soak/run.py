#!/usr/bin/env python3
"""Soaks `fovea serve`: honest clients who compare every row, hostile ones, and faults around them.

A server with a small cache, decode processes, a folder for published rows and keys in a file works for
the given time. Beside it a second one is killed and started again. At the end a report says what the
clients saw, and whether memory, descriptors and threads stayed where they were. Exit code 1 if rows
differed, a request was lost or refused without a reason, or something grew.
"""
import argparse
import os
import statistics
import struct
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GROWTH_MIB = 24  # that an allocator may keep in its arenas between two moments of rest


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hours", nargs="?", type=float, default=1, help="default: 1")
    parser.add_argument("--clients", type=int, default=16, help="honest ones; default: 16")
    parser.add_argument("--hostile", type=int, default=48, help="hostile ones; default: 48")
    parser.add_argument("--pause", type=float, default=0, metavar="SECONDS",
                        help="between two requests of an honest client, on average; default: 0")
    parser.add_argument("--faults", type=float, default=10, metavar="SECONDS",
                        help="between two faults, on average; default: 10")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/ci/apps/cli/fovea"))
    parser.add_argument("--clock-shift", metavar="LIBRARY",
                        default=os.path.join(ROOT, "build/ci/tests/soak/clock_shift.so"),
                        help="preloaded so that the clock can jump")
    parser.add_argument("--model", default=os.path.join(ROOT, "tests/golden/qwen3_vl"))
    return parser.parse_args()


OPTIONS = arguments()
os.environ["FOVEA_TEST_PROGRAM"] = OPTIONS.program
os.environ["FOVEA_TEST_MODEL"] = OPTIONS.model
sys.path[:0] = [os.path.join(ROOT, "tests/serve/program")]
import clients  # noqa: E402  they read those variables
import faults  # noqa: E402
from served import Served  # noqa: E402


def resources(pid):
    """MiB of memory, descriptors and threads of a process. The socket of a decode process does not
    count: one that was killed is replaced when it is needed."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return (int(fields["VmRSS"].split()[0]) / 1024,
            faults.descriptors_of(pid) - len(faults.children_of(pid)), int(fields["Threads"]))


def resting(server):
    """Resources once nothing is in flight and idle connections have gone."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(1)
        if (server.metric("fovea_work_in_flight") == 0 and
                server.metric("fovea_connections") <= 1):
            break
    # The connection of the last question closes in its own time: what is there in each of a few
    # moments stays.
    readings = []
    for _ in range(4):
        time.sleep(0.5)
        readings.append(resources(server.process.pid))
    return tuple(min(values) for values in zip(*readings))


class Soak:
    def __init__(self, folder):
        self.folder = folder
        self.published = self.made("published")
        self.other_published = self.made("other")
        self.key_file = os.path.join(folder, "keys")
        with open(self.key_file, "w") as file:
            file.write(faults.KEY_FILE_TEXTS[0])
        self.clock_file, environment = None, {}
        if os.path.exists(OPTIONS.clock_shift):
            self.clock_file = os.path.join(folder, "clock")
            with open(self.clock_file, "wb") as file:
                file.write(struct.pack("q", 0))
            environment = {"LD_PRELOAD": OPTIONS.clock_shift, "CLOCK_SHIFT_FILE": self.clock_file}
        self.truth = clients.Truth(folder)
        self.tally, self.weather = clients.Tally(), clients.Weather()
        self.server = Served("--ec-dir", self.published, "--api-key-file", self.key_file,
                             "--admin-api-key", "boss", "--encoder-cache-size", "64Ki",
                             "--decode-processes", "2", environment=environment,
                             settings=self.SETTINGS)
        self.restarts = 0

    def made(self, name):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        return path

    SETTINGS = {"header-timeout": 3, "body-timeout": 3, "keep-alive-timeout": 5}

    def keep_restarting(self, over):
        """A server that is killed while it publishes: its folder never holds a torn file."""
        while not over():
            with Served("--ec-dir", self.other_published, settings=self.SETTINGS) as server:
                weather = clients.Weather()
                weather.storm("kill", 1e9)
                honest = clients.Honest(server, self.truth, self.tally, weather, self.restarts,
                                        OPTIONS.pause)
                end = time.monotonic() + 5
                worker = threading.Thread(
                    target=honest.run, args=(lambda: over() or time.monotonic() > end + 1,))
                worker.start()
                while time.monotonic() < end and not over():
                    time.sleep(0.1)
                server.process.kill()
                worker.join()
            self.restarts += 1

    def run(self, seconds, report):
        """Lets everybody work for so long; calls report() once a minute."""
        end = time.monotonic() + seconds
        server, tally = self.server, self.tally

        def over():
            return time.monotonic() > end or server.process.poll() is not None

        self.faults = faults.Faults(server, self.weather, self.key_file, self.clock_file,
                                    OPTIONS.seed)
        calls = [lambda: self.faults.run(over, OPTIONS.faults),
                 lambda: clients.probe(server, tally, over),
                 lambda: clients.read_folder(self.published, tally, over),
                 lambda: clients.read_folder(self.other_published, tally, over),
                 lambda: self.keep_restarting(over)]
        for i in range(OPTIONS.clients):
            honest = clients.Honest(server, self.truth, tally, self.weather,
                                    1000 * OPTIONS.seed + i, OPTIONS.pause)
            calls.append(lambda honest=honest: honest.run(over))
        for i in range(OPTIONS.hostile):
            hostile = clients.Hostile(server, tally, 2000 * OPTIONS.seed + i)
            calls.append(lambda hostile=hostile: hostile.run(over))
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        next_report = time.monotonic() + 60
        for thread in threads:
            while thread.is_alive():
                thread.join(1)
                if time.monotonic() > next_report:
                    next_report += 60
                    report()


def percentile(values, part):
    return sorted(values)[int(part * (len(values) - 1))] if values else 0


def table(rows):
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows)]
    for first, *others in rows:
        print("  ".join([str(first).ljust(widths[0])] +
                        [str(cell).rjust(width) for cell, width in zip(others, widths[1:])]))


def print_report(soak, moments):
    tally = soak.tally
    table([("requests", "status", "number")] +
          [(kind, status or "-", number) for (kind, status), number in
           sorted(tally.replies.items())])
    print()
    table([("resources", "MiB", "descriptors", "threads")] +
          [(name, f"{memory:.1f}", descriptors, threads)
           for name, (memory, descriptors, threads) in moments])
    print()
    milliseconds = [1000 * value for value in tally.seconds]
    print(f"honest  {len(milliseconds)} answered, median {statistics.median(milliseconds or [0]):.1f}"
          f" ms, p99 {percentile(milliseconds, 0.99):.1f} ms")
    print(f"livez   median {1000 * statistics.median(tally.probes or [0]):.1f} ms, "
          f"p99 {1000 * percentile(tally.probes, 0.99):.1f} ms, "
          f"most {1000 * max(tally.probes or [0]):.1f} ms")
    print("faults  " + ", ".join(f"{name} {count}" for name, count in
                                 sorted(soak.faults.counts.items())) +
          f", restarts {soak.restarts}")


def complaints(soak, before, after):
    tally = soak.tally
    found = [f"{name}: {len(entries)}, first {entries[0]}"
             for name, entries in (("rows differ", tally.wrong), ("requests lost", tally.lost),
                                   ("requests refused", tally.refused)) if entries]
    if soak.server.process.poll() is not None:
        found.append(f"the server ended with {soak.server.process.returncode}")
    if not tally.seconds:
        found.append("no honest request was answered")
    if after[0] > before[0] + GROWTH_MIB:
        found.append(f"memory grew from {before[0]:.1f} to {after[0]:.1f} MiB")
    if after[1] > before[1]:
        found.append(f"descriptors grew from {before[1]} to {after[1]}")
    if after[2] > before[2]:
        found.append(f"threads grew from {before[2]} to {after[2]}")
    return found


def main():
    seconds = 3600 * OPTIONS.hours
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(folder)
        with soak.server as server:
            begun = time.monotonic()

            def report():
                memory, descriptors, threads = resources(server.process.pid)
                print(f"{time.monotonic() - begun:7.0f} s  {len(soak.tally.seconds)} answered, "
                      f"{len(soak.tally.wrong)} wrong, {len(soak.tally.lost)} lost, "
                      f"{memory:.1f} MiB, {descriptors} descriptors, {threads} threads", flush=True)

            soak.run(seconds / 4, report)  # caches and pools fill
            before = resting(server)
            soak.run(seconds * 3 / 4, report)
            after = resting(server)
            print()
            print_report(soak, (("after a quarter", before), ("at the end", after)))
            found = complaints(soak, before, after)
            if found:
                print("\n" + "\n".join("FAILED: " + text for text in found))
                print(server.text_of_log()[-4000:], file=sys.stderr)
            return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
