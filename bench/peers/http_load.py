#!/usr/bin/env python3
"""Closed-loop load on a server that encodes images: every client sends its next request when it has its reply.

    python3 bench/peers/http_load.py 'http://127.0.0.1:8000/v1/encode?output.format=raw&output.dtype=float32&cache=bypass'

Each request is the body of a POST: a generated photo-like PNG of --size, or --image. Fovea's cache would answer
repeated images, hence cache=bypass. Prints requests per second, median and 99th percentile of the time to the last
byte as a table, then as one line of JSON. Standard library only; http_transformers.py is a server to compare with.
"""

import argparse
import http.client
import json
import math
import pathlib
import struct
import threading
import time
import urllib.parse
import zlib
from collections import Counter


def synthetic_photo(width, height):
    """A PNG of smooth colours with edges."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            edge = 60 * ((x // 97 + y // 61) % 2)
            rows += bytes(int(90 + edge + 60 * math.sin(x / (40 + 9 * c)) * math.cos(y / (31 + 7 * c)))
                          for c in range(3))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(rows))) +
            chunk(b"IEND", b""))


class Load:
    """Requests of some clients until an end."""

    def __init__(self, url, body):
        self.parts = urllib.parse.urlsplit(url)
        self.target = self.parts.path + ("?" + self.parts.query if self.parts.query else "")
        self.body = body
        self.guard = threading.Lock()

    def connect(self):
        return http.client.HTTPConnection(self.parts.hostname, self.parts.port or 80, timeout=600)

    def send(self, connection):
        """The status of the reply."""
        connection.request("POST", self.target, self.body, {"Content-Type": "application/octet-stream"})
        reply = connection.getresponse()
        reply.read()
        return reply.status

    def one_client(self, end, times, statuses):
        connection = self.connect()
        while (begin := time.perf_counter()) < end:
            status = self.send(connection)
            taken = time.perf_counter() - begin
            with self.guard:
                statuses[status] += 1
                if status == 200:
                    times.append(taken)
        connection.close()

    def measure(self, clients, seconds):
        times, statuses = [], Counter()
        begin = time.perf_counter()
        threads = [threading.Thread(target=self.one_client, args=(begin + seconds, times, statuses))
                   for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - begin
        times.sort()
        return {"clients": clients, "seconds": round(took, 3), "statuses": dict(statuses),
                "requests_per_s": round(len(times) / took, 3), "p50_ms": percentile_ms(times, 50),
                "p99_ms": percentile_ms(times, 99)}


def percentile_ms(times, percent):
    """By nearest rank, of sorted seconds."""
    if not times:
        return None
    return round(1e3 * times[max(0, math.ceil(percent / 100 * len(times)) - 1)], 3)


def wait_for(url, seconds):
    """Returns when a GET is answered 200."""
    parts = urllib.parse.urlsplit(url)
    end = time.monotonic() + seconds
    while True:
        try:
            connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=10)
            connection.request("GET", parts.path or "/")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        if time.monotonic() > end:
            raise SystemExit(f"{url} does not answer")
        time.sleep(0.1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--clients", default="1,8,64", help="numbers of clients, comma-separated")
    parser.add_argument("--seconds", type=float, default=10, help="per number of clients")
    parser.add_argument("--warmup", type=int, default=3, help="requests before the first measurement")
    parser.add_argument("--size", default="448x448", help="of the generated image, WxH")
    parser.add_argument("--image", type=pathlib.Path, help="a file to send instead")
    parser.add_argument("--wait", metavar="URL", help="begin when this URL answers 200")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    body = (arguments.image.read_bytes() if arguments.image else
            synthetic_photo(*map(int, arguments.size.split("x"))))
    if arguments.wait:
        wait_for(arguments.wait, 600)
    load = Load(arguments.url, body)
    for _ in range(arguments.warmup):
        status = load.send(load.connect())
        if status != 200:
            raise SystemExit(f"{arguments.url} answers {status}")
    print(f"{'clients':>8} {'requests/s':>11} {'p50 ms':>10} {'p99 ms':>10}  statuses")
    results = []
    for clients in map(int, arguments.clients.split(",")):
        result = load.measure(clients, arguments.seconds)
        results.append(result)
        p50, p99 = (f"{result[name]:.1f}" if result[name] is not None else "-" for name in ("p50_ms", "p99_ms"))
        print(f"{clients:8} {result['requests_per_s']:11.2f} {p50:>10} {p99:>10}  {result['statuses']}", flush=True)
    print(json.dumps({"url": arguments.url, "bytes": len(body), "results": results}))


if __name__ == "__main__":
    main()
