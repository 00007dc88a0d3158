"""A third-party tus server (the package resumable-upload) that misbehaves as it is told.

    faulty_tus.py FOLDER [--max-chunk=BYTES] [--expiry=SECONDS] [VERB=STEP,STEP…]…

Each request of VERB takes the next of its steps; without one it is served as usual. Steps:

    pass        as usual
    silent      does the work and closes without an answer: a lost acknowledgement
    drop        closes before reading the body
    cut:N       takes N bytes of the body, keeps them, and closes without an answer
    CODE        answers with that status and does nothing; CODE:WAIT adds Retry-After

A request that breaks a rule of tus is refused, also where the package is lenient.

Prints "ready PORT", then one line for each request: its verb, path, step and Upload-Offset.
"""

import base64
import io
import os
import re
import socket
import sys
import threading
from http.server import ThreadingHTTPServer

from resumable_upload import SQLiteStorage, TusHTTPRequestHandler, TusServer

folder = sys.argv[1]
options = dict(word[2:].split("=", 1) for word in sys.argv[2:] if word.startswith("--"))
plan = {
    verb: steps.split(",")
    for verb, steps in (word.split("=", 1) for word in sys.argv[2:] if not word.startswith("--"))
}
lock = threading.Lock()


class FirstBytes(io.RawIOBase):
    """A body that ends after some bytes, as if the client had gone."""

    def __init__(self, source, count):
        self.source, self.left = source, count

    def read(self, count=-1):
        wanted = self.left if count < 0 else min(count, self.left)
        got = self.source.read(wanted) if wanted else b""
        self.left -= len(got)
        return got


def is_number(text):
    return re.fullmatch("[0-9]{1,19}", text) is not None and int(text) < 1 << 63


def is_metadata(header):
    """Pairs without a blank beside the comma: keys of ASCII, each once, and values in whole Base64."""
    pairs = [pair.partition(" ") for pair in header.split(",")]
    keys = [key for key, _, _ in pairs]
    try:
        for _, _, value in pairs:
            base64.b64decode(value, validate=True)
    except ValueError:
        return False
    return len(set(keys)) == len(keys) and all(re.fullmatch("[!-~]+", key) for key in keys)


class Handler(TusHTTPRequestHandler):
    def objection(self, verb):
        """What strict servers refuse and the package takes, as (status, words)."""
        for name in ("Upload-Length", "Upload-Offset", "Content-Length"):
            if not is_number(self.headers.get(name, "0")):
                return 400, f"{name} is no plain number"
        if verb in ("POST", "PATCH") and ("Content-Length" not in self.headers or "Transfer-Encoding" in self.headers):
            return 411, "a Content-Length is needed"
        count = int(self.headers.get("Content-Length", "0"))
        if verb == "POST" and count and self.headers.get("Content-Type") != "application/offset+octet-stream":
            return 415, "bytes of a file have a type of their own"
        if verb == "POST" and count > int(self.headers.get("Upload-Length", count)):
            return 413, "these are more bytes than the upload has"
        if self.headers.get("Upload-Concat", "").startswith("final") and (count or "Upload-Length" in self.headers):
            return 400, "what is put together has neither a length nor bytes of its own"
        if not re.fullmatch("[a-z0-9]+ [A-Za-z0-9+/]+={0,2}", self.headers.get("Upload-Checksum", "sha1 none")):
            return 400, "Upload-Checksum is not well formed"
        if not is_metadata(self.headers.get("Upload-Metadata", "none")):
            return 400, "Upload-Metadata is not well formed"

    def answer(self, verb, real):
        with lock:
            step = plan[verb].pop(0) if plan.get(verb) else "pass"
            print("request", verb, self.path, step, self.headers.get("Upload-Offset", "-"), flush=True)
        word, _, number = step.partition(":")
        if word in ("pass", "silent", "cut") and (objection := self.objection(verb)):
            return self.refuse(*objection)
        if word == "pass":
            return real()
        self.close_connection = True
        if word in ("silent", "cut"):
            wire, self.wfile = self.wfile, open(os.devnull, "wb")
            whole = self.rfile
            if word == "cut":
                self.rfile = FirstBytes(whole, int(number))
            try:
                real()
            finally:
                self.rfile, self.wfile, self.close_connection = whole, wire, True
        if word in ("silent", "cut", "drop"):
            return self.connection.shutdown(socket.SHUT_RDWR)
        self.refuse(int(word), wait=number)

    def refuse(self, status, words="", wait=""):
        """Without a look at the body."""
        self.close_connection = True
        self.send_response(status)
        self.send_header("Tus-Resumable", "1.0.0")
        self.send_header("Content-Length", str(len(words)))
        self.send_header("Connection", "close")
        if wait:
            self.send_header("Retry-After", wait)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(words.encode())

    def send_response(self, status, message=None):
        super().send_response(status, message)
        if status == 412:  # The package does not say which version it has.
            self.send_header("Tus-Version", "1.0.0" if self.headers.get("Tus-Resumable") != "1.0.0" else "0.2.2")

    def do_OPTIONS(self):
        self.answer("OPTIONS", super().do_OPTIONS)

    def do_POST(self):
        self.answer("POST", super().do_POST)

    def do_HEAD(self):
        self.answer("HEAD", super().do_HEAD)

    def do_PATCH(self):
        self.answer("PATCH", super().do_PATCH)

    def do_DELETE(self):
        self.answer("DELETE", super().do_DELETE)

    def log_message(self, *arguments):
        pass


os.makedirs(f"{folder}/up", exist_ok=True)
extra = {"max_chunk_size": int(options["max-chunk"])} if "max-chunk" in options else {}
if "max-size" in options:
    extra["max_size"] = int(options["max-size"])
if "expiry" in options:
    extra["upload_expiry"] = int(options["expiry"])
Handler.tus_server = TusServer(
    storage=SQLiteStorage(db_path=f"{folder}/tus.db", upload_dir=f"{folder}/up"),
    base_path="/files",
    checksum_algorithms=("sha1", "sha256"),
    **extra,
)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("ready", server.server_address[1], flush=True)
server.serve_forever()
