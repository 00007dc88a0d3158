"""The relay before tus servers of other manners than those of the other tests.

    python -m unittest -v test_relay        in this folder, with no package
"""

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent


class Upstream(BaseHTTPRequestHandler):
    """One upload of 10 bytes, told as the class says."""
    protocol_version = "HTTP/1.1"
    created, place, head, offset = 201, "/files/1", 200, 0

    def log_message(self, *_):
        pass

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.command == "PATCH":
            Upstream.offset += len(body)
        self.send_response({"POST": self.created, "HEAD": self.head}.get(self.command, 204))
        if self.command == "POST":
            self.send_header("Location", self.place)
            if self.created != 204:
                self.send_header("Content-Length", "0")
        else:
            self.send_header("Upload-Offset", str(self.offset))
            self.send_header("Upload-Length", "10")
        self.end_headers()

    do_POST = do_HEAD = do_PATCH = serve


class Relay(unittest.TestCase):
    def setUp(self):
        Upstream.created, Upstream.place, Upstream.head, Upstream.offset = 201, "/files/1", 200, 0
        self.upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
        threading.Thread(target=self.upstream.serve_forever, daemon=True).start()
        self.folder = tempfile.TemporaryDirectory()
        self.log = Path(self.folder.name, "log")
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(self.upstream.server_close)
        self.addCleanup(self.upstream.shutdown)

    def start(self, fault):
        process = subprocess.Popen([sys.executable, "-B", HERE / "relay.py", "tus", str(self.upstream.server_port), self.log, "--faults=" + fault],
                                   stdout=subprocess.PIPE, text=True)
        self.port = int(process.stdout.readline().split()[1])
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def ask(self, method, path, headers, body=b""):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, {"Tus-Resumable": "1.0.0"} | headers)
            return connection.getresponse()
        finally:
            connection.close()

    def lines(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def test_look_without_a_body(self):
        """What was created before the relay began is known by HEAD, which may say 204."""
        for Upstream.head in (200, 204):
            Upstream.offset = 0
            self.start("refuse-file")
            answer = self.ask("HEAD", "/files/1", {})
            self.assertEqual((answer.status, answer.getheader("Content-Length")), (Upstream.head, None if Upstream.head == 204 else "0"))
            self.assertEqual(self.ask("PATCH", "/files/1", {"Upload-Offset": "0"}, b"x" * 6).status, 204)
            self.assertIn(self.ask("PATCH", "/files/1", {"Upload-Offset": "6"}, b"x" * 4).status, (400, 422, 500))
            self.assertEqual([(one["isEnd"], one["fault"]) for one in self.lines()][-2:], [(False, None), (True, "refuse")])

    def test_creations(self):
        """Any status of success, and a place in any form."""
        self.start("refuse-file")
        for number, (Upstream.created, Upstream.place) in enumerate((
                (201, "/files/1"), (204, "/files/2"), (200, "3"), (201, "//somewhere/files/4"), (201, "http://somewhere:1/files/5"),
                (201, "?id=6"), (201, "?id=7"))):
            Upstream.offset = 0
            self.assertEqual(self.ask("POST", "/files/", {"Upload-Length": "10", "Upload-Metadata": "filename YQ=="}).status, Upstream.created)
            place = {2: "/files/3", 3: "/files/4", 4: "/files/5", 5: "/files/?id=6", 6: "/files/?id=7"}.get(number, Upstream.place)
            self.assertIn(self.ask("PATCH", place, {"Upload-Offset": "0"}, b"x" * 10).status, (400, 422, 500))
            last = self.lines()[-1]
            self.assertEqual([last[name] for name in ("upload", "name", "isEnd", "fault")], [place.partition("?")[0], "a", True, "refuse"])

    def test_chunks(self):
        self.start("none")
        answer = self.ask("PATCH", "/files/1", {"Upload-Offset": "0", "Transfer-Encoding": "chunked"}, iter([b"abc"]))
        self.assertEqual((answer.status, Upstream.offset), (411, 0))
        self.assertEqual([(one["told"], one["did"]) for one in self.lines()], [(411, None)])


if __name__ == "__main__":
    unittest.main()
