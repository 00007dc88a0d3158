"""A stand-in for Alibaba Cloud OSS and ApsaraVideo VOD on 127.0.0.1, as strict as their manual.

    oss_emulator.py --port 0 --state FOLDER     prints {"port": N}, ends at SIGTERM, or when a pipe that is its input closes

Needs oss2==2.19.1, alibabacloud-oss-v2==1.4.1 and alibabacloud-tea-openapi==0.4.6 (with what they bring), which
recompute the signatures.

Buckets are at /bucket/key or under Host: bucket.localhost; the video service is at / by its Action; a user's own
authorisation service is at /_auth and /_sts; tests steer and ask at /_control/NAME, in JSON:

    GET   record faults objects uploads keys videos settings
    POST  forget ["record", ...]     faults [{"do": ..}]     keys {"lifetime": ..}     expire {"id": ..}
          settings {"skew": ..}      buckets {"name": ..}    corrupt / drop {"bucket", "key", "part"}

A fault is {"do": NAME, "match": {...}, "nth": 1, "times": 1, ...}: it strikes from the nth matching request on, so
often (0: always). `match` has operation, method, bucket, key, part, upload, path (a piece of it); oss_control.py has
the list of them.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import secrets
import signal
import socket
import stat
import struct
import threading
import time
import uuid
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote_to_bytes

import oss_control as control
import oss_operations as storage
import vod_emulator as video
from oss_operations import BLOCK
from oss_signatures import Crc64, pairs, text
from oss_state import Answer, Refusal, State, Stored
from oss_wire import xml

SECRET_HEADERS = {"x-oss-security-token", "security-token", "x-acs-security-token", "cookie"}
SECRET_QUERY = re.compile(r"(?i)(^|&)((?:x-oss-)?signature|securitytoken|(?:x-oss-)?security-token)=[^&]*")


class Gone(Exception):
    """The connection ends here, with no answer."""


class Call:
    """One request, as far as its meaning goes, and its body while it comes in."""

    def __init__(self, state, handler):
        self.state, self.handler = state, handler
        target = handler.requestline.split()[1]  # The server's own `path` has had leading slashes taken off.
        self.path, _, self.raw_query = target.partition("?")
        self.method = handler.command
        self.headers = {name.lower(): text(value) for name, value in handler.headers.items()}
        names = [name.lower() for name in handler.headers.keys()]
        self.repeated = {name for name in names if names.count(name) > 1}
        self.query = pairs(self.raw_query)
        self.q = dict(self.query)
        self.bucket = self.key = ""
        self.signer, self.faults, self.json, self.stored = None, [], True, None
        length = self.headers.get("content-length", "")
        self.length = int(length) if length.isdigit() else None
        self.left, self.received = self.length or 0, 0
        self.waiting = self.headers.get("expect", "").lower() == "100-continue"
        self.find_place()

    def find_place(self):
        host = re.sub(r":\d+$", "", self.headers.get("host", ""))
        inside = self.path[1:]
        if self.path in ("/_auth", "/_sts"):
            self.side, self.operation = "own", {"/_auth": "Auth", "/_sts": "Sts"}[self.path]
        elif self.path == "/" and ("Action" in self.q or "x-acs-action" in self.headers):
            self.side, self.operation = "vod", self.q.get("Action") or self.headers["x-acs-action"]
        else:
            self.side, self.virtual = "oss", re.fullmatch(r"[a-z0-9-]+\.[a-z][a-z0-9.-]*", host) is not None
            if self.virtual:
                self.bucket = host.partition(".")[0]
            else:
                self.bucket, _, inside = inside.partition("/")
            raw = unquote_to_bytes(inside)
            self.key, self.is_text = text(raw), raw == raw.decode(errors="replace").encode()
            self.operation = storage.operation(self)

    def fault(self, name):
        return next((one for one in self.faults if one["do"] == name), None)

    # The body

    def blocks(self):
        """The body as it comes. An end of the connection before the end of the body ends it too."""
        close, expire, slow = (dict(self.fault(name) or {}) for name in ("close", "expire", "slow_read"))
        if close:
            close.setdefault("bytes", 0)
        limit = self.headers.get("x-oss-traffic-limit")
        if self.side == "oss" and limit:  # Found good before. The service keeps it itself, in bits a second.
            slow = {"rate": min(int(limit) / 8, slow.get("rate", float("inf")))}
        self.handler.connection.settimeout(self.state.settings["body_timeout"])
        self.go_on()
        while self.left or "bytes" in close:
            size = min(BLOCK, self.left, *(one["bytes"] - self.received for one in (close, expire)
                                           if one.get("bytes", -1) > self.received))
            if slow:
                size = min(size, max(1, int(slow["rate"] / 10)))
                time.sleep(size / slow["rate"])
            if "bytes" in close and (self.received >= close["bytes"] or not self.left):
                raise Gone
            try:
                block = self.handler.rfile.read(size)
            except TimeoutError:
                self.handler.close_connection, self.left = True, 0
                raise Refusal(400, "RequestTimeout", "Your socket connection to the server was not read from or written to in time.")
            except ConnectionError:
                raise Gone
            if not block:
                break
            self.left -= len(block)
            self.received += len(block)
            if self.signer and self.received >= expire.get("bytes", self.received + 1):
                self.state.expire(self.signer.id)
            yield block

    def go_on(self):
        if self.waiting:
            self.waiting = False
            self.handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.handler.wfile.flush()

    def read(self, limit):
        body = b"".join(self.blocks())
        if len(body) > limit:
            raise Refusal(400, "EntityTooLarge", "The body is too large.")
        return body

    def store(self, path):
        """Puts the body into a file and sums it up on the way."""
        md5, crc, damage = hashlib.md5(), Crc64(), (self.fault("corrupt") or {}).get("seen")
        try:
            with path.open("wb") as file:
                for block in self.blocks():
                    if damage:
                        block, damage = bytes([block[0] ^ 1]) + block[1:], False
                    file.write(block)
                    md5.update(block)
                    crc.update(block)
            if self.left:
                self.handler.close_connection, self.left = True, 0
                raise Refusal(400, "InvalidDigest", "The body is shorter than its Content-Length.")
            if "bytes" in (self.fault("expire") or {}):
                self.state.check_end(self.signer)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self.stored = Stored(path, self.received, md5.hexdigest(), crc.crc)
        return self.stored

    def drain(self):
        try:
            while self.left and (block := self.handler.rfile.read(min(self.left, BLOCK))):
                self.left -= len(block)
                self.received += len(block)
        except OSError:
            pass
        if self.left:
            self.handler.close_connection = True


# ------------------------------------------------------------------------------------------------ the server


class Handler(BaseHTTPRequestHandler):
    protocol_version, server_version, sys_version = "HTTP/1.1", "AliyunOSS", ""
    wbufsize, disable_nagle_algorithm, timeout = 1 << 16, True, 60
    flying = 0

    def log_message(self, *_):
        pass

    def handle_expect_100(self):
        return True  # The body is asked for only when it is wanted.

    def date_time_string(self, timestamp=None):
        return formatdate(self.state.now() if timestamp is None else timestamp, usegmt=True)

    def take(self):
        call = Call(self.state, self)
        if call.path.startswith("/_control/"):
            return self.send(call, control.serve(self.state, call))
        with self.state.lock:
            Handler.flying += 1
            entry = self.entry(call)
            self.state.record.append(entry)
        begun = time.monotonic()
        try:
            control.strike(self.state, call)
            entry["faults"] = [fault["do"] for fault in call.faults]
            answer = self.answer(call, entry)
            entry["received"] = call.received
            if call.fault("slow"):
                time.sleep(call.fault("slow")["seconds"])
            if call.fault("lose_answer"):
                raise Gone
            # Before the answer, since what it sets off does not overlap with this.
            self.finish_entry(entry, call, begun, status=answer.status)
            self.send(call, answer)
        except Gone:
            if any(fault.get("reset") for fault in call.faults):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
        except OSError:  # The other side went away.
            self.close_connection, entry["answered"] = True, False
        finally:
            self.finish_entry(entry, call, begun, status=None)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_OPTIONS = take

    def entry(self, call):
        shown = {name: "***" if name in SECRET_HEADERS else value for name, value in call.headers.items()}
        if "authorization" in shown:
            known = re.match(r"OSS [^:]+:|(OSS4|ACS3)-HMAC-SHA256 ", shown["authorization"])
            plain = re.sub(r"Signature=[0-9a-f]+", "Signature=***", shown["authorization"])
            shown["authorization"] = plain if known and known[1] else (known[0] if known else plain.partition(" ")[0] + " ") + "***"
        return {"n": len(self.state.record) + 1, "time": time.time(), "method": call.method, "path": call.path,
                "query": SECRET_QUERY.sub(r"\1\2=***", call.raw_query), "headers": shown, "operation": call.operation,
                "bucket": call.bucket, "key": call.key, "part": call.q.get("partNumber"), "upload": call.q.get("uploadId"),
                "length": call.length, "received": 0, "at_once": Handler.flying, "faults": [], "signer": None, "status": None,
                "code": None, "answered": False, "seconds": None}

    def finish_entry(self, entry, call, begun, status):
        if entry["seconds"] is not None:
            return
        with self.state.lock:
            Handler.flying -= 1
        entry |= {"received": call.received, "status": status, "answered": status is not None, "seconds": round(time.monotonic() - begun, 4),
                  "signer": call.signer and call.signer.id}

    def answer(self, call, entry):
        """What the service says, or what a fault makes of it."""
        fault = call.fault("error")
        try:
            if call.repeated:  # Which of them would be the signed one?
                raise Refusal(400, "InvalidArgument", f"The header {', '.join(call.repeated)} is there more than once.")
            if "transfer-encoding" in call.headers:  # The service would take some; nothing of ours has cause to send any.
                self.close_connection = True
                raise Refusal(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
            expire = call.fault("expire")
            if call.fault("close") and not call.left:
                raise Gone
            if expire and "bytes" not in expire:
                self.state.expire(expire.get("id") or self.named_key(call))
            if fault:
                if not fault.get("early"):
                    call.go_on()
                raise Refusal(fault.get("status", 500), fault.get("code", "InternalError"), fault.get("message", ""), fault.get("ec"))
            if call.side == "oss":
                if not call.virtual and not self.state.settings["path_style"]:
                    raise Refusal(403, "SecondLevelDomainForbidden", "Please use virtual hosted style to access.")
                answer = storage.serve(self.state, call)
            else:
                found = (video.serve if call.side == "vod" else video.own_service)(self.state, call)
                answer = self.spoken(call, 200, found | ({"RequestId": str(uuid.uuid4()).upper()} if call.side == "vod" else {}))
            self.spoil(call)
        except Refusal as no:
            entry["code"] = no.code
            answer = self.refused(call, no)
        if call.left and (call.waiting or fault and fault.get("early")):
            self.close_connection = True
        else:
            call.drain()
        return self.distorted(call, answer)

    def named_key(self, call):
        shown = call.headers.get("authorization", "") + call.q.get("AccessKeyId", "")
        return next((id for id in self.state.keys if id in shown), "none")

    def spoil(self, call):
        fault = call.fault("corrupt")
        if fault and not fault.get("seen"):
            kept = call.stored if call.operation == "UploadPart" else self.state.objects.get((call.bucket, call.key))
            if kept:
                control.damage(kept.path)

    def spoken(self, call, status, fields, name=None):
        """The video service speaks XML to whom does not ask for JSON."""
        if call.json:
            return Answer(status, {"Content-Type": "application/json"}, json.dumps(fields).encode())
        body = xml(name or call.operation + "Response", list(fields.items()))
        return Answer(status, {"Content-Type": "text/xml"}, ('<?xml version="1.0" encoding="UTF-8"?>' + body).encode())

    def refused(self, call, no):
        host = call.headers.get("host", "")
        if call.side != "oss":
            return self.spoken(call, no.status, {"RequestId": str(uuid.uuid4()).upper(), "HostId": host, "Code": no.code, "Message": no.message,
                                                 "Recommend": "https://api.aliyun.com/troubleshoot?q=" + no.code}, "Error")
        self.request_id = secrets.token_hex(12).upper()
        fields = [("Code", no.code), ("Message", no.message), ("RequestId", self.request_id), ("HostId", host), *no.more.items()]
        if no.ec:
            fields += [("EC", no.ec), ("RecommendDoc", "https://api.aliyun.com/troubleshoot?q=" + no.ec)]
        body = ('<?xml version="1.0" encoding="UTF-8"?>\n' + xml("Error", fields)).encode()
        headers = {"Content-Type": "application/xml"} | no.headers | ({"x-oss-ec": no.ec} if no.ec else {})
        headers["Content-Type"] = "application/xml"
        if call.method == "HEAD":
            headers["x-oss-err"] = base64.b64encode(body).decode()
        return Answer(no.status, headers, body)

    def distorted(self, call, answer):
        headers = answer.headers
        if "x-oss-hash-crc64ecma" in headers:
            if call.fault("wrong_crc"):
                headers["x-oss-hash-crc64ecma"] = str(int(headers["x-oss-hash-crc64ecma"]) ^ 1)
            if call.fault("no_crc"):
                del headers["x-oss-hash-crc64ecma"]
        if call.fault("lower_etag"):
            if "ETag" in headers:
                headers["ETag"] = headers["ETag"].lower()
            answer.body = re.sub(rb"<ETag>[^<]*</ETag>", lambda found: b"<ETag>" + found[0][6:-7].lower() + b"</ETag>", answer.body)
        if call.fault("loose_xml") and answer.body.startswith(b"<?xml"):
            head, _, rest = answer.body.partition(b"?>")
            answer.body = head + b"?>\n\n" + rest.replace(b"><", b">\r\n\t <").replace(b'"', b"&quot;") + b"\n\n"
        return answer

    def send(self, call, answer):
        self.send_response(answer.status)
        size = answer.file[2] if answer.file else len(answer.body)
        if call.side == "oss":
            self.send_header("x-oss-request-id", getattr(self, "request_id", None) or secrets.token_hex(12).upper())
            self.send_header("x-oss-server-time", "1")
            self.request_id = None
        for name, value in answer.headers.items():
            self.send_header(name, value.encode().decode("latin-1"))
        if answer.status != 204:
            self.send_header("Content-Length", str(size if answer.file or call.method != "HEAD" else 0))
        self.send_header("Connection", "close" if self.close_connection else "keep-alive")
        self.end_headers()
        cut = call.fault("cut")
        if cut:
            answer.body, self.close_connection = answer.body[:cut.get("bytes", 0)], True
        if call.method != "HEAD" and answer.file:
            with answer.file[0].open("rb") as file:
                file.seek(answer.file[1])
                while size and (block := file.read(min(size, BLOCK))):
                    self.wfile.write(block)
                    size -= len(block)
        elif call.method != "HEAD":
            self.wfile.write(answer.body)
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128


def wait_for_input_to_close(end):
    while os.read(0, 4096):  # sys.stdin has a lock that a thread must not hold when the program ends
        pass
    end.set()


def main():
    options = argparse.ArgumentParser(description="A stand-in for Alibaba Cloud OSS and ApsaraVideo VOD")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--state", required=True, metavar="FOLDER")
    options.add_argument("--region", default="cn-shanghai")
    options.add_argument("--bucket", action="append", default=[], metavar="NAME")
    options.add_argument("--key", action="append", default=[], metavar="ID:SECRET", help="a long-lived key")
    options.add_argument("--lifetime", type=float, default=3000, metavar="SECONDS", help="of temporary keys")
    given = options.parse_args()
    state = Handler.state = State(given.state, given.region)
    state.buckets.update(given.bucket)
    state.settings["lifetime"] = given.lifetime
    for pair in given.key or ["LTAI5tTestLongLivedKey:LongLivedSecret0123456789abcdef"]:
        control.new_key(state, dict(zip(("id", "secret"), pair.split(":", 1))))
    server = Server(("127.0.0.1", given.port), Handler)
    state.port = server.server_port
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: end.set())
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=wait_for_input_to_close, args=(end,), daemon=True).start()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": state.port}), flush=True)
    end.wait()
    server.server_close()


if __name__ == "__main__":
    main()
