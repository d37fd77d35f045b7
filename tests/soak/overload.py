#!/usr/bin/env python3
"""Measures what honest clients of `fovea serve` notice of thousands of hostile connections.

A server works twice for the given time: for honest clients alone, and beside hostile connections that
never end a request (silence, heads and bodies that trickle or stop, announced gigabytes). Honest clients,
probes and hostile connections have processes of their own, so that none waits for another's work.
Prints a table of both. Exit code 1 if rows differ, or an honest request got another status than 200 or
429; times are for a reader to judge.
"""
import argparse
import collections
import http.client
import multiprocessing
import os
import random
import selectors
import socket
import statistics
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PER_PROCESS = 250  # hostile connections
THREADS = 8  # honest clients of a process


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of each part; default: 20")
    parser.add_argument("--clients", type=int, default=32, help="honest ones; default: 32")
    parser.add_argument("--hostile", type=int, default=2000, help="connections; default: 2000")
    parser.add_argument("--hostile-address", default="127.0.0.1", metavar="ADDRESS",
                        help="that hostile connections come from; default: that of honest clients")
    parser.add_argument("--program", default=os.path.join(ROOT, "build/ci/apps/cli/fovea"))
    parser.add_argument("--model", default=os.path.join(ROOT, "tests/golden/qwen3_vl"))
    return parser.parse_args()


OPTIONS = arguments()
os.environ["FOVEA_TEST_PROGRAM"] = OPTIONS.program
os.environ["FOVEA_TEST_MODEL"] = OPTIONS.model
sys.path[:0] = [os.path.join(ROOT, "tests/serve/program")]
from served import IMAGES, Served, encoded_by_program, image, tensors_of  # noqa: E402,F401

PATH = "/v1/encode?output.format=raw&output.dtype=float32"


def honest_process(port, rows, clients, end, results):
    """Sends images one after the other on connections of its own, and compares their rows."""
    counts, seconds, guard = collections.Counter(), [], threading.Lock()

    def client(number):
        connection, step = None, number
        while time.monotonic() < end:
            name = IMAGES[step % len(IMAGES)]
            step += 1
            begun = time.monotonic()
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("POST", PATH, image(name),
                                   {"Content-Type": "application/octet-stream"})
                reply = connection.getresponse()
                data, status = reply.read(), reply.status
            except (OSError, http.client.HTTPException):
                connection, data, status = None, b"", "lost"
            if status == 200 and data != rows[name]:
                status = "wrong"
            with guard:
                counts[status] += 1
                if status == 200:
                    seconds.append(time.monotonic() - begun)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(("honest", counts, seconds))


def probe_process(port, end, results):
    """Asks on fresh connections whether the server lives, is ready, and counts."""
    counts, seconds, step = collections.Counter(), [], 0
    while time.monotonic() < end:
        path = ("/livez", "/readyz", "/metrics")[step % 3]
        step += 1
        begun = time.monotonic()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", path)
            reply = connection.getresponse()
            reply.read()
            connection.close()
            counts[reply.status] += 1
        except (OSError, http.client.HTTPException):
            counts["lost"] += 1
        seconds.append(time.monotonic() - begun)
        time.sleep(0.02)
    results.put(("probes", counts, seconds))


class Hostile:
    """One connection that never ends a request; a new one when the server closes it."""

    def __init__(self, port, number):
        self.port, self.random = port, random.Random(number)
        self.socket, self.begin_at, self.opened = None, self.random.uniform(0, 1), 0

    def open(self, now, selector):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.bind((OPTIONS.hostile_address, 0))
        self.socket.connect_ex(("127.0.0.1", self.port))
        selector.register(self.socket, selectors.EVENT_READ, self)
        self.opened += 1
        self.left, self.next = self.text(), now + 0.1

    def text(self):
        """What it sends, piece by piece; the request stays open behind it."""
        def head(length):
            return (f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\n"
                    f"Content-Length: {length}\r\n\r\n").encode()
        kind = self.random.randrange(5)
        if kind == 0:
            return []  # silence
        if kind == 1:
            return [bytes([byte]) for byte in head(10)[:-1]]  # a slow head
        if kind == 2:
            return [head(100_000) + bytes(50_000)]  # a body that stops
        if kind == 3:
            return [head(self.random.choice((100 << 20, 1 << 30, 1 << 40)))]  # gigabytes
        return [head(1000)] + [b"x"] * 900  # a body that trickles

    def act(self, now):
        if self.left and now >= self.next:
            self.next = now + self.random.uniform(0.05, 0.4)
            self.socket.send(self.left.pop(0))

    def close(self, now, selector):
        selector.unregister(self.socket)
        self.socket.close()
        self.socket, self.begin_at = None, now + self.random.uniform(0.05, 0.5)


def hostile_process(port, numbers, end, results):
    selector = selectors.DefaultSelector()
    everybody = [Hostile(port, number) for number in numbers]
    start = time.monotonic()
    for hostile in everybody:
        hostile.begin_at += start
    while (now := time.monotonic()) < end:
        for hostile in everybody:
            try:
                if hostile.socket is None:
                    if now >= hostile.begin_at:
                        hostile.open(now, selector)
                else:
                    hostile.act(now)
            except BlockingIOError:
                pass
            except OSError:
                hostile.close(now, selector)
        for key, _ in selector.select(0.02):
            try:
                gone = key.data.socket.recv(1 << 16) == b""
            except OSError:
                gone = True
            if gone:
                key.data.close(now, selector)
    results.put(("hostile", {"opened": sum(hostile.opened for hostile in everybody)}, []))


def measured(hostile, rows):
    """Counts and seconds of everybody, and the server's largest memory in MiB."""
    results = multiprocessing.Queue()
    with Served() as server:
        end = time.monotonic() + OPTIONS.seconds + (2 if hostile else 0)
        everybody = [multiprocessing.Process(
            target=hostile_process,
            args=(server.port, range(i, min(i + PER_PROCESS, hostile)), end, results))
            for i in range(0, hostile, PER_PROCESS)]
        for process in everybody:
            process.start()
        if hostile:
            time.sleep(2)  # until all are connected
        others = [multiprocessing.Process(target=probe_process, args=(server.port, end, results))]
        for i in range(0, OPTIONS.clients, THREADS):
            others.append(multiprocessing.Process(
                target=honest_process,
                args=(server.port, rows, min(THREADS, OPTIONS.clients - i), end, results)))
        for process in others:
            process.start()
        everybody += others
        seen = {}
        for _ in everybody:
            who, counts, seconds = results.get()
            total = seen.setdefault(who, (collections.Counter(), []))
            total[0].update(counts)
            total[1].extend(seconds)
        for process in everybody:
            process.join()
        with open(f"/proc/{server.process.pid}/status") as file:
            memory = next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))
        return seen, memory


def percentile(values, part):
    return 1000 * sorted(values)[int(part * (len(values) - 1))] if values else 0


def main():
    with tempfile.TemporaryDirectory() as folder:
        tensors = encoded_by_program(IMAGES, "float32", folder)
        rows = {name: tensors[f"item_{i}"][2] for i, name in enumerate(IMAGES)}
    print(f"{'hostile':>7}  {'who':6}  {'status':24}  {'median ms':>9}  {'p99 ms':>7}  {'most ms':>7}"
          f"  {'peak MiB':>8}")
    bad = False
    for hostile in (0, OPTIONS.hostile):
        seen, memory = measured(hostile, rows)
        for who in ("honest", "probes"):
            counts, seconds = seen[who]
            text = ", ".join(f"{status}: {count}" for status, count in counts.items())
            print(f"{hostile:7}  {who:6}  {text:24}  {1000 * statistics.median(seconds or [0]):9.1f}"
                  f"  {percentile(seconds, 0.99):7.1f}  {percentile(seconds, 1):7.1f}  {memory:8.1f}")
            bad = bad or bool(set(counts) - {200, 429})
        if hostile:
            print(f"hostile connections opened: {seen['hostile'][0]['opened']}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
