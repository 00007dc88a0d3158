"""The page of a real daemon, named by the environment: see `run`. Without SLUICE_WEB_URL these tests are skipped."""

import os
import pathlib
import secrets
import signal
import subprocess
import unittest

from playwright.sync_api import expect

from support import VIEWS, Browser

URL = os.environ.get("SLUICE_WEB_URL")
TOKEN = os.environ.get("SLUICE_WEB_TOKEN", "")
VIEW_TOKEN = os.environ.get("SLUICE_WEB_VIEW_TOKEN")
FOLDER = os.environ.get("SLUICE_WEB_FOLDER")
STOP = os.environ.get("SLUICE_WEB_STOP")
START = os.environ.get("SLUICE_WEB_START")
PID = os.environ.get("SLUICE_WEB_PID")
# A file settles before it is an upload.
SETTLED = 90_000


@unittest.skipUnless(URL, "SLUICE_WEB_URL names no daemon")
class RealTest(unittest.TestCase):
    def setUp(self):
        self.errors = []
        self.context = Browser.get().new_context(viewport={"width": 1440, "height": 900})
        self.addCleanup(self.context.close)
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        self.page.on("console", lambda message: self.errors.append(message.text)
                     if "Content Security Policy" in message.text else None)

    def tearDown(self):
        self.assertEqual(self.errors, [])

    def sign_in(self, token=TOKEN):
        self.page.goto(URL)
        self.page.get_by_label("Token").fill(token)
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("heading", name="Now", exact=True)).to_be_visible()
        return self.page

    def go(self, view):
        self.page.evaluate("address => { location.hash = address; }", f"#/{view}")
        expect(self.page.locator(f".view-{view.split('?')[0]} h1")).to_be_visible()

    def pause_all(self):
        self.page.get_by_role("button", name="Pause…", exact=True).first.click()
        self.page.locator("dialog").get_by_role("button", name="Pause").click()
        expect(self.page.locator(".attention")).to_contain_text("Everything is paused")

    def resume_all(self):
        self.go("now")
        self.page.get_by_role("button", name="Resume everything").click()
        expect(self.page.locator(".headline")).not_to_contain_text("Paused")

    def create(self, name=None, size=100_000):
        name = name or f"web-test-{secrets.token_hex(4)}.mp4"
        file = pathlib.Path(FOLDER) / name
        file.write_bytes(secrets.token_bytes(size))
        self.addCleanup(file.unlink, missing_ok=True)
        return name

    def test_every_view_shows_the_answers_of_the_daemon(self):
        page = self.sign_in()
        for view in VIEWS:
            with self.subTest(view=view):
                self.go(view)
                for words in ("Reading…", "Planning…"):
                    expect(page.get_by_text(words, exact=True)).to_have_count(0)
                self.assertEqual(page.get_by_text("could not be read").count(), 0)

    def test_the_files_have_their_headers(self):
        answer = self.page.request.get(URL)
        self.assertIn("default-src 'none'", answer.headers["content-security-policy"])
        self.assertIn("trusted-types 'none'", answer.headers["content-security-policy"])
        self.assertEqual(answer.headers["x-content-type-options"], "nosniff")
        self.assertEqual(answer.headers["referrer-policy"], "no-referrer")
        self.assertEqual(answer.headers["cross-origin-opener-policy"], "same-origin")
        self.assertEqual(answer.headers["cross-origin-resource-policy"], "same-origin")

    def test_a_cookie_alone_changes_nothing(self):
        self.sign_in()
        answer = self.context.request.post(f"{URL.rstrip('/')}/v1/pause", data={"all": True})
        self.assertEqual(answer.status, 401)

    def test_a_check_shows_its_findings(self):
        page = self.sign_in()
        self.go("check")
        page.get_by_role("button", name="Run check").click()
        expect(page.locator(".findings .card").first).to_be_visible(timeout=60_000)

    @unittest.skipUnless(PID, "SLUICE_WEB_PID is not set")
    def test_a_frozen_daemon_is_shown_as_away_and_found_again(self):
        page = self.page
        with page.expect_response(lambda answer: "v1/events" in answer.url):
            self.sign_in()
        process = int(pathlib.Path(PID).read_text())
        os.kill(process, signal.SIGSTOP)
        try:
            expect(page.locator("#connection")).to_contain_text("No connection to the daemon since", timeout=13_000)
        finally:
            os.kill(process, signal.SIGCONT)
        expect(page.locator("#connection")).to_be_hidden(timeout=30_000)

    def test_pausing_and_resuming_everything_is_shown(self):
        self.sign_in()
        self.pause_all()
        self.resume_all()

    def add_paused(self):
        """A dropped file that waits, because everything is paused; its name."""
        page = self.sign_in()
        self.pause_all()
        self.addCleanup(self.resume_all)
        name = f"dropped-{secrets.token_hex(4)}.mp4"
        page.get_by_role("button", name="Add files…").click()
        page.locator("dialog input[type=file]").set_input_files(
            [{"name": name, "mimeType": "video/mp4", "buffer": secrets.token_bytes(50_000)}])
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("dialog")).to_have_count(0)
        self.go(f"queue?text={name}")
        expect(page.get_by_role("link", name=name)).to_be_visible()
        return name

    def open(self, name):
        self.page.get_by_role("link", name=name).click()
        return self.page.locator("dialog.drawer")

    def cancel(self, name):
        drawer = self.open(name)
        drawer.get_by_role("button", name="Cancel…").click()
        self.page.get_by_role("button", name="Cancel 1 upload").click()
        expect(drawer.locator(".drawer-state")).to_contain_text("Cancelled")
        self.page.keyboard.press("Escape")
        self.go(f"history?list=cancelled&text={name}")

    def test_a_dropped_file_is_paused_resumed_cancelled_and_removed(self):
        page = self.page
        name = self.add_paused()
        drawer = self.open(name)
        drawer.get_by_role("button", name="Pause").click()
        drawer.get_by_role("button", name="Resume").click()
        expect(drawer.get_by_role("button", name="Pause")).to_be_visible()
        page.keyboard.press("Escape")
        self.cancel(name)
        # A cancel moved the only copy away: the refusal says where, beside the button.
        page.get_by_role("button", name=f"Retry {name}").click()
        expect(page.locator(".row .result.bad")).to_contain_text("rescued")
        page.get_by_role("button", name=f"Remove {name}").click()
        page.get_by_role("button", name="Remove 1 upload").click()
        expect(page.get_by_text("No upload matches these filters.")).to_be_visible()

    def test_a_priority_is_set_and_shown(self):
        name = self.add_paused()
        drawer = self.open(name)
        drawer.get_by_role("button", name="Priority…").click()
        question = self.page.locator("dialog.question")
        question.get_by_label("Priority").fill("50")
        question.get_by_role("button", name="Set priority").click()
        expect(drawer.locator("dl div", has_text="Priority").filter(has_text="50")).to_be_visible()
        self.page.keyboard.press("Escape")
        self.cancel(name)

    @unittest.skipUnless(FOLDER, "SLUICE_WEB_FOLDER names no folder")
    def test_a_new_file_appears_by_itself_under_its_hostile_name(self):
        page = self.sign_in()
        # It runs long enough to be seen in the first view, too.
        name = self.create(f"<img src=x onerror=alert(1)> {secrets.token_hex(3)}.mp4", size=400_000)
        self.go("queue")
        link = page.get_by_role("link", name=name, exact=True)
        expect(link).to_be_visible(timeout=SETTLED)
        link.click()
        expect(page.locator("dialog.drawer").get_by_text(name).first).to_be_visible()
        self.expect_no_markup()
        page.keyboard.press("Escape")
        for view in (*VIEWS, f"queue?text={name[:12]}", "history?list=failed", "usage?by=folder"):
            self.go(view)
            expect(page.get_by_text("Reading…", exact=True)).to_have_count(0)
            self.expect_no_markup()
        self.go("check")
        page.get_by_role("button", name="Run check").click()
        expect(page.locator(".findings .card").first).to_be_visible(timeout=60_000)
        self.expect_no_markup()

    def expect_no_markup(self):
        self.assertEqual(self.page.locator("img[onerror], img[src=x], main script, dialog script").count(), 0)

    @unittest.skipUnless(STOP and START, "SLUICE_WEB_STOP and SLUICE_WEB_START are not set")
    def test_a_stopped_daemon_is_shown_and_the_page_comes_back_by_itself(self):
        page = self.sign_in()
        subprocess.run(STOP, shell=True, check=True)
        try:
            expect(page.locator("#connection")).to_contain_text("No connection to the daemon since", timeout=20_000)
        finally:
            subprocess.run(START, shell=True, check=True)
        expect(page.locator("#connection")).to_be_hidden(timeout=60_000)
        # The sign-in survives, for looking and for changes.
        self.pause_all()
        self.resume_all()
        expect(page.locator("dialog")).to_have_count(0)

    @unittest.skipUnless(VIEW_TOKEN, "SLUICE_WEB_VIEW_TOKEN is not set")
    def test_the_role_view_sees_everything_and_has_no_controls(self):
        page = self.sign_in(VIEW_TOKEN)
        for view in VIEWS:
            self.go(view)
            expect(page.locator("[data-command]")).to_have_count(0)


if __name__ == "__main__":
    unittest.main()
