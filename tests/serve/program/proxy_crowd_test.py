"""64 clients of a proxy while one of two language models dies."""
import json
import os
import re
import subprocess
import sys
import threading
import unittest

from proxied import Open, chat, events, picture, proxy, wait_for_metric, words
from served import IMAGES, PATIENCE, in_parallel, main


class Started:
    """A language model in a process of its own, which can be killed."""

    def __init__(self, name):
        program = os.path.join(os.path.dirname(__file__), "language_model.py")
        self.process = subprocess.Popen([sys.executable, "-B", program, name, "0.02"],
                                        stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Death(unittest.TestCase):
    def test_64_clients_are_answered_or_told_while_a_server_dies(self):
        a, b = Started("a"), Started("b")
        try:
            with proxy(a, b) as server:
                self.check(server, a)
        finally:
            for model in (a, b):
                if model.process.poll() is None:
                    model.kill()

    def check(self, server, victim):
        number = [0]
        begun = threading.Event()

        def client(i):
            outcomes, streams = [], i // 4 % 2 == 0  # whatever the image, and so the server
            for turn in range(6):
                said = [f"w{i}.{turn}.{n}" for n in range(10)]
                asked = Open(server, chat(*said[:5], picture(IMAGES[(i + turn) % 4]), *said[5:],
                                          stream=streams))
                status = asked.answer().status
                text = asked.read()
                number[0] += 1
                if number[0] > 64:
                    begun.set()
                outcomes.append(outcome(said, status, text, streams))
            return outcomes

        def outcome(said, status, text, streams):
            if status != 200:
                return json.loads(text)["error"]["code"]
            if not streams:
                found = json.loads(text)["choices"][0]["message"]["content"].split()
            elif events(text)[-1] is not None:
                last = events(text).pop()["error"]["code"]
                found = [e["choices"][0]["delta"]["content"].strip() for e in events(text)[:-1]]
                heard = [word for word in found if re.match("w", word)]
                self.assertEqual(heard, said[:len(heard)], "no word twice, none left out")
                return last
            else:
                found = words(text)
            self.assertEqual([word for word in found if word.startswith("w")], said)
            self.assertEqual(found[-1], "end")
            return "answered"

        killer = threading.Thread(target=lambda: begun.wait(PATIENCE) and victim.kill())
        killer.start()
        outcomes = [one for all_of in in_parallel(64, client) for one in all_of]
        killer.join()
        counts = {name: outcomes.count(name) for name in set(outcomes)}
        print("outcomes", counts, "retries", server.metric("fovea_llm_retries_total"))
        self.assertEqual(len(outcomes), 64 * 6)
        self.assertLessEqual(set(counts), {"answered", "llm_failed"})
        self.assertGreater(counts["answered"], 64 * 5)
        self.assertGreater(server.metric("fovea_llm_retries_total"), 0)
        wait_for_metric(server, "fovea_llm_in_flight", 0)
        self.assertEqual(server.metric("fovea_llm_up", llm=victim.url), 0)


if __name__ == "__main__":
    main()
