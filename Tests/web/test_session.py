"""Signing in, roles and what a session may do."""

import unittest

from playwright.sync_api import expect

from support import PageTest


class SessionTest(PageTest):
    def test_a_code_signs_in_and_leaves_the_address_at_once(self):
        page = self.sign_in()
        self.assertNotIn("code", page.url)
        self.assertEqual(page.evaluate("history.length"), 2, "the code stays in no entry of the history")

    def test_an_address_that_names_no_view_says_so_and_leads_to_the_others(self):
        page = self.sign_in()
        heading = page.get_by_role("heading", name="No such view")
        for address in ("#/nonsense", "#/toString?upload=1", "#/__proto__", "#nowhere", "#/<img src=x onerror=alert(1)>"):
            with self.subTest(address=address):
                page.evaluate("address => { location.hash = address; }", address)
                expect(heading).to_be_visible()
                expect(page.locator("main code")).to_have_text(page.evaluate("location.hash"))
                expect(page).to_have_title("No such view · Sluice")
                expect(page.locator("#views [aria-current]")).to_have_count(0)
        expect(heading).to_be_focused()
        page.get_by_role("link", name="Show what happens now").click()
        expect(page.get_by_role("heading", name="Now", exact=True)).to_be_focused()
        page.goto(f"{self.daemon.url}#/nonsense")
        page.reload()
        expect(heading).to_be_visible()
        self.go("queue")
        for address in ("", "#", "#/"):
            page.evaluate("address => { location.hash = address; }", address)
            expect(page.get_by_role("heading", name="Now", exact=True)).to_be_visible()

    def test_a_used_code_is_refused_with_the_reason(self):
        code = self.daemon.sessions.code()
        self.daemon.sessions.open(None, code)
        self.page.goto(f"{self.daemon.url}#code={code}")
        expect(self.page.get_by_role("alert")).to_contain_text("no longer good")
        self.assertNotIn("code", self.page.url)

    def test_a_typed_token_signs_in(self):
        self.page.goto(self.daemon.url)
        self.page.get_by_label("Token").fill("operator-token-0123")
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("heading", name="Now", exact=True)).to_be_visible()

    def test_a_pasted_token_signs_in_whatever_blanks_are_around_it(self):
        for token in ("\ufeffoperator-token-0123", "\u3000operator-token-0123\u00a0"):
            with self.subTest(token=token):
                page = self.open_page(self.open_context())
                page.goto(self.daemon.url)
                page.get_by_label("Token").fill(token)
                page.keyboard.press("Enter")
                expect(page.get_by_role("heading", name="Now", exact=True)).to_be_visible()

    def test_a_session_that_cannot_be_asked_for_leaves_a_page_that_a_link_signed_in(self):
        page = self.page
        held = []
        page.route("**/v1/session", lambda route: held.append(route) if route.request.method == "GET"
                   else route.continue_())
        page.goto(self.daemon.url)
        self.wait(lambda: held, "the page asks for its session")
        page.evaluate("code => { location.hash = `#code=${code}`; }", self.daemon.sessions.code())
        heading = page.get_by_role("heading", name="Now", exact=True)
        expect(heading).to_be_visible()
        with page.expect_event("requestfailed"):
            held[0].abort()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        self.assertTrue(heading.is_visible())

    def test_a_link_that_is_refused_for_another_reason_is_not_called_used(self):
        self.page.route("**/v1/session", lambda route: route.fulfill(status=429, json={
            "error": {"code": "too_many", "message": "too many sign-ins"}}))
        self.page.goto(f"{self.daemon.url}#code=0123456789abcdef")
        expect(self.page.get_by_role("alert")).to_have_text("The link did not work: too many sign-ins")

    def test_leaving_after_the_session_is_over_closes_the_other_questions(self):
        page = self.sign_in()
        page.get_by_role("button", name="Pause…", exact=True).first.click()
        self.daemon.sessions.forget_all()
        page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        again = page.get_by_role("dialog", name="Sign in again")
        expect(again).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
        expect(page.get_by_label("Token")).to_be_focused()
        page.keyboard.type("operator-token-0123")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Now", exact=True)).to_be_visible()

    def test_a_wrong_token_is_refused_beside_the_field(self):
        self.page.goto(self.daemon.url)
        self.page.get_by_label("Token").fill("wrong")
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("alert")).to_contain_text("wrong")
        expect(self.page.get_by_label("Token")).to_have_value("")

    def test_the_token_is_in_no_storage_cookie_or_address(self):
        page = self.sign_in()
        held = page.evaluate("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, location.href])")
        for key in [*self.daemon.sessions.keys, *self.daemon.sessions.cookies]:
            self.assertNotIn(key, held)
        self.assertNotIn("sluice=", page.evaluate("document.cookie"))

    def test_after_a_reload_the_page_may_look_and_unlocks_for_a_change(self):
        page = self.sign_in("queue")
        page.reload()
        expect(page.get_by_role("heading", name="Queue", exact=True)).to_be_visible()
        page.get_by_role("button", name="Pause IMG_2041.jpg").first.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("Unlock")
        dialog.get_by_label("Token").fill("operator-token-0123")
        dialog.get_by_role("button", name="Unlock").click()
        self.assertEqual(len(self.last_command("/v1/pause")["ids"]), 1)

    def test_a_wrong_token_is_not_said_any_more_after_the_right_one(self):
        page = self.sign_in()
        page.reload()
        page.get_by_role("button", name="Unlock").click()
        dialog = page.get_by_role("dialog")
        for token in ("wrong", "operator-token-0123"):
            dialog.get_by_label("Token").fill(token)
            dialog.get_by_role("button", name="Unlock").click()
            if token == "wrong":
                expect(dialog.get_by_role("alert")).to_contain_text("wrong")
        expect(dialog).to_have_count(0)
        self.assertTrue(page.locator("#notice").is_hidden(), "the token is right")

    def test_the_role_view_has_no_controls_and_is_told_why(self):
        page = self.sign_in(role="view")
        expect(page.get_by_text("guest, may look").or_(page.get_by_text("ops, may look"))).to_be_visible()
        for view in ("now", "queue", "history", "check"):
            self.go(view)
            expect(page.locator("[data-command]")).to_have_count(0)
            expect(page.locator(".rows input")).to_have_count(0)
        self.go("queue")
        page.locator(".row a").first.click()
        expect(page.get_by_role("dialog")).to_contain_text("role view: you may look, and change nothing")

    def test_a_session_that_ends_asks_again_and_keeps_the_view(self):
        page = self.sign_in("queue?folder=garden")
        row = page.locator(".row a").first.inner_text()
        self.daemon.sessions.forget_all()
        page.get_by_role("button", name="Pause").nth(1).evaluate("node => node.click()")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("Sign in again")
        expect(page.locator(".row a").first).to_have_text(row)
        dialog.get_by_label("Token").fill("operator-token-0123")
        dialog.get_by_role("button", name="Sign in again").click()
        expect(dialog).to_have_count(0)
        self.assertIn("folder=garden", page.url)
        self.wait(lambda: self.daemon.subscribers, "the stream is open again")

    def test_signing_in_again_with_the_role_view_takes_the_controls_away(self):
        page = self.sign_in("queue")
        self.daemon.sessions.forget_all()
        page.get_by_role("button", name="Pause").nth(1).evaluate("node => node.click()")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Token").fill("viewer-token-0123")
        dialog.get_by_role("button", name="Sign in again").click()
        expect(page.get_by_text("guest, may look")).to_be_visible()
        expect(page.locator("[data-command]")).to_have_count(0)

    def test_signing_out_forgets_the_session(self):
        page = self.sign_in()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        self.assertEqual(self.daemon.sessions.cookies, {})
        self.wait(lambda: not self.daemon.subscribers, "the stream is closed")

    def test_a_page_that_was_loaded_again_signs_out_without_unlocking(self):
        page = self.sign_in()
        page.reload()
        expect(page.get_by_role("button", name="Unlock")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        self.assertEqual(self.daemon.sessions.cookies, {})
        page.reload()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()

    def test_signing_out_of_a_session_that_is_over_leaves_the_page_signed_out(self):
        page = self.sign_in()
        page.route("**/v1/session", lambda route: route.fulfill(status=401, json={
            "error": {"code": "unauthorized", "message": "this address needs a session"}}))
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()

    def test_a_new_link_in_an_open_tab_unlocks_it(self):
        page = self.sign_in()
        page.reload()
        expect(page.get_by_role("button", name="Unlock")).to_be_visible()
        page.evaluate("code => { location.hash = `#code=${code}`; }", self.daemon.sessions.code())
        expect(page.get_by_role("button", name="Unlock")).to_have_count(0)
        self.assertNotIn("code", page.url)

    def test_a_new_link_answers_the_question_of_a_session_that_is_over(self):
        page = self.sign_in("queue?folder=garden")
        self.daemon.sessions.forget_all()
        page.get_by_role("button", name="Pause").nth(1).evaluate("node => node.click()")
        expect(page.get_by_role("dialog")).to_contain_text("Sign in again")
        page.evaluate("code => { location.hash = `#code=${code}`; }", self.daemon.sessions.code())
        expect(page.get_by_role("dialog")).to_have_count(0)
        self.wait(lambda: self.daemon.subscribers, "the stream is open again")
        expect(page.get_by_label("Folder")).to_have_value("garden")
        self.assertEqual(page.get_by_role("heading", name="Sign in").count(), 0)

    def test_a_new_link_answers_the_question_for_a_token_and_leaves_others_open(self):
        page = self.sign_in()
        page.reload()
        page.get_by_role("button", name="Limit rate…").click()
        page.get_by_label("MB a second").fill("2")
        page.get_by_role("button", name="Set limit").click()
        unlock = page.get_by_role("dialog", name="Unlock")
        expect(unlock).to_be_visible()
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(node => node.id)")
        self.assertEqual(len(set(ids)), len(ids), ids)
        page.evaluate("code => { location.hash = `#code=${code}`; }", self.daemon.sessions.code())
        expect(unlock).to_have_count(0)
        self.assertEqual(self.last_command("/v1/limit"), {"rate": 2_000_000, "duration": 3600})

    def test_a_new_link_leaves_a_question_open_that_needs_no_token(self):
        page = self.sign_in()
        page.get_by_role("button", name="Limit rate…").click()
        page.get_by_label("MB a second").fill("2")
        with page.expect_response("**/v1/session"):
            page.evaluate("code => { location.hash = `#code=${code}`; }", self.daemon.sessions.code())
        page.get_by_role("button", name="Set limit").click()
        self.assertEqual(self.last_command("/v1/limit")["rate"], 2_000_000)

    def test_a_link_that_is_no_longer_good_is_said_on_the_page_and_in_a_question(self):
        page = self.sign_in()
        page.evaluate("location.hash = '#code=0123456789abcdef'")
        expect(page.locator("#notice")).to_contain_text("The link is no longer good")
        self.check_axe()
        page.locator("#notice").get_by_role("button", name="Close").press("Enter")
        expect(page.locator("#notice")).to_be_hidden()
        page.get_by_role("button", name="Limit rate…").click()
        page.evaluate("location.hash = '#code=0123456789abcdef'")
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("The link is no longer good")

    def test_a_failed_sign_out_is_said_on_the_page(self):
        page = self.sign_in()
        page.route("**/v1/session", lambda route: route.fulfill(status=503, json={
            "error": {"code": "unavailable", "message": "the state cannot be written"}}))
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("#notice")).to_contain_text("You are still signed in: the state cannot be written")
        expect(page.get_by_role("heading", name="Now", exact=True)).to_be_visible()

    def test_unlocking_with_the_role_view_takes_the_controls_away(self):
        page = self.sign_in("queue")
        page.reload()
        page.get_by_role("button", name="Pause IMG_2041.jpg").first.click()
        page.get_by_role("dialog").get_by_label("Token").fill("viewer-token-0123")
        page.get_by_role("dialog").get_by_role("button", name="Unlock").click()
        expect(page.get_by_text("guest, may look")).to_be_visible()
        expect(page.locator("[data-command]")).to_have_count(0)
        self.assertEqual(self.daemon.commands, [])

    def test_a_token_that_cannot_be_sent_is_refused_beside_the_field(self):
        self.page.goto(self.daemon.url)
        for token in ("token\u20ac", "t\u00fcken"):
            self.page.get_by_label("Token").fill(token)
            self.page.keyboard.press("Enter")
            expect(self.page.get_by_role("alert")).to_contain_text("of the token is not ASCII and cannot be sent")
        self.page.get_by_label("Token").fill("operator-token-0123")
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("heading", name="Now", exact=True)).to_be_visible()

    def test_the_view_is_marked_in_the_navigation_also_after_the_theme_changes(self):
        page = self.sign_in("plan")
        current = page.locator("#views [aria-current=page]")
        expect(current).to_have_text("Plan")
        page.get_by_role("button", name="Theme: auto").click()
        expect(current).to_have_text("Plan")
        self.go("usage")
        expect(current).to_have_text("Usage")

    def test_the_back_button_leads_through_views_and_closes_the_drawer(self):
        page = self.sign_in("queue")
        page.get_by_label("Folder").select_option("garden")
        page.wait_for_url("**/#/queue?folder=garden")
        page.locator(".row a").first.click()
        expect(page.locator("dialog.drawer")).to_be_visible()
        page.go_back()
        expect(page.locator("dialog.drawer")).to_have_count(0)
        expect(page.get_by_label("Folder")).to_have_value("garden")
        page.go_back()
        expect(page.get_by_role("heading", name="Now", exact=True)).to_be_visible()
        expect(page.locator("#views [aria-current=page]")).to_have_text("Now")
        page.go_forward()
        expect(page.get_by_label("Folder")).to_have_value("garden")

    def test_the_back_button_closes_a_question_but_none_for_a_token(self):
        page = self.sign_in()
        now = page.get_by_role("heading", name="Now", exact=True)
        question = page.locator("dialog.question")
        for is_over in (False, True):
            self.go("queue?folder=garden")
            page.get_by_role("button", name="Pause…", exact=True).click()
            expect(question).to_have_count(1)
            if is_over:
                self.daemon.sessions.forget_all()
                question.get_by_role("button", name="Pause").click()
                expect(question).to_have_count(2)
            page.go_back()
            expect(now).to_be_attached()
            expect(question).to_have_count(1 if is_over else 0)
        page.get_by_label("Token").fill("operator-token-0123")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog", name="Sign in again")).to_have_count(0)

    def test_a_daemon_that_does_not_answer_at_the_start_is_shown_and_tried_again(self):
        self.page.goto(self.daemon.url)
        expect(self.page.get_by_label("Token")).to_be_visible()
        self.page.route("**/v1/session", lambda route: route.abort())
        self.page.reload()
        expect(self.page.get_by_role("heading", name="The daemon does not answer")).to_be_visible()
        self.page.unroute("**/v1/session")
        self.page.get_by_role("button", name="Try now").click()
        expect(self.page.get_by_label("Token")).to_be_visible()


if __name__ == "__main__":
    unittest.main()
