"""Names of files, texts of servers and tags of recordings are shown as text and never run."""

import unittest

from playwright.sync_api import expect

from fake_views import HOSTILE
from page_server import HEADERS
from support import VIEWS, PageTest

SHOWN = HOSTILE.replace("\u202e", "\\u202e")


class HostileTest(PageTest):
    def expect_no_markup(self):
        made = self.page.evaluate("""() => [...document.querySelectorAll('main script, main b, main i, dialog b, dialog i,'
          + 'img[onerror], [onclick], [style*="expression"]')].map(node => node.outerHTML)""")
        self.assertEqual(made, [])

    def test_hostile_names_are_shown_as_text_in_every_view(self):
        page = self.sign_in()
        for view in (*VIEWS, "history?list=failed", "usage?by=folder"):
            self.go(view)
            if view == "check":
                page.get_by_role("button", name="Run check").click()
                expect(page.get_by_text("<b>yard</b>", exact=True)).to_be_visible()
            self.expect_no_markup()
        self.go("queue")
        expect(page.get_by_text(SHOWN, exact=True).first).to_be_visible()

    def test_hostile_texts_are_shown_as_text_in_the_drawer(self):
        page = self.sign_in("history?list=failed")
        page.locator(".row a").first.click()
        drawer = page.locator("dialog.drawer")
        expect(drawer).to_contain_text("ACME <i>Dome</i> 4K")
        expect(drawer).to_contain_text("<b>unsupported codec</b>")
        self.expect_no_markup()

    def test_characters_that_reorder_text_are_shown_as_codes_and_isolated(self):
        page = self.sign_in("queue")
        self.assertNotRegex(page.evaluate("document.body.innerText"), "[\u202a-\u202e\u2066-\u2069]")
        outside = page.evaluate("""() => [...document.querySelectorAll('.row-name, .route')]
          .filter(node => !node.querySelector('bdi')
            || getComputedStyle(node.querySelector('bdi')).unicodeBidi !== 'isolate')
          .map(node => node.outerHTML)""")
        self.assertEqual(outside, [])

    def test_right_to_left_names_do_not_move_their_neighbours(self):
        page = self.sign_in("queue")
        self.daemon.receive({"name": "\u05e9\u05dc\u05d5\u05dd 123.mp4"}, 10)
        row = page.locator(".row", has_text="\u05e9\u05dc\u05d5\u05dd")
        expect(row).to_be_visible()
        self.assertRegex(row.locator(".row-from").inner_text(), r"^by hand to \w+ · 10\sB")

    def test_a_hostile_file_name_is_sent_whole(self):
        page = self.sign_in()
        page.get_by_role("button", name="Add files…").click()
        name = "a&to=evil#\"<b>?.mp4"
        page.locator("dialog input[type=file]").set_input_files([{"name": name, "mimeType": "video/mp4",
          "buffer": b"x"}])
        expect(page.locator("dialog li")).to_contain_text(name)
        page.get_by_role("button", name="Add", exact=True).click()
        self.assertEqual(self.last_command("/v1/bytes")["name"], name)

    def test_every_answer_has_the_policy_and_the_page_obeys_it(self):
        seen = {}
        self.page.on("response", lambda response: seen.update({response.url: response.all_headers()})
                     if response.url.startswith(self.daemon.url) and "/v1/" not in response.url else None)
        self.sign_in("queue")
        self.assertGreater(len(seen), 10)
        for url, headers in seen.items():
            for name, value in HEADERS.items():
                self.assertEqual(headers.get(name.lower()), value, url)

    def test_the_page_asks_no_other_origin(self):
        others = []
        self.page.on("request", lambda request: others.append(request.url)
                     if not request.url.startswith((self.daemon.url, "data:")) else None)
        self.sign_in()
        for view in VIEWS:
            self.go(view)
        self.assertEqual(others, [])

    def test_changes_go_with_the_token_and_reading_without_it(self):
        sent = []
        self.page.on("request", lambda request: sent.append(
            (request.method, request.url, request.headers.get("x-sluice-token"), request.headers.get("authorization"))))
        page = self.sign_in("queue")
        page.get_by_role("button", name="Pause").nth(3).click()
        self.last_command("/v1/pause")
        for method, url, token, authorization in sent:
            self.assertEqual(token is not None, method == "POST" and not url.endswith("/v1/session"), url)
            self.assertIsNone(authorization, url)
            self.assertNotRegex(url, "token|code=")


if __name__ == "__main__":
    unittest.main()
