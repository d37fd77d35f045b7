"""`fovea proxy` and the servers behind a name that the system's resolver knows."""
import os
import subprocess
import tempfile
import unittest

import served
from language_model import LanguageModel
from proxied import CHAT, Open, chat, picture, proxy, wait_for_metric, words
from served import IMAGES, wait_until

NAME = "models.test"
# A process with files of its own in the place of two of the system's.
BIND = "mount --bind $0/hosts /etc/hosts && mount --bind $0/nsswitch /etc/nsswitch.conf && exec \"$@\""


def can_have_names():
    with tempfile.TemporaryDirectory() as folder:
        names = Names(folder)
        names.set("127.0.0.2")
        found = subprocess.run([*names.prefix, "getent", "ahostsv4", NAME], capture_output=True,
                               check=False)
        return b"127.0.0.2" in found.stdout


class Names:
    """What the system's resolver says to those who are started with `prefix`."""

    def __init__(self, folder):
        self.hosts = os.path.join(folder, "hosts")
        self.set()
        with open(os.path.join(folder, "nsswitch"), "w") as file:
            file.write("hosts: files\n")
        self.prefix = ("unshare", "--map-root-user", "--mount", "sh", "-c", BIND, folder)

    def set(self, *addresses):
        lines = [f"{address} {NAME}\n" for address in addresses]
        with open(self.hosts, "w") as file:
            file.write("127.0.0.1 localhost\n" + "".join(lines))


@unittest.skipUnless(can_have_names(), "processes cannot have names of their own here (unshare)")
class ServersBehindAName(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.names = Names(folder)
        self.models = []
        for i in range(1, 4):
            port = self.models[0].port if self.models else 0
            model = LanguageModel(f"llm{i}", address=f"127.0.0.{i}", port=port)
            self.models.append(self.enterContext(model))
        self.url = f"http://{NAME}:{self.models[0].port}"

    def proxy(self, up):
        return self.enterContext(proxy(flags=("--llm", "dns+" + self.url), prefix=self.names.prefix,
                                       settings={"llm-dns-interval": 0.1}, up=up))

    def test_are_those_of_all_proxies(self):
        self.names.set("127.0.0.1", "127.0.0.2", "127.0.0.3")
        one, other = self.proxy(up=3), self.proxy(up=3)
        said = {words(one.post(CHAT, chat("x")).body)[0] for _ in range(6)}
        self.assertEqual(said, {"llm1", "llm2", "llm3"})
        hosts = {headers["Host"] for model in self.models for headers in model.headers}
        self.assertEqual(hosts, {f"{NAME}:{self.models[0].port}"})
        for name in IMAGES:
            said = {words(server.post(CHAT, chat(picture(name))).body)[0] for server in (one, other)}
            self.assertEqual(len(said), 1, name)

    def test_come_and_go(self):
        self.names.set("127.0.0.1")
        server = self.proxy(up=1)
        self.models[0].pause = 0.3
        asked = Open(server, chat("x"))
        first = asked.answer().readline()
        self.names.set("127.0.0.2", "127.0.0.3")
        wait_for_metric(server, "fovea_llm_up", 2)
        said = {words(server.post(CHAT, chat("x")).body)[0] for _ in range(4)}
        self.assertEqual(said, {"llm2", "llm3"})
        self.assertEqual(words(first + asked.read())[-1], "end", "at the one that is gone")
        wait_until(lambda: "127.0.0.1" not in server.get("/metrics").body.decode())
        self.names.set()
        wait_until(lambda: "llm_not_found" in server.text_of_log())
        self.assertEqual(words(server.post(CHAT, chat("x")).body)[-1], "end", "they are kept")
        self.assertEqual(server.text_of_log().count("llm_not_found"), 1)
        self.assertEqual(server.metric("fovea_llm_up"), 2)

    def test_may_not_be_there_yet(self):
        server = self.proxy(up=0)
        self.assertEqual(server.post(CHAT, chat("x", picture())).code(), "llm_down")
        self.names.set("127.0.0.3")
        wait_for_metric(server, "fovea_llm_up", 1)
        self.assertEqual(words(server.post(CHAT, chat("x")).body)[0], "llm3")
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    served.main()
