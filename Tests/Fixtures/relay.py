"""A relay before another server that spoils the end of uploads, by a script that follows from a seed. Prints "ready PORT".

    relay.py tus|s3|form UPSTREAM_PORT LOG [--seed=N] [--faults=NAME,NAME…]

Each upload gets one of the faults by chance; without --faults every request passes. "The end" is the request with the last byte
of a file or, of an upload in parts, the one that joins them.

    none         every request passes
    refuse       the end is done, and answered with 400, 403, 422 or 500
    refuse-file  the same without 403, which is about the right to send
    gateway      the end is done, and answered with 502 or 503
    lost         the end is done, and its answer dropped
    page         the end is done, and a web page with status 200 is the answer
    forget       the same as lost; from then on HEAD and PATCH are answered with 404 or 410 (s3: HEAD once)
    stale        the same as lost; the next HEAD tells a lower offset
    look-page    the same as lost; the next HEAD or probe is answered with a web page and status 200
    whole        a request before the last is cut in its body, and the next HEAD says that everything is there
    cut          the end is cut in the middle of its body, which the server sees cut as well
    drop         the end is read in part, and never passed on
    lost-begin   the answer to the creation is dropped

LOG gets a line of JSON for each request: `upload` and, where it is known, `name`; `isEnd`; the `fault` that was done to it; `told`, the
status that the client was sent (null: none; also when the client had gone), `did`, what the server answered; `at`, in ms.
"""

import base64
import http.client
import json
import random
import re
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urljoin, urlsplit

kind, upstream, log_path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
options = dict(word[2:].split("=", 1) for word in sys.argv[4:])
faults = [name for name in options.get("faults", "").split(",") if name]
lock = threading.Lock()
log = open(log_path, "a", buffering=1)
PAGE = b"<!DOCTYPE html><html><body>Please log in.</body></html>"
uploads = {}


class Upload:
    """What is done to one upload, and what is known of it."""

    def __init__(self, number):
        dice = random.Random(f"{options.get('seed', '0')}-{number}")
        self.fault = dice.choice(faults) if faults else "none"
        self.refusal = dice.choice([400, 422, 500] if self.fault == "refuse-file" else [400, 403, 422, 500])
        self.gateway = dice.choice([502, 503])
        self.absence = dice.choice([404, 410])
        self.share = dice.random()
        self.name = None
        self.total = None
        self.is_done = False  # the fault of the request
        self.look = None  # what the next question is answered with

    def take(self, *names):
        """Whether the fault is one of these and was not done yet; it counts as done then."""
        with lock:
            if self.is_done or self.fault not in names:
                return False
            self.is_done = True
            return True

    def take_look(self):
        with lock:
            look = self.look
            if look != "forget":
                self.look = None
            return look


def upload_of(key):
    with lock:
        if key not in uploads:
            uploads[key] = Upload(len(uploads))
        return uploads[key]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120

    def log_message(self, *_):
        pass

    # What is asked.

    def identify(self):
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        self.is_end = self.is_begin = self.is_look = False
        self.length = int(self.headers.get("Content-Length") or 0)
        if kind == "form":
            key = query.get("resumableIdentifier", [""])[0]
            if not key:
                return None
            upload = upload_of(key)
            upload.name = query.get("resumableFilename", [None])[0]
            number, count = (int(query.get(f"resumable{name}", ["0"])[0]) for name in ("ChunkNumber", "TotalChunks"))
            self.is_look = self.command == "GET"
            self.is_end = self.command == "POST" and number == count
            self.key = key
            return upload
        if kind == "s3":
            if not re.match(r"/[^/]+/.+", parts.path) and not re.match(r"/.+\.\w+$", parts.path):
                return None
            self.key = parts.path
            upload = upload_of(self.key)
            upload.name = unquote(parts.path).split("/")[-1]
            is_part = "partNumber" in query
            self.is_look = self.command == "HEAD"
            self.is_end = self.command == "PUT" and not is_part or self.command == "POST" and "uploadId" in query
            return upload
        if self.command == "POST":
            self.is_begin = True
            return None
        if self.command not in ("HEAD", "PATCH"):
            return None
        self.key = self.place_of(self.path)
        upload = upload_of(self.key)
        self.is_look = self.command == "HEAD"
        if self.command == "PATCH":
            if upload.total is None:
                status, headers, _ = self.ask("HEAD", b"")
                told = dict((name.lower(), value) for name, value in headers).get("upload-length")
                upload.total = int(told) if status in (200, 204) and told else None
            self.begin = int(self.headers.get("Upload-Offset") or 0)
            self.is_end = self.begin + self.length == upload.total
        return upload

    def place_of(self, address):
        """What an upload of tus is told by: a query may be all that two of them differ in."""
        parts = urlsplit(urljoin(self.path, address))
        return parts.path + ("?" + parts.query if parts.query else "")

    def ask(self, method, body, part=None):
        """Passes the request on; the body up to `part` bytes, and then the connection is closed."""
        connection = http.client.HTTPConnection("127.0.0.1", upstream, timeout=60)
        try:
            connection.putrequest(method, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() in ("connection", "expect"):
                    continue
                if method != self.command and name.lower() in ("content-length", "content-type", "upload-offset"):
                    continue
                connection.putheader(name, value)
            connection.putheader("Connection", "close")
            connection.endheaders()
            connection.send(body if part is None else body[:part])
            if part is not None:
                return None
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    # What is answered.

    def note(self, upload, fault, told, did):
        key = getattr(self, "key", self.path)
        line = {
            "at": int(time.time() * 1000), "method": self.command, "path": self.path,
            "upload": key.partition("?")[0] if kind == "tus" else key, "name": upload.name if upload else None, "isEnd": self.is_end,
            "fault": fault, "told": told, "did": did,
        }
        with lock:
            log.write(json.dumps(line) + "\n")

    def client_is_gone(self):
        self.connection.settimeout(0)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(self.timeout)

    def drop(self, upload, fault, did):
        self.note(upload, fault, None, did)
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def answer(self, upload, fault, status, headers, body, did):
        if self.client_is_gone():
            self.note(upload, fault, None, did)
            self.close_connection = True
            return
        # First, so that nothing the client asks next is noted before it.
        self.note(upload, fault, status, did)
        self.send_response_only(status)
        names = set()
        for name, value in headers:
            names.add(name.lower())
            if name.lower() in ("connection", "transfer-encoding", "keep-alive"):
                continue
            if name.lower() == "content-length" and self.command != "HEAD":
                continue
            self.send_header(name, value)
        if self.command != "HEAD" and status != 204:
            self.send_header("Content-Length", str(len(body)))
        elif self.command == "HEAD" and status != 204 and "content-length" not in names:
            self.send_header("Content-Length", "0")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def words(self, upload, fault, status, text, did):
        self.answer(upload, fault, status, [("Content-Type", "text/plain")], text.encode(), did)

    def page(self, upload, fault, did):
        length = [("Content-Length", str(len(PAGE)))] if self.command == "HEAD" else []
        self.answer(upload, fault, 200, [("Content-Type", "text/html")] + length, PAGE, did)

    def serve(self):
        try:
            self.exchange()
        except (ConnectionError, TimeoutError, http.client.HTTPException):
            # The client was killed, or the server refuses to go on: no answer either way.
            self.close_connection = True

    def exchange(self):
        upload = self.identify()
        if "Transfer-Encoding" in self.headers:  # Half of the servers refuse it, and its bytes would be lost here.
            self.close_connection = True
            return self.words(upload, None, 411, "a Content-Length is needed", None)
        # The whole of the body leaves the client before it is cut: what it knows of that is not to depend on buffers.
        body = self.rfile.read(self.length)
        if len(body) < self.length:
            # The client was killed inside the request; the server sees as much of it.
            self.ask(self.command, body, part=len(body))
            self.note(upload, "client", None, None)
            self.close_connection = True
            return
        if upload is None:
            return self.begin_or_pass(body)
        if self.is_look or upload.look == "forget" and self.command == "PATCH":
            return self.look(upload, body)
        if self.is_end and upload.take("cut"):
            self.ask(self.command, body, part=int(len(body) * upload.share))
            return self.drop(upload, "cut", None)
        if self.is_end and upload.take("drop"):
            return self.drop(upload, "drop", None)
        if not self.is_end and self.command == "PATCH" and upload.take("whole"):
            self.ask(self.command, body, part=int(len(body) * upload.share))
            upload.look = "whole"
            return self.drop(upload, "whole", None)
        status, headers, answer = self.ask(self.command, body)
        if not self.is_end or not 200 <= status < 300:
            return self.answer(upload, None, status, headers, answer, status)
        if upload.take("refuse", "refuse-file"):
            return self.words(upload, "refuse", upload.refusal, "the check of the whole file failed", status)
        if upload.take("gateway"):
            return self.words(upload, "gateway", upload.gateway, "no answer from behind", status)
        if upload.take("page"):
            return self.page(upload, "page", status)
        if upload.take("lost", "forget", "stale", "look-page"):
            upload.look = upload.fault if upload.fault != "lost" else None
            return self.drop(upload, upload.fault, status)
        self.answer(upload, None, status, headers, answer, status)

    def begin_or_pass(self, body):
        status, headers, answer = self.ask(self.command, body)
        upload = None
        place = next((value for name, value in headers if name.lower() == "location"), "")
        if kind == "tus" and self.is_begin and 200 <= status < 300 and place:
            self.key = self.place_of(place)
            upload = upload_of(self.key)
            upload.total = int(self.headers.get("Upload-Length") or -1)
            pairs = dict(
                (pair.split() + [""])[:2] for pair in self.headers.get("Upload-Metadata", "").split(",") if pair.strip())
            upload.name = base64.b64decode(pairs.get("filename", "")).decode("utf-8", "replace")
            # A server that knows the creation again says so: what was forgotten is there then.
            upload.look = None
            # Once a file is enough: the waits grow with each loss.
            if upload.fault == "forget" and any(
                    other is not upload and other.name == upload.name for other in uploads.values()):
                upload.fault = "lost"
            if upload.take("lost-begin"):
                return self.drop(upload, "lost-begin", status)
        self.answer(upload, None, status, headers, answer, status)

    def look(self, upload, body):
        look = upload.take_look()
        if look == "forget":
            if kind == "s3":
                upload.look = None
            return self.words(upload, look, upload.absence, "no such upload", None)
        if look == "look-page":
            return self.page(upload, look, None)
        status, headers, answer = self.ask(self.command, body)
        if look in ("stale", "whole") and status in (200, 204):
            told = next((int(value) for name, value in headers if name.lower() == "upload-offset"), 0)
            lie = int(told * upload.share) if look == "stale" else upload.total
            headers = [pair for pair in headers if pair[0].lower() != "upload-offset"] + [("Upload-Offset", str(lie))]
            return self.answer(upload, look, status, headers, answer, status)
        self.answer(upload, None, status, headers, answer, status)

    do_OPTIONS = do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = serve


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # a client that was killed


server = Server(("127.0.0.1", 0), Handler)
print("ready", server.server_address[1], flush=True)
server.serve_forever()
