"""Pages of others against a real daemon: another port of this machine, a name that leads here, a frame, a role that looks."""

import functools
import http.server
import json
import os
import pathlib
import re
import threading
import unittest
import urllib.parse
import urllib.request

from playwright.sync_api import expect

from support import CHROMIUM, Browser
from test_real import TOKEN, URL, VIEW_TOKEN

LOG = os.environ.get("SLUICE_WEB_LOG")
UPLOAD = "01JD3K8QWEDJ3T069W6KMA1001"
# Every route that changes anything, with a body that it takes.
CHANGES = [
    *(("POST", f"v1/{verb}", {"all": True}) for verb in ("pause", "resume", "cancel", "retry")),
    ("POST", "v1/priority", {"all": True, "priority": 5}),
    ("POST", "v1/remove", {"ids": [UPLOAD]}),
    ("POST", "v1/flush", {}),
    ("POST", "v1/allow", {"folder": "watched", "kinds": ["quota"], "duration": 600}),
    ("POST", "v1/limit", {"rate": 0, "duration": 600}),
    ("POST", "v1/usage", {"name": "policy", "bytes": 0}),
    *(("POST", f"v1/{verb}", {}) for verb in ("reload", "check", "rescan", "remote/nas", "orphans/nas", "trace/nas",
                                              "hooks/web/test", "folders/watched/accept", "web-link")),
    ("POST", "v1/uploads", {"path": "/etc/hostname"}),
    ("POST", "v1/bytes?name=planted.mp4", "bytes"),
    *(("POST", f"v1/uploads/{UPLOAD}/{verb}", {}) for verb in ("pause", "resume", "cancel", "retry", "remove")),
    ("POST", f"v1/uploads/{UPLOAD}/priority", {"priority": 5}),
    ("DELETE", f"v1/uploads/{UPLOAD}", None),
]
# Signing in or out changes no upload, but must not be possible for others either.
SESSION = [("POST", "v1/session", {"code": "0123456789abcdef0123456789abcdef"}), ("DELETE", "v1/session", None)]

# Paths of the description of the API, with the references that are used here.
DESCRIPTION = pathlib.Path(__file__).resolve().parents[2] / "docs/api/openapi.yaml"
REFERENCES = {"reference": UPLOAD, "destination": "nas"}
NAMES = {"hooks": "web", "folders": "watched"}


def described():
    """The requests of the description that may change anything: (method, path)."""
    path, found = None, set()
    for line in DESCRIPTION.read_text().splitlines():
        if begin := re.fullmatch(r"  /(\S+):", line):
            path = re.sub(r"(\w+)/\{name\}", lambda part: f"{part[1]}/{NAMES.get(part[1], 'nas')}", begin[1])
            path = re.sub(r"\{(\w+)\}", lambda name: REFERENCES[name[1]], path)
        elif method := re.fullmatch(r"    (post|put|patch|delete):", line):
            found.add((method[1].upper(), path))
    return found


class ListOfChangesTest(unittest.TestCase):
    def test_every_route_of_the_description_that_may_change_anything_is_tried(self):
        tried = {(method, path.partition("?")[0]) for method, path, _ in [*CHANGES, *SESSION]}
        self.assertGreater(len(described()), 25)
        self.assertEqual(described() - tried, set())


FETCH = """async ({ url, method, body, mode, headers }) => {
  try {
    const answer = await fetch(url, { method, mode, headers, credentials: "include",
      body: body === null ? undefined : typeof body === "string" ? body : JSON.stringify(body) });
    return [answer.type, answer.status, await answer.text()];
  } catch (error) {
    return ["error", 0, ""];
  }
}"""


class Silent(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title><p>evil")

    def log_message(self, *_):
        pass


class Seen:
    """The requests of a page to the daemon: their statuses, and how many had a cookie."""

    def __init__(self):
        self.addresses, self.with_cookie, self.answers = {}, set(), {}

    def begin(self, request):
        self.addresses[request["requestId"]] = request["request"]["url"]

    def send(self, request):
        if any(not each["blockedReasons"] for each in request["associatedCookies"]):
            self.with_cookie.add(request["requestId"])

    def receive(self, answer):
        self.answers[answer["requestId"]] = answer["statusCode"]

    def _is_to_daemon(self, identifier):
        return self.addresses.get(identifier, URL).startswith(URL)

    @property
    def statuses(self):
        """By address; all requests without one count as well."""
        return [(self.addresses.get(identifier), status) for identifier, status in self.answers.items()
                if self._is_to_daemon(identifier)]

    @property
    def cookies(self):
        return sum(1 for identifier in self.with_cookie if self._is_to_daemon(identifier))


@unittest.skipUnless(URL, "SLUICE_WEB_URL names no daemon")
class AttackTest(unittest.TestCase):
    def setUp(self):
        self.context = Browser.get().new_context()
        self.addCleanup(self.context.close)
        self.dialogs = []
        self.page = self.open_page()
        evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent)
        threading.Thread(target=functools.partial(evil.serve_forever, poll_interval=0.05), daemon=True).start()
        self.addCleanup(evil.server_close)
        self.addCleanup(evil.shutdown)
        self.evil = f"http://127.0.0.1:{evil.server_address[1]}/"

    def open_page(self):
        page = self.context.new_page()
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        return page

    def sign_in(self, token=TOKEN):
        self.page.goto(URL)
        self.page.get_by_label("Token").fill(token)
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("heading", name="Now", exact=True)).to_be_visible()

    def ask(self, path):
        request = urllib.request.Request(URL + path, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def state(self):
        """Everything that one of the changes would change."""
        status = self.ask("v1/status")
        uploads = self.ask("v1/uploads?limit=1000")["uploads"]
        return {"counts": status["counts"], "paused": status["paused"], "exceptions": status.get("exceptions"),
                "limit": status.get("limit"), "warnings": status["warnings"],
                "uploads": [(each["id"], each["list"], each["priority"]) for each in uploads]}

    def commands(self):
        """The lines of the log that name a command of a person, without signing in."""
        if not LOG:
            self.skipTest("SLUICE_WEB_LOG names no log")
        with open(LOG, encoding="utf-8") as log:
            return [line for line in log if "a person gave a command" in line and 'verb="sign in"' not in line]

    def visit_evil(self):
        """A page of another port: the same site, so that the browser sends the cookie there and from there."""
        self.sign_in()
        # In a tab of its own: late answers to the one that signed in are not among those that are seen.
        self.page.close()
        self.page = self.open_page()
        # What the network sees: scripts see nothing of an answer that the browser withholds.
        seen = Seen()
        network = self.context.new_cdp_session(self.page)
        network.on("Network.requestWillBeSent", seen.begin)
        network.on("Network.requestWillBeSentExtraInfo", seen.send)
        network.on("Network.responseReceivedExtraInfo", seen.receive)
        network.send("Network.enable")
        self.page.goto(self.evil)
        return seen

    def test_a_frame_of_another_port_stays_empty(self):
        self.visit_evil()
        for path in ("", "v1/status", "assets/main.js"):
            self.page.evaluate("""url => new Promise(resolve => {
              document.body.replaceChildren();
              const frame = document.createElement("iframe");
              frame.addEventListener("load", () => resolve());
              frame.src = url;
              document.body.append(frame);
            })""", URL + path)
            frame = self.page.frames[-1]
            self.assertNotEqual(frame, self.page.main_frame)
            self.assertNotIn("Sluice", frame.content(), path)
            self.assertNotIn("counts", frame.content(), path)
            self.assertEqual(frame.locator("main").count(), 0)
        self.assertTrue(self.page.frames[-1].url.startswith("chrome-error:") or not self.page.frames[-1].url)

    def test_no_request_of_another_port_changes_anything(self):
        before, said = self.state(), self.commands()
        seen = self.visit_evil()
        for method, path, body in [*CHANGES, *SESSION]:
            for mode, headers in (("cors", {"Content-Type": "application/json"}), ("cors", {}), ("no-cors", {}),
                                  ("cors", {"X-Sluice-Token": "guessed"}), ("cors", {"Authorization": f"Bearer {TOKEN}x"})):
                if mode == "no-cors" and method == "DELETE":
                    continue
                kind, status, text = self.page.evaluate(FETCH, {
                    "url": URL + path, "method": method, "body": body, "mode": mode, "headers": headers})
                self.assertIn(kind, ("error", "opaque"), f"{method} {path}")
                self.assertEqual((status, text), (0, ""), f"{method} {path}")
        self.assertGreater(len(seen.statuses), len(CHANGES))
        self.assertEqual([each for each in seen.statuses if each[1] != 403], [])
        # The browser did send the cookie: what holds is the daemon's look at the origin.
        self.assertGreater(seen.cookies, len(CHANGES))
        self.assertEqual(self.state(), before)
        self.assertEqual(self.commands(), said)
        # And the sign-in is as it was.
        self.page.goto(URL)
        expect(self.page.get_by_role("heading", name="Now", exact=True)).to_be_visible()

    def test_no_form_of_another_port_changes_anything(self):
        before, said = self.state(), self.commands()
        self.visit_evil()
        for method, path, body in [*CHANGES, *SESSION]:
            if method != "POST":
                continue
            for encoding in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
                with self.page.expect_response(lambda answer: answer.url.startswith(URL)) as answer:
                    # With text/plain the name and the value make up the JSON.
                    self.page.evaluate("""({ url, encoding, body }) => {
                      const form = document.createElement("form");
                      Object.assign(form, { method: "POST", action: url, enctype: encoding, target: "there" });
                      const field = document.createElement("input");
                      field.name = body.slice(0, -1) + ', "x": "';
                      field.value = '"}';
                      form.append(field);
                      const frame = document.createElement("iframe");
                      frame.name = "there";
                      document.body.replaceChildren(form, frame);
                      form.submit();
                    }""", {"url": URL + path, "encoding": encoding, "body": json.dumps(body)})
                self.assertEqual(answer.value.status, 403, f"{path} {encoding}")
        self.assertEqual(self.state(), before)
        self.assertEqual(self.commands(), said)

    def test_nothing_of_the_api_can_be_read_from_another_port(self):
        seen = self.visit_evil()
        for path in ("v1/status", "v1/uploads", "v1/events", "v1/session", "v1/usage", "metrics"):
            self.expect_unreadable(path)
        outcome = self.page.evaluate("""url => new Promise(resolve => {
          const source = new EventSource(url, { withCredentials: true });
          source.addEventListener("open", () => resolve("open"));
          source.addEventListener("error", () => { source.close(); resolve("refused"); });
        })""", URL + "v1/events")
        self.assertEqual(outcome, "refused")
        self.assertGreater(len(seen.statuses), 20)
        self.assertEqual([each for each in seen.statuses if each[1] != 403], [])
        self.assertGreater(seen.cookies, 20)
        # The page's files hold no secret, and are not for others all the same.
        self.expect_unreadable("assets/main.js")

    def expect_unreadable(self, path):
        for mode in ("cors", "no-cors"):
            kind, status, text = self.page.evaluate(FETCH, {
                "url": URL + path, "method": "GET", "body": None, "mode": mode, "headers": {}})
            self.assertIn(kind, ("error", "opaque"), path)
            self.assertEqual((status, text), (0, ""), path)
        for tag in ("script", "img", "link", "video"):
            outcome = self.page.evaluate("""({ url, tag }) => new Promise(resolve => {
              const node = document.createElement(tag);
              node.addEventListener("load", () => resolve("loaded"));
              node.addEventListener("error", () => resolve("refused"));
              if (tag === "link") Object.assign(node, { rel: "stylesheet", href: url });
              else node.src = url;
              document.body.append(node);
            })""", {"url": URL + path, "tag": tag})
            self.assertEqual(outcome, "refused", f"{tag} {path}")

    def test_a_window_that_another_port_opens_gives_it_no_handle(self):
        self.visit_evil()
        with self.context.expect_page() as opened:
            self.page.evaluate("url => { window.other = window.open(url); }", URL)
        expect(opened.value.get_by_role("heading", name="Now", exact=True)).to_be_visible()
        # Cross-Origin-Opener-Policy parts them.
        self.assertTrue(self.page.evaluate("window.other.closed"))
        self.assertTrue(opened.value.evaluate("window.opener === null"))

    def test_a_name_of_others_that_leads_here_is_refused_with_the_reason(self):
        port = urllib.parse.urlsplit(URL).port
        browser = Browser.playwright().chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--host-resolver-rules=MAP evil.test 127.0.0.1"])
        self.addCleanup(browser.close)
        page = browser.new_page()
        for path in ("", "assets/main.js", "v1/status", "v1/events"):
            answer = page.goto(f"http://evil.test:{port}/{path}")
            self.assertEqual(answer.status, 421, path)
            self.assertIn("`evil.test` is not a name of this daemon", answer.text())
            self.assertIn("control.hosts", answer.text())
        # From there the page is of the same origin as the API, with any header that it likes.
        for method, path, body in [("GET", "v1/status", None), ("GET", "v1/uploads", None), *CHANGES, *SESSION]:
            for headers in ({}, {"Authorization": f"Bearer {TOKEN}"}):
                kind, status, text = page.evaluate(FETCH, {
                    "url": f"/{path}", "method": method, "body": body, "mode": "same-origin", "headers": headers})
                self.assertEqual((kind, status), ("basic", 421), path)
                self.assertNotIn("counts", text)

    @unittest.skipUnless(VIEW_TOKEN, "SLUICE_WEB_VIEW_TOKEN is not set")
    def test_the_role_view_tries_each_change_from_the_page_itself(self):
        before, said = self.state(), self.commands()
        self.sign_in(VIEW_TOKEN)
        kind, status, text = self.page.evaluate(FETCH, {
            "url": "v1/session", "method": "POST", "body": {}, "mode": "same-origin",
            "headers": {"Authorization": f"Bearer {VIEW_TOKEN}"}})
        self.assertEqual((kind, status), ("basic", 200))
        token = json.loads(text)["token"]
        for method, path, body in CHANGES:
            for headers in ({"X-Sluice-Token": token}, {"Authorization": f"Bearer {VIEW_TOKEN}"}):
                kind, status, text = self.page.evaluate(FETCH, {
                    "url": path, "method": method, "body": body, "mode": "same-origin", "headers": headers})
                self.assertEqual((kind, status), ("basic", 403), f"{method} {path}: {text}")
                self.assertIn("role: view", text)
        self.assertEqual(self.state(), before)
        self.assertEqual(self.commands(), said)


if __name__ == "__main__":
    unittest.main()
