"""The faulty tus server, each rule by a raw request.

    python -m unittest -v test_faulty_tus        in this folder, with resumable-upload==0.3.0
"""

import base64
import hashlib
import http.client
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
TUS = {"Tus-Resumable": "1.0.0"}
BYTES = {"Content-Type": "application/offset+octet-stream"}


class Server:
    def __init__(self, *plan):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([sys.executable, "-B", HERE / "faulty_tus.py", self.folder.name, *plan],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().split()[1])

    def end(self):
        self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()
        self.folder.cleanup()

    def ask(self, method, path, headers=None, body=b""):
        """A header whose value is None is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            answer.data = answer.read()
            return answer
        finally:
            connection.close()


class Rules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.end)

    def post(self, headers=None, body=b"", status=201):
        answer = self.server.ask("POST", "/files", TUS | {"Upload-Length": "10"} | (headers or {}), body)
        self.assertEqual(answer.status, status, (headers, answer.data))
        return answer

    def patch(self, headers=None, body=b"abc", status=204):
        """To an upload of its own. What is refused leaves nothing there."""
        place = self.post().getheader("Location")
        answer = self.server.ask("PATCH", place, TUS | BYTES | {"Upload-Offset": "0"} | (headers or {}), body)
        self.assertEqual(answer.status, status, (headers, answer.data))
        self.assertEqual(self.offset(place), str(len(body)) if status == 204 else "0")
        return answer

    def offset(self, place):
        answer = self.server.ask("HEAD", place, TUS)
        self.assertEqual((answer.status, answer.getheader("Cache-Control")), (200, "no-store"))
        return answer.getheader("Upload-Offset")

    def test_plain_upload(self):
        self.assertTrue(self.post().getheader("Location"))
        self.assertEqual(self.patch().getheader("Upload-Offset"), "3")
        self.patch({"Content-Type": "application/offset+octet-stream; charset=utf-8"}, status=415)
        self.patch({"Upload-Offset": "1"}, status=409)
        self.patch(body=b"x" * 11, status=400)

    def test_numbers(self):
        for wrong in ("+3", "-1", "1_0", "3 3", "3.0", "", "9" * 19, "9" * 20, "0" * 20):
            self.post({"Upload-Length": wrong}, status=400)
            self.patch({"Upload-Offset": wrong}, status=400)
        self.post({"Upload-Length": str((1 << 63) - 1)})


    def test_lengths_of_bodies(self):
        self.post({"Content-Length": None}, status=411)
        self.patch({"Content-Length": None}, b"", status=411)
        self.patch({"Content-Length": None, "Transfer-Encoding": "chunked"}, b"1\r\na\r\n0\r\n\r\n", status=411)
        self.patch(body=b"")

    def test_creation_with_bytes(self):
        self.assertEqual(self.post(BYTES, b"abc").getheader("Upload-Offset"), "3")
        for wrong in (None, "text/plain", "application/offset+octet-stream; charset=utf-8"):
            self.post({"Content-Type": wrong}, b"abc", status=415)
        self.post(BYTES, b"x" * 11, status=413)

    def test_versions(self):
        place = self.post().getheader("Location")
        for version in (None, "0.2.2", "1.0"):
            for method, path in (("POST", "/files"), ("HEAD", place), ("PATCH", place), ("DELETE", place)):
                answer = self.server.ask(method, path, BYTES | {"Tus-Resumable": version, "Upload-Length": "10", "Upload-Offset": "0"})
                self.assertEqual((answer.status, answer.getheader("Tus-Version")), (412, "1.0.0"))

    def test_putting_together(self):
        places = [self.post({"Upload-Length": "3", "Upload-Concat": "partial"}).getheader("Location") for _ in range(2)]
        for place in places:
            self.assertEqual(self.server.ask("PATCH", place, TUS | BYTES | {"Upload-Offset": "0"}, b"abc").status, 204)
        final = {"Upload-Concat": "final;" + " ".join(places)}
        self.post(final | {"Upload-Length": "6"}, status=400)
        self.post(final | BYTES | {"Upload-Length": None}, b"x", status=400)
        whole = self.post(final | {"Upload-Length": None}).getheader("Location")
        self.assertEqual(self.offset(whole), "6")
        self.assertEqual(self.server.ask("PATCH", whole, TUS | BYTES | {"Upload-Offset": "6"}).status, 403)

    def test_checksums(self):
        good = {name: base64.b64encode(hashlib.new(name, b"abc").digest()).decode() for name in ("sha1", "sha256")}
        for name, value in good.items():
            self.patch({"Upload-Checksum": f"{name} {value}"})
            other = base64.b64encode(hashlib.new(name, b"abd").digest()).decode()
            for wrong in (other, hashlib.new(name, b"abc").hexdigest(), good["sha1" if name == "sha256" else "sha256"]):
                self.patch({"Upload-Checksum": f"{name} {wrong}"}, status=460)
        for wrong in (f"SHA1 {good['sha1']}", f"md5 {good['sha1']}", "sha1", "", good["sha1"], f"sha1  {good['sha1']}", f"sha1 {good['sha1'].rstrip('=')}"):
            self.patch({"Upload-Checksum": wrong}, status=400)

    def test_metadata(self):
        for wrong in ("filename YQ==, filetype YQ==", "filename YQ== ,filetype YQ==", "filename YQ", "filename a%", "filename YQ==,filename Yg==",
                      ",", "", "filename YQ==,", "a b c", "n\u00e9 YQ==", "filename  YQ=="):
            self.post({"Upload-Metadata": wrong}, status=400)
        for right in ("filename YQ==,filetype dmlkZW8vbXA0", "filename YQ==,empty", "empty ,filename YQ==", "a-b_C YQ=="):
            self.post({"Upload-Metadata": right})


class Steps(unittest.TestCase):
    def test_steps(self):
        server = Server("POST=412,503:7,pass", "PATCH=silent,cut:2,drop")
        self.addCleanup(server.end)
        answer = server.ask("POST", "/files", TUS | {"Upload-Length": "10"})
        self.assertEqual((answer.status, answer.getheader("Tus-Version")), (412, "0.2.2"))
        answer = server.ask("POST", "/files", TUS | {"Upload-Length": "10"})
        self.assertEqual((answer.status, answer.getheader("Retry-After"), answer.getheader("Tus-Resumable")), (503, "7", "1.0.0"))
        place = server.ask("POST", "/files", TUS | {"Upload-Length": "10"}).getheader("Location")
        for begin, end in ((0, 4), (4, 6), (6, 6)):
            with self.assertRaises((http.client.RemoteDisconnected, ConnectionError)):
                server.ask("PATCH", place, TUS | BYTES | {"Upload-Offset": str(begin)}, b"abcd")
            self.assertEqual(server.ask("HEAD", place, TUS).getheader("Upload-Offset"), str(end))


if __name__ == "__main__":
    unittest.main()
