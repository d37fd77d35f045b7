"""What goes wrong around a server while it works. Each fault ends before the next one begins."""
import os
import random
import resource
import signal
import struct
import time

KEY_FILE_TEXTS = ("soak\n", "# rotated\nsoak\nother\n")


def children_of(pid):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(entry))
        except OSError:
            continue
    return found


def descriptors_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Faults:
    def __init__(self, server, weather, key_file, clock_file, seed):
        self.server, self.weather = server, weather
        self.key_file, self.clock_file = key_file, clock_file
        self.random = random.Random(seed)
        self.counts = {}
        self.kinds = [self.reload, self.kill_decoder, self.stop_decoder, self.full_disk,
                      self.no_descriptors, self.reset_cache]
        if clock_file is not None:
            self.kinds.append(self.move_clock)

    def run(self, over, interval):
        while not over():
            end = time.monotonic() + self.random.uniform(0.5, 1.5) * interval
            while time.monotonic() < end and not over():
                time.sleep(0.1)
            fault = self.random.choice(self.kinds)
            fault()
            self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1

    @property
    def pid(self):
        return self.server.process.pid

    def reload(self):
        with open(self.key_file + ".new", "w") as file:
            file.write(self.random.choice(KEY_FILE_TEXTS))
        os.replace(self.key_file + ".new", self.key_file)
        os.kill(self.pid, signal.SIGHUP)

    def kill_decoder(self):
        self.weather.storm("decoder", 0)  # its item fails
        for child in children_of(self.pid)[:1]:
            os.kill(child, signal.SIGKILL)

    def stop_decoder(self):
        for child in children_of(self.pid)[:1]:
            try:
                os.kill(child, signal.SIGSTOP)
                time.sleep(1)
                os.kill(child, signal.SIGCONT)
            except ProcessLookupError:
                pass  # it has been replaced

    def full_disk(self):
        self.limit(resource.RLIMIT_FSIZE, 100)

    def no_descriptors(self):
        self.limit(resource.RLIMIT_NOFILE, descriptors_of(self.pid) + 2)

    def limit(self, kind, value):
        seconds = 2
        self.weather.storm(kind, seconds)
        soft, hard = resource.prlimit(self.pid, kind)
        resource.prlimit(self.pid, kind, (min(value, hard) if hard >= 0 else value, hard))
        time.sleep(seconds)
        resource.prlimit(self.pid, kind, (soft, hard))

    def reset_cache(self):
        self.weather.storm("reset_cache", 0)  # who has just published finds nothing
        self.server.post("/v1/cache/reset", b"", {"Authorization": "Bearer boss"})

    def move_clock(self):
        with open(self.clock_file, "r+b") as file:
            years = self.random.choice((-100, -1, 0, 0, 1, 30, 100))
            file.write(struct.pack("q", years * 365 * 24 * 3600))
