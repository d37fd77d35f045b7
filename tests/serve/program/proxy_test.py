"""`fovea proxy` between clients and stand-ins for language models."""
import http.client
import signal
import subprocess
import tempfile
import threading
import unittest

import served
from language_model import LanguageModel
from proxied import CHAT, Open, chat, events, picture, proxy, wait_for_metric, words
from served import (IMAGES, MODEL, PATIENCE, PHOTO, PROGRAM, data_url, image, json,
                    payload_of_torch, png, wait_until)


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = LanguageModel()
        cls.proxy = proxy(cls.model)

    @classmethod
    def tearDownClass(cls):
        cls.proxy.close()
        cls.model.close()

    def forwarded(self, body):
        reply = self.proxy.post(CHAT, body)
        self.assertEqual(reply.status, 200, reply.body)
        return self.model.requests[-1], reply

    def test_images_become_their_rows(self):
        body = chat("What", picture(PHOTO), "and", picture(IMAGES[1]), seed=2 ** 62,
                    temperature=0.1, stop=["\u00e9\n"], logit_bias={"7": -1.5}, user=None)
        body["messages"].insert(0, {"role": "system", "content": "be brief", "name": "x"})
        body["messages"].append({"role": "assistant", "content": [picture(PHOTO)]})
        got, reply = self.forwarded(body)
        with tempfile.TemporaryDirectory() as folder:
            expected = served.encoded_by_program([PHOTO, IMAGES[1]], "bfloat16", folder)
        places = [(1, 1, 0), (1, 3, 1), (2, 0, 0)]
        for message, part, item in places:
            found = got["messages"][message]["content"][part]
            self.assertEqual(found["type"], "image_embeds")
            self.assertRegex(found["uuid"], "^[0-9a-f]{64}$")
            rows = found["image_embeds"]
            self.assertEqual(payload_of_torch(rows["image_embeds"]), expected[f"item_{item}"][2])
            self.assertEqual(payload_of_torch(rows["image_grid_thw"]),
                             expected[f"item_{item}.grid_thw"][2])
            got["messages"][message]["content"][part] = body["messages"][message]["content"][part]
        self.assertEqual(json.dumps(got), json.dumps(body), "all else, in its order")
        self.assertEqual(reply.headers["X-Fovea-Rows"],
                         str(2 * expected["item_0"][1][0] + expected["item_1"][1][0]))

    def test_the_same_image_has_the_same_name(self):
        own = {**picture(PHOTO), "uuid": "the client's"}
        got, _ = self.forwarded(chat(picture(PHOTO), own, picture(IMAGES[1])))
        names = [part["uuid"] for part in got["messages"][0]["content"]]
        self.assertEqual(names[0], names[1])
        self.assertNotEqual(names[0], names[2])

    def test_videos_become_their_rows_with_times(self):
        frames = ",".join(data_url(image(PHOTO)).split(",")[1] for _ in range(4))
        video = {"type": "video_url", "video_url": {"url": "data:video/jpeg;base64," + frames}}
        for options, times in (({}, [0.5, 2.5]),  # as vLLM takes frames: one a second
                               ({"media_io_kwargs": {"video": {"fps": 2}}}, [0.25, 1.25])):
            got, _ = self.forwarded(chat(video, mm_processor_kwargs={}, **options))
            self.assertEqual(sorted(got), ["messages", "model", "stream"], "what was honoured")
            part = got["messages"][0]["content"][0]
            self.assertEqual(part["type"], "video_embeds")
            self.assertEqual(sorted(part["video_embeds"]),
                             ["timestamps", "video_embeds", "video_grid_thw"])
            self.assertEqual(part["video_embeds"]["timestamps"], times)

    def test_text_is_forwarded_as_it_came(self):
        text = b'{ "messages":[{"role":"user","content":"hi"}],\n "stream":false, "seed": 1.0 }'
        seen = []
        self.model.behaviour = lambda handler, _: seen.append(int(handler.headers["Content-Length"]))
        try:
            reply = self.proxy.post(CHAT, text, {"Content-Type": "application/json"})
        finally:
            self.model.behaviour = None
        self.assertEqual(reply.json()["choices"][0]["message"]["content"], "llm hi end")
        self.assertEqual(seen, [len(text)])

    def test_other_paths_are_forwarded(self):
        reply = self.proxy.post("/v1/completions", {"prompt": "once"})
        self.assertEqual(reply.json()["choices"][0]["message"]["content"], "llm once")
        for path in ("/v1/models", "/v1/models/m", "/v1/models/org/m?x=%20y"):
            self.assertEqual(self.proxy.get(path).json()["path"], path)
        self.assertEqual(self.proxy.post("/v1/responses", {}).code(), "route_not_found")

    def test_rows_are_still_served(self):
        self.assertEqual(self.proxy.encode(image(PHOTO)).status, 200)
        self.assertEqual(self.proxy.get("/v1/cache").code(), "route_not_found")

    def test_what_cannot_be_honoured_is_refused_by_name(self):
        sound = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
        rows = {"type": "image_embeds", "image_embeds": "AAAA"}
        cases = [(chat("x", sound), "invalid_value", "messages[0].content[1].type"),
                 (chat(rows), "invalid_value", "messages[0].content[0].type"),
                 (chat(picture(), mm_processor_kwargs={"do_resize": False}), "invalid_value",
                  "mm_processor_kwargs.do_resize"),
                 ({"stream": True}, "missing_field", "messages"),
                 (chat({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
                  "decode_failed", "messages[0].content[0].image_url")]
        before = len(self.model.requests)
        for body, code, param in cases:
            error = self.proxy.post(CHAT, body).json()["error"]
            self.assertEqual((error["code"], error["param"]), (code, param))
        self.assertEqual(len(self.model.requests), before, "none of them was sent")


class Answers(unittest.TestCase):
    def test_pieces_come_as_they_are_made(self):
        go_on = threading.Event()

        def behaviour(handler, _):
            handler.begin_stream()
            handler.send_event({"n": 1})
            go_on.wait(PATIENCE)
            handler.send_event({"n": 2})
            handler.send_chunk(b"")
            return True

        with LanguageModel(behaviour=behaviour) as model, proxy(model) as server:
            asked = Open(server, chat("x", picture()))
            reply = asked.answer()
            self.assertEqual(reply.getheader("Content-Type"), "text/event-stream; charset=utf-8")
            self.assertEqual(reply.readline() + reply.readline(), b'data: {"n": 1}\n\n')
            go_on.set()
            self.assertEqual(asked.read(), b'data: {"n": 2}\n\n')

    def test_long_answers_are_passed_on_whole(self):
        text = bytes(range(256)) * 40_000

        def behaviour(handler, _):
            handler.reply(201, text, "application/x-any")
            return True

        with LanguageModel(behaviour=behaviour) as model, proxy(model) as server:
            reply = server.post(CHAT, chat("x"))
            self.assertEqual((reply.status, reply.headers["Content-Type"]),
                             (201, "application/x-any"))
            self.assertEqual(reply.body, text)

    def test_errors_are_passed_on_with_their_body(self):
        error = b'{"error":{"message":"At most 1 image(s)","code":400}}'

        def behaviour(handler, _):
            handler.reply(400, error, headers=[("X-Reason", "limit"), ("Keep-Alive", "5")])
            return True

        with LanguageModel(behaviour=behaviour) as model, proxy(model) as server:
            reply = server.post(CHAT, chat("x", picture()))
            self.assertEqual((reply.status, reply.body), (400, error))
            self.assertEqual(reply.headers["X-Reason"], "limit")
            self.assertIsNone(reply.headers["Keep-Alive"])

    def test_a_client_that_leaves_ends_the_request(self):
        for begins in (False, True):
            left = threading.Event()

            def behaviour(handler, _):
                if begins:
                    handler.begin_stream()
                    handler.send_event({"n": 1})
                if handler.is_left():
                    left.set()
                return True

            with LanguageModel(behaviour=behaviour) as model, proxy(model) as server:
                asked = Open(server, chat("x", picture()))
                if begins:
                    asked.answer().readline()
                wait_until(lambda: model.requests)
                asked.close()
                self.assertTrue(left.wait(PATIENCE))
                wait_for_metric(server, "fovea_requests_total", 1, route=CHAT, status="499")
                wait_for_metric(server, "fovea_llm_in_flight", 0)

    def test_a_stream_that_breaks_off_says_so(self):
        def between_events(handler, _):
            handler.begin_stream()
            handler.send_event({"n": 1})
            handler.close_connection = True
            return True

        def within_an_event(handler, _):
            handler.begin_stream()
            handler.send_chunk(b'data: {"n"')
            handler.close_connection = True
            return True

        with LanguageModel(behaviour=between_events) as model, proxy(model) as server:
            found = events(server.post(CHAT, chat("x")).body)
            self.assertEqual([found[0], found[1]["error"]["code"]], [{"n": 1}, "llm_failed"])
            self.assertEqual(len(found), 2)
            model.behaviour = within_an_event
            with self.assertRaises(http.client.IncompleteRead) as cut:
                server.post(CHAT, chat("x"))
            self.assertEqual(cut.exception.partial, b'data: {"n"')
            self.assertEqual(len(model.requests), 2, "nothing is asked twice")

    def test_hung_models_end_at_the_deadline(self):
        hold = threading.Event()

        def behaviour(handler, request):
            if request["stream"]:
                handler.begin_stream()
                handler.send_event({"n": 1})
            hold.wait(PATIENCE)
            return True

        with LanguageModel(behaviour=behaviour) as model, LanguageModel("other") as other:
            with proxy(model, settings={"llm-idle-timeout": 0.3}) as server:
                late = {"X-Request-Timeout-Ms": "300"}
                reply = server.post(CHAT, chat("x", picture(), stream=False), late)
                self.assertEqual((reply.status, reply.code()), (504, "deadline_exceeded"))
                found = events(server.post(CHAT, chat("x")).body)
                self.assertEqual(found[1]["error"]["code"], "llm_timeout")
                self.assertEqual(server.metric("fovea_llm_requests_total", result="late"), 2)
            self.assertEqual(other.requests, [])
            hold.set()

    def test_streams_end_before_the_server_does(self):
        with LanguageModel(pause=0.2) as model, proxy(model) as server:
            asked = Open(server, chat("x", picture()))
            reply = asked.answer()
            first = reply.readline()
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(words(first + asked.read())[-1], "end")
            self.assertEqual(server.process.wait(PATIENCE), 0)


class Choice(unittest.TestCase):
    def test_all_proxies_send_an_image_to_the_same_server(self):
        models = [LanguageModel(name) for name in "abcd"]
        with models[0] as a, models[1] as b, models[2] as c, models[3] as d:
            with proxy(a, b, c, d) as first, proxy(d, b, a, c) as second:
                for name in IMAGES:
                    # The first image decides, so that a chat stays where it is while it grows.
                    chats = (chat(picture(name)), chat(picture(name), "and", picture(PHOTO)))
                    asked = {words(server.post(CHAT, body).body)[0]
                             for server in (first, second) for body in chats}
                    self.assertEqual(len(asked), 1, name)
                for server in (first, second):
                    there = server.metric("fovea_llm_routed_total", sent="there")
                    self.assertEqual(there, 2 * len(IMAGES))

    def test_the_least_loaded_gets_the_next(self):
        hold = threading.Event()

        def behaviour(*_):
            hold.wait(PATIENCE)

        with LanguageModel("a", behaviour=behaviour) as a, LanguageModel("b") as b:
            with proxy(a, b) as server:
                busy = []
                while not a.requests:
                    busy.append(Open(server, chat("x")))
                    wait_until(lambda: len(a.requests) + len(b.requests) == len(busy))
                wait_for_metric(server, "fovea_llm_in_flight", 0, llm=b.url)
                for _ in range(4):
                    self.assertEqual(words(server.post(CHAT, chat("x")).body)[0], "b")
                hold.set()
                for asked in busy:
                    asked.read()

    def test_an_image_goes_elsewhere_when_its_server_has_much_more_to_do(self):
        hold = threading.Event()
        with LanguageModel("a") as a, LanguageModel("b") as b, proxy(a, b) as server:
            home = words(server.post(CHAT, chat(picture())).body)[0]
            busy, idle = (a, b) if home == "a" else (b, a)
            busy.behaviour = lambda *_: hold.wait(PATIENCE) and None
            waiting = []
            while not any("image_embeds" in str(r) for r in idle.requests):
                self.assertLess(len(waiting), 10)
                waiting.append(Open(server, chat(picture())))
                wait_until(lambda: len(a.requests) + len(b.requests) == 1 + len(waiting))
            self.assertEqual(len(waiting), 6, "five may be there when the other has none")
            hold.set()
            for asked in waiting:
                self.assertEqual(words(asked.read())[-1], "end")

    def test_a_server_that_is_not_healthy_gets_nothing_until_it_is(self):
        with LanguageModel("a") as a, LanguageModel("b") as b, proxy(a, b) as server:
            a.health = 503
            wait_for_metric(server, "fovea_llm_up", 0, llm=a.url)
            for _ in range(4):
                self.assertEqual(words(server.post(CHAT, chat("x")).body)[0], "b")
            a.health = 200
            wait_for_metric(server, "fovea_llm_up", 1, llm=a.url)
            self.assertEqual({words(server.post(CHAT, chat("x")).body)[0] for _ in range(4)},
                             {"a", "b"})

    def test_no_server_is_an_answer_before_any_work(self):
        with LanguageModel() as model:
            model.health = 500
            with proxy(model, up=0) as server:
                reply = server.post(CHAT, chat(picture()))
                self.assertEqual((reply.status, reply.code()), (503, "llm_down"))
                self.assertEqual(reply.headers["Retry-After"], "2")
                self.assertEqual(server.metric("fovea_items_total"), 0)


class Retries(unittest.TestCase):
    def answers(self, behaviour, flags=()):
        """Who answers chats if the first server behaves so, and what the first was asked: whatever
        ports the servers have, some of sixteen images lead there."""
        def part(i):
            url = data_url(png(28 * (1 + i), 56), "image/png")
            return {"type": "image_url", "image_url": {"url": url}}

        with LanguageModel("a", behaviour=behaviour) as a, LanguageModel("b") as b:
            with proxy(a, b, flags=flags) as server:
                found = [server.post(CHAT, chat("x", part(i))) for i in range(16)]
                return found, a.requests, b.requests, server.metric("fovea_llm_retries_total")

    def test_no_answer_is_asked_of_another(self):
        def behaviour(handler, _):
            handler.close_connection = True
            return True

        for behave in (behaviour, lambda handler, _: handler.reply(503, b"full") or True,
                       lambda handler, _: handler.reply(502, b"gone") or True):
            found, at_a, at_b, retries = self.answers(behave)
            for reply in found:
                self.assertEqual(words(reply.body)[0:2], ["b", "x"])
            self.assertEqual(len(at_b), len(found))
            self.assertEqual(retries, len(at_a))
            self.assertGreater(len(at_a), 0)
            for request in at_a:
                self.assertIn(request, at_b, "the same, with its rows")

    def test_other_errors_are_answers(self):
        found, at_a, at_b, retries = self.answers(lambda h, _: h.reply(500, b"{}") or True)
        self.assertEqual(retries, 0)
        self.assertEqual(sum(reply.status == 500 for reply in found), len(at_a))
        self.assertEqual(len(at_a) + len(at_b), len(found))

    def test_the_last_refusal_is_passed_on(self):
        def full(handler, _):
            handler.reply(503, b"full", headers=[("Retry-After", "7")])
            return True

        with LanguageModel(behaviour=full) as a, LanguageModel(behaviour=full) as b:
            with proxy(a, b) as server:
                reply = server.post(CHAT, chat("x"))
                self.assertEqual((reply.status, reply.body), (503, b"full"))
                self.assertEqual(reply.headers["Retry-After"], "7")
                self.assertEqual(len(a.requests) + len(b.requests), 2)

    def test_a_failure_of_all_says_why(self):
        def behaviour(handler, _):
            handler.close_connection = True
            return True

        with LanguageModel(behaviour=behaviour) as a, LanguageModel(behaviour=behaviour) as b:
            with proxy(a, b) as server:
                reply = server.post(CHAT, chat("x", picture()))
                self.assertEqual((reply.status, reply.code()), (502, "llm_failed"))
                self.assertIn("closed the connection without an answer", reply.body.decode())
                self.assertEqual(len(a.requests) + len(b.requests), 2, "each once")


class Access(unittest.TestCase):
    def sent(self, flags, headers):
        with LanguageModel() as model, proxy(model, flags=flags) as server:
            reply = server.post(CHAT, chat("x"), headers)
            return reply, model.headers

    def test_keys_of_clients_go_where_they_belong(self):
        bearer = {"Authorization": "Bearer client", "Connection": "X-Hop", "X-Hop": "1",
                  "X-Other": "2", "X-Request-Id": "mine"}
        reply, headers = self.sent((), bearer)
        self.assertEqual(headers[0]["Authorization"], "Bearer client")
        self.assertEqual((headers[0]["X-Hop"], headers[0]["X-Other"]), (None, "2"))
        self.assertEqual(headers[0]["X-Request-Id"], "mine")
        self.assertEqual(headers[0].get_all("Content-Length"), [str(len(json.dumps(chat("x"))))])
        self.assertEqual(reply.headers["X-Request-Id"], "mine")
        _, headers = self.sent(("--api-key", "client"), bearer)
        self.assertIsNone(headers[0]["Authorization"], "a key of the proxy stays here")
        for keys in ((), ("--api-key", "client")):
            _, headers = self.sent((*keys, "--llm-api-key", "own"), bearer)
            self.assertEqual(headers[0]["Authorization"], "Bearer own")

    def test_keys_and_limits_are_those_of_a_server(self):
        flags = ("--api-key", "client", "--max-images-per-prompt", "1")
        with LanguageModel() as model:
            with proxy(model, flags=flags, settings={"max-body-bytes": "100Ki"}) as server:
                self.assertEqual(server.post(CHAT, chat("x")).code(), "invalid_api_key")
                self.assertEqual(server.get("/v1/models").code(), "invalid_api_key")
                key = {"Authorization": "Bearer client"}
                self.assertEqual(server.post(CHAT, chat(picture(), picture()), key).code(),
                                 "too_many_images")
                self.assertEqual(server.post(CHAT, b" " * 102_401, key).code(), "body_too_large")
                self.assertEqual(model.requests, [])

    def test_wrong_usage_is_explained(self):
        def run(*flags):
            done = subprocess.run([PROGRAM, "proxy", MODEL, "--port", "0", *flags],
                                  capture_output=True, text=True, timeout=PATIENCE)
            return done.returncode, done.stderr

        self.assertEqual(run()[0], 2)
        self.assertIn("--llm is required", run()[1])
        for url, why in (("localhost:8000", "expected http://"), ("http://h/v1", "without /v1")):
            code, text = run("--llm", url)
            self.assertNotEqual(code, 0)
            self.assertIn(why, text)
        self.assertIn("pruned", run("--llm", "http://h", "--video-pruning-rate", "0.5")[1])


if __name__ == "__main__":
    served.main()
