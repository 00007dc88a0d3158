"""Serves the page's files with their headers, and keeps sessions, as the daemon does. Subclasses answer `/v1/…`."""

import datetime
import http.server
import json
import pathlib
import secrets
import threading
import urllib.parse

ASSETS = pathlib.Path(__file__).resolve().parents[2] / "Sources/Control/Web"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
         ".js": "text/javascript; charset=utf-8"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def now(seconds=0):
    """RFC 3339 in UTC with milliseconds, as the API writes times."""
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03}Z"


class Sessions:
    """Who may do what: tokens that a person types, codes that work once, cookies for looking, keys for changes."""

    def __init__(self, tokens):
        self.tokens = tokens  # what a person types: (name, role)
        self.codes = {}
        self.cookies = {}
        self.keys = {}

    def code(self, name="ops", role="operate"):
        """A new code for one sign-in, as `sluice web` prints it."""
        code = secrets.token_hex(8)
        self.codes[code] = (name, role)
        return code

    def open(self, bearer, code):
        who = self.codes.pop(code, None) if code else self.tokens.get(bearer)
        if not who:
            return None
        cookie, key = secrets.token_hex(16), secrets.token_hex(16)
        self.cookies[cookie] = who
        self.keys[key] = (who, cookie)
        return who, cookie, key

    def forget_all(self):
        self.cookies.clear()
        self.keys.clear()


class Refused(Exception):
    """An answer with an error, as the API gives it."""

    def __init__(self, status, code, message, headers=()):
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions: Sessions

    def log_message(self, *_):
        pass

    def send(self, status, body=b"", kind="application/json", headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def cookie(self):
        pairs = (part.strip().partition("=") for part in self.headers.get("Cookie", "").split(";"))
        return {name: value for name, _, value in pairs}.get("sluice", "")

    def who(self, changes):
        """The person behind a request. The cookie is enough to look; a change needs the key."""
        who = self.sessions.cookies.get(self.cookie())
        if changes:
            who = self.sessions.keys.get(self.headers.get("X-Sluice-Token", ""), (None, None))[0]
        if not who:
            raise Refused(401, "unauthorized", "this address needs a session")
        if changes and who[1] != "operate":
            raise Refused(403, "forbidden", "this token may look, and change nothing")
        return who

    def asset(self, path):
        name = "index.html" if path == "/" else path.removeprefix("/assets/")
        file = ASSETS / name
        if "/" in name or not file.is_file():
            return self.send(404, {"error": {"code": "not_found", "message": "there is no such file"}})
        self.send(200, file.read_bytes(), TYPES[file.suffix], [("Cache-Control", "no-cache")])

    def session(self, body):
        if self.command == "GET":
            name, role = self.who(False)
            return self.send(200, {"name": name, "role": role, "until": now(7 * 86400)})
        if self.command == "DELETE":
            if self.headers.get("Sec-Fetch-Site") != "same-origin":
                raise Refused(403, "forbidden", "web pages of other origins may send no requests here")
            _, cookie = self.sessions.keys.pop(self.headers.get("X-Sluice-Token", ""), (None, None))
            found = [self.sessions.cookies.pop(each, None) for each in (cookie, self.cookie())]
            if not any(found):
                raise Refused(401, "unauthorized", "this address needs a session")
            return self.send(200, {}, headers=[("Set-Cookie", "sluice=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0")])
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        opened = self.sessions.open(bearer, json.loads(body or b"{}").get("code"))
        if not opened:
            raise Refused(401, "unauthorized", "the token or the code is wrong, or the code was used before")
        (name, role), cookie, key = opened
        self.send(200, {"name": name, "role": role, "token": key, "until": now(7 * 86400)},
                  headers=[("Set-Cookie", f"sluice={cookie}; HttpOnly; SameSite=Strict; Path=/")])

    def handle_request(self):
        url = urllib.parse.urlsplit(self.path)
        # As the daemon: a plus is a plus (RFC 3986), and no blank as in forms.
        query = dict(urllib.parse.parse_qsl(url.query.replace("+", "%2B")))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            if url.path == "/v1/session":
                self.session(body)
            elif url.path.startswith("/v1/"):
                self.who(self.command not in ("GET", "HEAD"))
                self.api(url.path, query, body)
            else:
                self.asset(url.path)
        except Refused as refused:
            self.send(refused.status, {"error": {"code": refused.code, "message": refused.message}},
                      headers=refused.headers)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_DELETE = handle_request

    def api(self, path, query, body):
        raise NotImplementedError


class Server(http.server.ThreadingHTTPServer):
    """A server whose connections can be cut, as when the daemon is killed."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, port, handler):
        self.open = set()
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", port), handler)

    def process_request(self, request, client_address):
        with self.lock:
            self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        with self.lock:
            self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        pass

    def start(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def cut(self):
        """Stops listening and closes every connection at once."""
        self.shutdown()
        self.server_close()
        with self.lock:
            requests = list(self.open)
        for request in requests:
            try:
                request.shutdown(2)
            except OSError:
                pass
