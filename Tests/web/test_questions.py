"""Questions that the daemon or a person keeps waiting: they open over what they were asked from, or not at all."""

import unittest

from playwright.sync_api import expect

from support import PageTest


class QuestionTest(PageTest):
    def question(self, name=None):
        return self.page.get_by_role("dialog", name=name)

    def hold_counts(self):
        """Keeps the numbers back that a question asks for; gives the list of the requests."""
        held = []
        self.page.route("**/v1/uploads?*limit=1", lambda route: held.append(route))
        return held

    def clear(self, held):
        """Asks for a list to be cleared, whose number is kept back."""
        number = len(held)
        self.page.get_by_role("button", name="Clear list…").click()
        self.wait(lambda: len(held) > number, "the page asks for the number")

    def let_go(self, *held):
        """Gives the answers, and the page the time to open what it will open."""
        for route in held:
            with self.page.expect_event("requestfinished", lambda request: request.url == route.request.url):
                route.continue_()
        self.page.evaluate("() => new Promise((done) => { setTimeout(done, 200); })")

    def test_a_question_whose_number_comes_late_opens_over_no_other_view(self):
        self.sign_in("history?list=failed")
        held = self.hold_counts()
        self.clear(held)
        self.go("usage")
        self.let_go(held[0])
        self.assertEqual(self.question().count(), 0)
        # Nor after a way back: the person has left it.
        self.go("history?list=failed")
        self.clear(held)
        self.go("usage")
        self.go("history?list=failed")
        self.let_go(held[1])
        self.assertEqual(self.question().count(), 0)

    def test_a_question_whose_number_comes_late_opens_once_and_over_no_other_question(self):
        page = self.sign_in("history?list=failed")
        held = self.hold_counts()
        self.clear(held)
        self.clear(held)
        self.let_go(*held)
        self.assertEqual(self.question().count(), 1)
        expect(self.question("Clear the list of failed uploads?")).to_be_visible()
        page.keyboard.press("Escape")
        expect(self.question()).to_have_count(0)
        held.clear()
        self.clear(held)
        page.get_by_role("button", name="Retry failed…").click()
        expect(self.question("Retry uploads")).to_be_visible()
        self.let_go(held[0])
        self.assertEqual(self.question().count(), 1)

    def test_a_question_that_waits_for_a_token_opens_over_no_other_view(self):
        page = self.sign_in()
        for view, name in (("queue", "Cancel…"), ("now", "Add files…")):
            with self.subTest(name=name):
                self.go(view)
                page.reload()
                if view == "queue":
                    page.locator(".row input").nth(3).check()
                page.get_by_role("button", name=name, exact=True).first.click()
                expect(self.question("Unlock")).to_be_visible()
                self.go("usage")
                self.question("Unlock").get_by_label("Token").fill("operator-token-0123")
                page.keyboard.press("Enter")
                expect(page.locator("#person")).to_contain_text("may change")
                self.let_go()
                self.assertEqual(self.question().count(), 0)


if __name__ == "__main__":
    unittest.main()
