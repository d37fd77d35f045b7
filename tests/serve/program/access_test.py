"""Keys, addresses, certificates, settings and states of a server."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from served import (MODEL, PATIENCE, PHOTO, PROGRAM, Served, image, main, read, variables,
                    wait_until)

RAW = "output.format=raw"


def bearer(key):
    return {"Authorization": "Bearer " + key}


def curl(*arguments):
    """What curl prints, the status last."""
    done = subprocess.run(["curl", "--silent", "--show-error", "--max-time", str(PATIENCE),
                           "--write-out", "\n%{http_code}", *arguments],
                          capture_output=True, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def run_serve(*flags, environment=None):
    """For what ends by itself."""
    return subprocess.run([PROGRAM, "serve", MODEL, *flags], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})}, timeout=PATIENCE, check=False)


def write_file(path, text):
    with open(path, "w") as file:
        file.write(text)


class Keys(unittest.TestCase):
    def test_only_work_needs_a_key(self):
        with Served("--api-key", "one", "--api-key", "two", "--admin-api-key", "boss") as server:
            photo = image(PHOTO)
            for headers, status in ((None, 401), (bearer("three"), 401), (bearer("on"), 401),
                                    ({"Authorization": "Basic one"}, 401), (bearer("one"), 200),
                                    ({"X-API-Key": "two"}, 200), (bearer("boss"), 200)):
                with self.subTest(headers=headers):
                    self.assertEqual(server.encode(photo, RAW, headers).status, status)
            self.assertEqual(server.encode(photo, RAW).code(), "invalid_api_key")
            self.assertEqual(server.get("/metrics").status, 200)
            self.assertEqual(server.metric("fovea_rejected_total", reason="key"), 5)

    def test_admin_routes_need_another_one(self):
        with Served("--api-key", "one", "--admin-api-key", "boss") as server:
            for headers, status in ((None, 403), (bearer("one"), 403), (bearer("boss"), 200)):
                reply = server.post("/v1/cache/reset", b"", headers)
                self.assertEqual(reply.status, status)
                if status == 403:
                    self.assertEqual(reply.code(), "admin_required")

    def test_no_admin_routes_for_the_network_without_a_key(self):
        with Served("--host", "0.0.0.0") as server:
            self.assertEqual(server.post("/v1/cache/reset", b"").code(), "admin_required")

    def test_open_admin_routes_are_for_this_machine_alone(self):
        """Not for pages of web sites, nor for names that resolve to it, nor for those behind a proxy."""
        with Served() as server:
            port = server.port
            for headers, status, code in (
                    ({}, 200, None),
                    ({"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}, 200, None),
                    ({"Origin": "http://evil.example"}, 403, "foreign_origin"),
                    ({"Origin": "null"}, 403, "foreign_origin"),
                    ({"Host": "evil.example", "Origin": "http://evil.example"}, 403,
                     "admin_required"),
                    ({"Host": f"evil.example:{port}"}, 403, "admin_required"),
                    ({"X-Forwarded-For": "1.2.3.4"}, 403, "admin_required"),
                    ({"Forwarded": "for=1.2.3.4"}, 403, "admin_required"),
                    ({"X-Real-IP": "1.2.3.4"}, 403, "admin_required"),
                    ({"Via": "1.1 proxy"}, 403, "admin_required")):
                with self.subTest(headers=headers):
                    reply = server.post("/v1/cache/reset", b"", headers)
                    self.assertEqual(reply.status, status)
                    if code:
                        self.assertEqual(reply.code(), code)
                    self.assertEqual(server.get("/readyz", headers).status, 200)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("curl"), "needs root and curl")
    def test_admin_routes_of_a_unix_socket_are_for_its_user(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s")
            os.chmod(folder, 0o755)
            with Served("--uds", path, wait=False) as server:
                server.wait_for_address()
                os.chmod(path, 0o777)
                url = ("--unix-socket", path, "http://x/readyz")
                wait_until(lambda: curl(*url)[1].endswith("\n200"))
                reset = ("curl", "--silent", "--unix-socket", path, "--request", "POST",
                         "http://x/v1/cache/reset")
                mine = subprocess.run(reset, capture_output=True, check=True)
                self.assertEqual(mine.stdout, b"{}")
                other = subprocess.run(reset, capture_output=True, check=True, user=65534)
                self.assertIn(b"admin_required", other.stdout)
                self.assertIn(b"another user", other.stdout)

    def test_auth_all(self):
        with Served("--auth-all", "--api-key", "one", wait=False) as server:
            server.wait_for_address()
            self.assertEqual(server.get("/metrics").status, 401)
            wait_until(lambda: server.get("/readyz", bearer("one")).status == 200)

    def test_sighup_reads_the_file_of_keys_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "keys")
            write_file(path, "# for tests\nold\n\n")
            with Served("--api-key-file", path) as server:
                def status(key):
                    return server.get("/v1/cache/none", bearer(key)).status

                self.assertEqual((status("old"), status("new")), (404, 401))
                write_file(path, "new\n")
                self.assertEqual(status("new"), 401)
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: status("new") == 404)
                self.assertEqual(status("old"), 401)
                self.keeps_its_keys(server, path, status)
                self.assertEqual(server.end(), 0)

    def keeps_its_keys(self, server, path, status):
        """A file that is empty, large, a pipe, a device or not there changes nothing."""
        def replace(make):
            os.remove(path)
            make()

        makers = (lambda: open(path, "w").close(),
                  lambda: write_file(path, "# no key yet\n\n"),
                  lambda: write_file(path, "k" * 5_000_000),
                  lambda: os.mkfifo(path),
                  lambda: os.symlink("/dev/zero", path),
                  lambda: None)
        for count, make in enumerate(makers, 1):
            replace(make)
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: server.text_of_log().count("not reloaded") == count)
            self.assertEqual((status("new"), status("old"), status("")), (404, 401, 401))

    def test_a_file_without_keys_is_no_start(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "keys")
            for text in ("", "\n# none\n"):
                write_file(path, text)
                done = run_serve("--device", "cpu", "--port", "0", "--api-key-file", path)
                self.assertEqual(done.returncode, 1)
                self.assertIn("expected an API key", done.stderr)

    def test_logs_hold_no_keys_and_no_queries(self):
        with Served("--api-key", "hunter2") as server:
            server.get("/v1/cache/x?secret=1", bearer("hunter2"))
            server.get("/v1/cache/x", bearer("hunter3"))
            wait_until(lambda: server.text_of_log().count("/v1/cache/x") == 2)
            for secret in ("hunter", "secret"):
                self.assertNotIn(secret, server.text_of_log())


class Profiles(unittest.TestCase):
    def test_a_profile_has_the_requests_in_it(self):
        with tempfile.TemporaryDirectory() as folder, \
                Served("--profile-dir", folder, "--admin-api-key", "two") as server:
            admin = bearer("two")
            self.assertEqual(server.post("/start_profile", {}).status, 403)
            self.assertEqual(server.post("/stop_profile", {}, admin).status, 409)
            self.assertEqual(server.post("/start_profile", {}, admin).status, 200)
            self.assertEqual(server.post("/start_profile", {}, admin).code(), "profile_running")
            self.assertEqual(server.encode(image(PHOTO)).status, 200)
            # A request is noted, then logged, when its last byte is out: the client may be faster.
            wait_until(lambda: "/v1/encode" in server.text_of_log())
            reply = server.post("/stop_profile", {}, admin)
            self.assertEqual(reply.status, 200, reply.body)
            trace = json.loads(read(os.path.join(folder, reply.json()["file"])))
            names = {event["name"] for event in trace["traceEvents"]}
            self.assertLessEqual({"POST /v1/encode", "queue", "batch"}, names)

    def test_without_a_folder_there_are_none(self):
        with Served() as server:
            reply = server.post("/start_profile", {})
            self.assertEqual((reply.status, reply.code()), (403, "profiling_off"))


class Addresses(unittest.TestCase):
    def test_a_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s")
            with Served("--uds", path, wait=False) as server:
                server.wait_for_address()
                self.assertEqual(server.address, "unix:" + path)
                url = ("--unix-socket", path, "http://x/readyz")
                wait_until(lambda: curl(*url) == (0, '{"status":"ok"}\n200'))
                self.assertEqual(server.end(), 0)
            self.assertFalse(os.path.exists(path))

    def make_certificate(self, folder, name):
        files = [os.path.join(folder, f"{name}.{kind}") for kind in ("pem", "key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
        return files

    @unittest.skipUnless(shutil.which("openssl") and shutil.which("curl"), "needs openssl, curl")
    def test_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = self.make_certificate(folder, "server")
            with Served("--ssl-certfile", certificate, "--ssl-keyfile", key, wait=False) as server:
                server.wait_for_address()
                self.assertTrue(server.address.startswith("https://"))
                url = server.address + "/readyz"
                trusting = ("--cacert", certificate, url)
                wait_until(lambda: curl(*trusting) == (0, '{"status":"ok"}\n200'))
                self.assertEqual(curl(url)[0], 60)  # nobody knows who signed it
                old_tls = curl("--cacert", certificate, "--tls-max", "1.1", url)
                self.assertEqual(old_tls[1], "\n000")
                self.assertNotEqual(curl(url.replace("https", "http"))[0], 0)
                self.reload_certificate(folder, server, certificate, key, url)

    def reload_certificate(self, folder, server, certificate, key, url):
        old = shutil.copy(certificate, os.path.join(folder, "old.pem"))
        for fresh, place in zip(self.make_certificate(folder, "fresh"), (certificate, key)):
            os.replace(fresh, place)
        self.assertEqual(curl("--cacert", old, url)[0], 0)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: curl("--cacert", certificate, url)[0] == 0)

    @unittest.skipUnless(shutil.which("openssl") and shutil.which("curl"), "needs openssl, curl")
    def test_clients_with_certificates(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = self.make_certificate(folder, "server")
            client = self.make_certificate(folder, "client")
            with Served("--ssl-certfile", certificate, "--ssl-keyfile", key, "--ssl-ca-certs",
                        client[0], "--ssl-cert-reqs", "required", wait=False) as server:
                server.wait_for_address()
                url = ("--cacert", certificate, server.address + "/livez")
                self.assertEqual(curl(*url)[1], "\n000")
                self.assertEqual(curl("--cert", client[0], "--key", client[1], *url)[0], 0)

    @unittest.skipUnless(shutil.which("curl"), "needs curl")
    def test_curl_sends_a_photo(self):
        with Served() as server:
            code, text = curl("--data-binary", "@" + os.path.join(MODEL, "images", PHOTO),
                              "--header", "Content-Type: image/jpeg",
                              "--header", "Expect: 100-continue",
                              server.address + "/v1/encode?output.format=base64")
            self.assertEqual(code, 0)
            body, status = text.rsplit("\n", 1)
            self.assertEqual((status, json.loads(body)["data"][0]["num_embeds"]), ("200", 36))

    def test_root_path(self):
        with Served("--root-path", "/vision", wait=False) as server:
            server.wait_for_address()
            wait_until(lambda: server.get("/vision/readyz").status == 200)
            for path in ("/readyz", "/visionary", "/v1/encode"):
                self.assertEqual(server.get(path).code(), "route_not_found")
            self.assertEqual(server.encode(image(PHOTO), RAW).status, 404)
            self.assertEqual(server.post("/vision/v1/encode", b"", {}).code(), "invalid_json")

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            done = run_serve("--device", "cpu", "--port", str(other.getsockname()[1]))
            self.assertEqual(done.returncode, 1)
            self.assertIn("in use", done.stderr)


class Files(unittest.TestCase):
    def test_pipes_and_devices_are_waited_for_by_nobody(self):
        """Neither at the start nor at SIGHUP, after which SIGTERM still counts."""
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            for path in (pipe, "/dev/zero"):
                for flags, status in ((("--config", path), 2), (("--api-key-file", path), 1),
                                      (("--ssl-certfile", path, "--ssl-keyfile", path), 1)):
                    with self.subTest(flags=flags):
                        done = run_serve("--device", "cpu", "--port", "0", *flags)
                        self.assertEqual(done.returncode, status)
                        self.assertIn("not a regular file", done.stderr)
            keys = os.path.join(folder, "keys")
            write_file(keys, "one\n")
            with Served("--api-key-file", keys) as server:
                os.replace(pipe, keys)
                server.process.send_signal(signal.SIGHUP)
                self.assertEqual(server.end(), 0)


class Settings(unittest.TestCase):
    def printed(self, *flags, environment=None):
        """Name -> (value, origin) of --print-config."""
        done = run_serve("--print-config", *flags, environment=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        settings = {}
        for line in done.stdout.splitlines():
            words = re.split(r"  +", line.strip())
            if re.fullmatch(r"--[a-z-]+", words[0]):
                settings[words[0]] = (words[1] if len(words) == 3 else "", words[-1])
        return settings

    def in_file(self, settings):
        file = tempfile.NamedTemporaryFile("w", suffix=".json")
        self.addCleanup(file.close)
        file.write(settings if isinstance(settings, str) else json.dumps(settings))
        file.flush()
        return file.name

    def test_command_line_wins_over_environment_over_file_over_default(self):
        file = self.in_file({"threads": 3, "server": {"io_threads": 3, "port": 3}})
        environment = {"FOVEA_THREADS": "2", "FOVEA_IO_THREADS": "2"}
        got = self.printed("--threads", "1", "--config", file, environment=environment)
        self.assertEqual(got["--threads"], ("1", "command line"))
        self.assertEqual(got["--io-threads"], ("2", "FOVEA_IO_THREADS"))
        self.assertEqual(got["--port"], ("3", file))
        self.assertEqual(got["--max-concurrent-requests"], ("512", "default"))

    def test_every_number_can_be_set_in_every_way(self):
        """Also to its default, in the words in which it is printed."""
        numbers = {flag: value for flag, (value, origin) in self.printed().items()
                   if origin == "default" and value.isdigit()}
        self.assertGreater(len(numbers), 20)
        names = {flag.removeprefix("--"): value for flag, value in numbers.items()}
        of_file = self.printed("--config", self.in_file(names))
        flags = {flag: value for flag, value in numbers.items() if flag.startswith("--")}
        typed = self.printed(*(word for pair in flags.items() for word in pair))
        of_environment = self.printed(environment=variables(names))
        for flag, value in numbers.items():
            with self.subTest(flag=flag):
                if flag in flags:
                    self.assertEqual(typed[flag], (value, "command line"))
                self.assertEqual(of_file[flag][0], value)
                self.assertTrue(of_environment[flag][1].startswith("FOVEA_"))

    def test_keys_are_not_printed(self):
        got = self.printed("--api-key", "hunter2", environment={"FOVEA_ADMIN_API_KEY": "hunter3"})
        self.assertEqual(got["--api-key"], ("***", "command line"))
        self.assertEqual(got["--admin-api-key"], ("***", "FOVEA_ADMIN_API_KEY"))
        self.assertEqual(self.printed("--media-header", "X-Token: hunter4")["--media-header"],
                         ("***", "command line"))

    def test_keys_of_the_environment_are_a_list(self):
        with Served(environment={"FOVEA_API_KEY": "one,two"}) as server:
            for key, status in (("one", 404), ("two", 404), ("one,two", 401)):
                self.assertEqual(server.get("/v1/cache/x", bearer(key)).status, status)

    def test_mistakes_end_with_2_and_say_where(self):
        for flags, words in (
                (("--config", self.in_file({"max-conections": 3})), "did you mean max-connections"),
                (("--config", self.in_file({"port": "http"})), "port"),
                (("--config", self.in_file("{")), "--config"),
                (("--config", "/nowhere.json"), "no such file"),
                (("--port", "65536"), "--port"),
                (("--ssl-certfile", "x"), "--ssl-keyfile"),
                (("--ssl-cert-reqs", "required"), "--ssl-ca-certs"),
                (("--ssl-ca-certs", "x"), "--ssl-cert-reqs"),
                (("--ssl-ca-certs", "x", "--ssl-cert-reqs", "optional"), "--ssl-certfile"),
                (("--media-url-policy", "allowlist"), "--allowed-media-domains"),
                *((("--media-url-policy", policy, "--allowed-media-domains", "a.test"),
                   "--allowed-media-domains") for policy in ("none", "any")),
                (("--allowed-origins", '["https://a.test"'), "--allowed-origins"),
                (("--allowed-methods", '["GET", 3]'), "--allowed-methods"),
                (("--media-proxy-lookup", "proxy", "--media-proxy", "http://p:1"), "--media-url-policy"),
                (("--media-proxy-lookup", "proxy"), "--media-proxy"),
                (("--media-no-proxy", "a.test"), "--media-proxy"),
                (("--allow-credentials",), "--allowed-origins"),
                (("--log-format", "xml"), "--log-format"),
                (("--io-threads", "0"), "--io-threads"),
                (("--ec-transfer-config", "[]"), "--ec-transfer-config")):
            with self.subTest(flags=flags):
                done = run_serve(*flags)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_log_lines_in_json(self):
        with Served("--log-format", "json", "--log-level", "debug") as server:
            server.get("/nowhere", {"X-Request-Id": "a-1"})
            wait_until(lambda: all(word in server.text_of_log() for word in ("a-1", '"ready"')))
            self.assertEqual(server.end(), 0)
            lines = [json.loads(line) for line in server.text_of_log().splitlines()]
        self.assertTrue(all({"time", "level"} < set(line) for line in lines))
        request = next(line for line in lines if line.get("id") == "a-1")
        self.assertEqual((request["event"], request["method"], request["path"], request["status"],
                          request["error"]),
                         ("request", "GET", "/nowhere", 404, "route_not_found"))
        self.assertEqual([line["event"] for line in lines if line.get("event") in
                          ("listening", "ready", "shutting_down", "stopped")],
                         ["listening", "ready", "shutting_down", "stopped"])


class States(unittest.TestCase):
    def large_model(self):
        """A folder of a model that takes its time to load."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, "config.json"), "w") as file:
            json.dump({"model_type": "qwen3_vl",
                       "architectures": ["Qwen3VLForConditionalGeneration"],
                       "vision_config": {
                           "model_type": "qwen3_vl", "depth": 12, "hidden_size": 1024,
                           "intermediate_size": 4096, "num_heads": 16, "in_channels": 3,
                           "hidden_act": "gelu_pytorch_tanh", "num_position_embeddings": 2304,
                           "out_hidden_size": 2048, "patch_size": 16, "spatial_merge_size": 2,
                           "temporal_patch_size": 2, "deepstack_visual_indexes": [5]}}, file)
        return folder.name

    def test_starting(self):
        with Served("--load-format", "dummy", model=self.large_model(), wait=False) as server:
            server.wait_for_address()
            reply = server.encode(image(PHOTO))
            self.assertEqual((reply.status, reply.code()), (503, "starting"))
            self.assertGreaterEqual(int(reply.headers["Retry-After"]), 1)
            self.assertEqual(server.get("/readyz").json(), {"status": "starting"})
            self.assertEqual(server.get("/livez").status, 200)
            self.assertEqual(server.get("/metrics").status, 200)
            self.assertEqual(server.metric("fovea_ready"), 0)

    def test_a_model_that_cannot_be_loaded_ends_the_server(self):
        with tempfile.TemporaryDirectory() as folder, Served(model=folder, wait=False) as server:
            self.assertEqual(server.process.wait(PATIENCE), 1)
            self.assertIn("config.json", server.text_of_log())

    def test_readiness_falls_before_the_end(self):
        with Served(settings={"drain-delay": 1}) as server:
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: server.get("/readyz").status == 503)
            self.assertEqual(server.get("/health").json(), {"status": "draining"})
            self.assertEqual(server.get("/livez").status, 200)
            self.assertEqual(server.encode(image(PHOTO), RAW).status, 200)
            self.assertEqual(server.process.wait(PATIENCE), 0)

    def test_a_hang_up_meanwhile_changes_nothing(self):
        """Neither the time that is left for the drain nor the exit code."""
        with Served(settings={"drain-delay": 1}) as server:
            begin = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            while server.process.poll() is None:
                server.process.send_signal(signal.SIGHUP)
            self.assertEqual(server.process.returncode, 0, server.text_of_log())
            self.assertGreater(time.monotonic() - begin, 0.9)

    def test_a_second_signal_ends_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Served(settings={"drain-delay": 600}) as server:
                server.process.send_signal(number)
                wait_until(lambda: server.get("/readyz").status == 503)
                begin = time.monotonic()
                self.assertEqual(server.end(number), 128 + number)
                self.assertLess(time.monotonic() - begin, 300)


if __name__ == "__main__":
    main()
