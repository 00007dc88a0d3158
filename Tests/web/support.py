"""What the tests share: a browser, a fake daemon, signing in, and waiting for a condition."""

import os
import time
import unittest

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from fake_daemon import FakeDaemon
from page_server import ASSETS

CHROMIUM = os.environ.get("SLUICE_WEB_CHROMIUM", "/usr/bin/chromium")
VIEWS = ("now", "queue", "plan", "usage", "history", "check")
PATIENCE = 10_000

expect.set_options(timeout=PATIENCE)


def hide(page, is_hidden):
    """Lets a page know that its tab is hidden, or is seen again."""
    page.evaluate("""isHidden => {
      Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }""", is_hidden)


class Browser:
    """One browser for all tests: the machine may be small."""

    _playwright = None
    _shared = None

    @classmethod
    def playwright(cls):
        cls._playwright = cls._playwright or sync_playwright().start()
        return cls._playwright

    @classmethod
    def get(cls):
        if not cls._shared:
            browser = cls.playwright().chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--enable-precise-memory-info"])
            cls._shared = browser
        return cls._shared


class PageTest(unittest.TestCase):
    """A page of a fake daemon, signed in with the role `operate`."""

    uploads = 60
    updates = 10.0
    empty = False
    token = "operator-token-0123"
    context_options = {}

    def setUp(self):
        self.daemon = FakeDaemon(self.uploads, self.updates, self.empty)
        self.addCleanup(self.daemon.close)
        self.problems = []
        self.context = self.open_context(**self.context_options)
        self.page = self.open_page(self.context)

    def tearDown(self):
        self.assertEqual(self.problems, [], "the page broke its policy or threw an error")

    def open_context(self, **options):
        settings = {"viewport": {"width": 1440, "height": 900}, "timezone_id": "Europe/Berlin", **options}
        context = Browser.get().new_context(**settings)
        context.set_default_timeout(PATIENCE)
        self.addCleanup(context.close)
        return context

    def open_page(self, context):
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: self.problems.append(message.text)
                if "Content Security Policy" in message.text or "Trusted" in message.text else None)
        page.on("dialog", lambda dialog: self.problems.append(f"dialog: {dialog.message}"))
        return page

    def change_asset(self, page, name, old, new):
        """Loads a file of the page with another text in it, such as an interval that never passes."""
        text = (ASSETS / name).read_text()
        self.assertEqual(text.count(old), 1, f"{name}: {old}")
        page.route(f"**/assets/{name}", lambda route: route.fulfill(
            body=text.replace(old, new), content_type="text/javascript; charset=utf-8"))

    def sign_in(self, view="now", page=None, role="operate"):
        page = page or self.page
        page.goto(f"{self.daemon.url}#code={self.daemon.sessions.code(role=role)}")
        expect(page.get_by_role("heading", name="Now", exact=True)).to_be_visible()
        if view != "now":
            self.go(view, page)
        return page

    def go(self, view, page=None):
        page = page or self.page
        page.evaluate("address => { location.hash = address; }", f"#/{view}")
        name = view.split("?")[0]
        expect(page.locator(f".view-{name} h1")).to_be_visible()
        for words in ("Reading…", "Planning…"):
            expect(page.get_by_text(words, exact=True)).to_have_count(0)
        return page

    def wait(self, condition, what):
        """Waits for a condition outside of the page."""
        end = time.monotonic() + PATIENCE / 1000
        while not condition():
            if time.monotonic() > end:
                self.fail(f"not within {PATIENCE // 1000} s: {what}")
            self.page.wait_for_timeout(20)

    def last_command(self, path):
        self.wait(lambda: any(command[0] == path for command in self.daemon.commands), f"the command {path}")
        return [body for name, body in self.daemon.commands if name == path][-1]

    def check_axe(self, page=None):
        results = Axe().run(page or self.page)
        found = [f"{each['id']}: {node['html'][:120]} {node['any'][:1]}"
                 for each in results.response["violations"] for node in each["nodes"]]
        self.assertEqual(found, [])
