"""Live data: events, a lost daemon, a hidden tab."""

import unittest

from playwright.sync_api import expect

import fake_views
from support import PageTest, hide


class LiveTest(PageTest):
    def newest(self):
        return self.daemon.upload(fake_views.identifier(self.daemon.total - 1))

    def test_progress_moves_without_a_reload(self):
        page = self.sign_in()
        bar = page.locator(".transfer progress").first
        expect(bar).to_be_visible()
        before = float(bar.get_attribute("value"))
        page.wait_for_function("before => Number(document.querySelector('.transfer progress').value) !== before",
          arg=before)
        expect(page.locator(".transfer .figure").first).to_contain_text("MB/s")

    def test_a_new_upload_appears_in_the_queue(self):
        page = self.sign_in("queue")
        expect(page.locator(".heading [role=status]")).to_have_text("60 uploads")
        self.daemon.receive({"name": "brand-new.mp4"}, 10)
        expect(page.get_by_role("link", name="brand-new.mp4")).to_be_visible()

    def test_rows_in_use_do_not_move_and_the_page_offers_the_new_ones(self):
        page = self.sign_in("queue")
        page.locator(".row a").nth(4).focus()
        self.daemon.receive({"name": "brand-new.mp4"}, 10)
        expect(page.get_by_text("Uploads were added or have ended.")).to_be_visible()
        expect(page.get_by_role("link", name="brand-new.mp4")).to_have_count(0)
        page.get_by_role("button", name="Show them").click()
        expect(page.get_by_role("link", name="brand-new.mp4")).to_be_visible()

    def test_a_state_that_changes_elsewhere_is_shown_in_its_row(self):
        page = self.sign_in("queue")
        self.daemon.change_one("pause", self.newest()["id"], {})
        expect(page.locator(".row").first).to_contain_text("Paused")
        expect(page.locator(".row").first.get_by_role("button")).to_contain_text("Resume")

    def test_missed_events_make_the_page_read_again(self):
        page = self.sign_in("queue")
        self.wait(lambda: self.daemon.subscribers, "the stream is open")
        self.daemon.total += 5
        self.daemon.emit("reset")
        expect(page.locator(".heading [role=status]")).to_have_text("65 uploads")

    def test_a_lost_daemon_is_shown_and_the_page_is_current_again_by_itself(self):
        page = self.sign_in("queue")
        self.wait(lambda: self.daemon.subscribers, "the stream is open")
        self.daemon.stop()
        notice = page.locator("#connection")
        expect(notice).to_contain_text("No connection to the daemon since")
        expect(notice).to_contain_text("next try in")
        expect(page.get_by_role("button", name="Pause…")).to_be_disabled()
        expect(page.locator(".row").first).to_be_visible()
        self.daemon.total += 3
        self.daemon.restart()
        expect(notice).to_be_hidden()
        expect(page.locator(".heading [role=status]")).to_have_text("63 uploads")
        expect(page.get_by_role("button", name="Pause…")).to_be_enabled()

    def test_a_daemon_that_takes_questions_and_answers_none_is_shown_within_thirteen_seconds(self):
        for path in ("/v1/events", "/v1/status"):
            with self.subTest(path=path):
                self.daemon.silent.add(path)
                page = self.sign_in(page=self.open_page(self.open_context()))
                notice = page.locator("#connection")
                expect(notice).to_contain_text("No connection to the daemon since", timeout=13_000)
                expect(notice).to_contain_text("it does not answer")
                self.daemon.silent.clear()
                page.get_by_role("button", name="Try now").click()
                expect(notice).to_be_hidden()

    def test_a_daemon_that_forgot_its_sessions_asks_for_the_token_and_goes_on(self):
        page = self.sign_in("queue?folder=garden")
        self.wait(lambda: self.daemon.subscribers, "the stream is open")
        self.daemon.stop()
        expect(page.locator("#connection")).to_be_visible()
        self.daemon.sessions.forget_all()
        self.daemon.restart()
        dialog = page.locator("dialog.question")
        dialog.get_by_label("Token").fill("operator-token-0123")
        dialog.get_by_role("button", name="Sign in again").click()
        expect(page.locator("#connection")).to_be_hidden()
        self.wait(lambda: self.daemon.subscribers, "the stream is open again")
        expect(page.get_by_label("Folder")).to_have_value("garden")

    def test_a_lost_daemon_is_tried_less_often_each_time(self):
        page = self.sign_in()
        self.wait(lambda: self.daemon.subscribers, "the stream is open")
        tries = []
        page.on("request", lambda request: "events" in request.url and tries.append(page.evaluate("performance.now()")))
        self.daemon.stop()
        self.wait(lambda: len(tries) >= 3, "three tries")
        self.assertGreater(tries[2] - tries[1], (tries[1] - tries[0]) * 1.1)

    def test_a_hidden_tab_has_no_stream_and_goes_on_where_it_was(self):
        page = self.sign_in()
        self.wait(lambda: self.daemon.subscribers, "the stream is open")
        hide(page, True)
        self.wait(lambda: not self.daemon.subscribers, "the stream is closed")
        seq = self.daemon.seq
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        hide(page, False)
        self.wait(lambda: self.daemon.subscribers, "the stream is open again")
        self.assertTrue(any(f"events?since={seq}" in url for url in requests), requests)

    def test_a_page_has_one_stream(self):
        self.sign_in()
        for view in ("queue", "plan", "usage", "history", "check", "now"):
            self.go(view)
        self.assertEqual((self.daemon.streams_opened, len(self.daemon.subscribers)), (1, 1))

    def test_the_status_is_read_at_most_every_five_seconds(self):
        page = self.sign_in()
        self.wait(lambda: self.daemon.subscribers, "the stream is open")
        times = []
        page.on("request",
          lambda request: request.url.endswith("v1/status") and times.append(page.evaluate("performance.now()")))
        for _ in range(40):
            self.daemon.emit("state", self.newest())
        self.wait(lambda: times, "a reading of the status")
        self.wait(lambda: len(times) >= 2, "another one")
        self.assertGreater(times[1] - times[0], 4500)


class EmptyTest(PageTest):
    empty = True

    def test_an_idle_daemon_says_so_in_every_view(self):
        page = self.sign_in()
        expect(page.locator(".headline")).to_contain_text("Idle")
        expect(page.get_by_text("Nothing to send.", exact=False)).to_be_visible()
        for view, words in (("queue", "The queue is empty"), ("plan", "nothing to plan"),
          ("usage", "No quota is configured"),
                            ("history", "Nothing was completed lately"),
                              ("history?list=failed", "No upload has failed"),
                            ("check", "No check has run")):
            self.go(view)
            expect(page.get_by_text(words)).to_be_visible()


class BrokenTest(PageTest):
    def test_a_part_that_cannot_be_read_says_why_and_can_be_tried_again(self):
        page = self.sign_in()
        refusal = {"status": 503, "json": {"error": {"code": "unavailable", "message": "the state cannot be written"}}}
        for path, view in (("uploads?*", "queue"), ("plan?*", "plan"), ("usage?*", "usage")):
            page.route(f"**/v1/{path}", lambda route: route.fulfill(**refusal))
            self.go(view)
            expect(page.locator(".empty", has_text="the state cannot be written")).to_be_visible()
            page.unroute(f"**/v1/{path}")
        page.route("**/v1/uploads?*", lambda route: route.fulfill(**refusal))
        self.go("queue")
        again = page.get_by_role("button", name="Try again")
        expect(again).to_be_visible()
        page.unroute("**/v1/uploads?*")
        again.click()
        expect(page.locator(".row a").first).to_be_visible()
        expect(again).to_have_count(0)

    def test_the_banner_says_what_is_wrong_now(self):
        page = self.sign_in()
        self.wait(lambda: self.daemon.subscribers, "the stream is open")
        page.route("**/v1/status", lambda route: route.fulfill(
            status=503, json={"error": {"code": "unavailable", "message": "the database is busy"}}))
        page.get_by_role("button", name="Rescan folders").click()
        banner = page.locator("#connection")
        expect(banner).to_contain_text("The daemon has no status: the database is busy")
        self.daemon.stop()
        expect(banner).to_contain_text("No connection to the daemon since")
        expect(banner).not_to_contain_text("has no status")
        page.unroute("**/v1/status")
        self.daemon.restart()
        banner.get_by_role("button", name="Try now").click()
        expect(banner).to_be_hidden()

    def test_an_answer_of_another_program_is_not_taken_for_the_daemon(self):
        page = self.sign_in()
        page.route("**/v1/uploads?*", lambda route: route.fulfill(status=200, body="<html>portal</html>"))
        self.go("queue")
        expect(page.get_by_text("is not one of the daemon")).to_be_visible()

    def test_a_daemon_without_minutes_leaves_their_chart_out_with_a_sentence(self):
        page = self.sign_in()
        page.route("**/v1/usage?*minutes*", lambda route: route.fulfill(
            status=400, json={"error": {"code": "bad_request", "message": "usage takes no `minutes`"}}))
        self.go("usage")
        expect(page.get_by_text("does not count by the minute")).to_be_visible()
        expect(page.get_by_role("img", name="By day")).to_be_visible()

    def open_drawer(self):
        upload = self.daemon.upload(fake_views.identifier(self.daemon.total - 8))
        self.sign_in("queue")
        self.wait(lambda: self.daemon.subscribers, "the stream is open")
        self.go(f"queue?upload={upload['id']}")
        drawer = self.page.locator("dialog.drawer")
        expect(drawer.get_by_role("heading", name="File", exact=True)).to_be_visible()
        return drawer, upload["id"]

    def test_a_drawer_whose_upload_cannot_be_read_again_keeps_what_it_shows(self):
        drawer, identifier = self.open_drawer()
        with self.page.expect_response("**/v1/why/*"):
            self.page.route("**/v1/why/*", lambda route: route.fulfill(
                status=503, json={"error": {"code": "unavailable", "message": "the database is busy"}}))
            self.daemon.change_one("priority", identifier, {"priority": 5})
        self.page.evaluate("() => new Promise(requestAnimationFrame)")
        self.assertTrue(drawer.get_by_role("heading", name="File", exact=True).is_visible())
        self.page.unroute("**/v1/why/*")
        expect(drawer.locator("dl div", has_text="Priority")).to_contain_text("5")

    def test_an_earlier_answer_that_comes_late_does_not_replace_a_later_one_in_the_drawer(self):
        drawer, identifier = self.open_drawer()
        held = []
        self.page.route("**/v1/uploads/0*", lambda route: route.continue_() if held
                        else held.append((route, route.fetch())))
        self.daemon.change_one("priority", identifier, {"priority": 5})
        self.wait(lambda: held, "the drawer asks")
        self.daemon.change_one("priority", identifier, {"priority": 9})
        priority = drawer.locator("dl div", has_text="Priority")
        expect(priority).to_contain_text("9")
        route, answer = held[0]
        with self.page.expect_event("requestfinished", lambda request: request == route.request):
            route.fulfill(response=answer)
        self.page.evaluate("() => new Promise(requestAnimationFrame)")
        self.assertIn("9", priority.inner_text())

    def test_a_usage_that_cannot_be_read_again_stays(self):
        page = self.page
        self.change_asset(page, "view-usage.js", "INTERVAL = 30_000", "INTERVAL = 0")
        self.sign_in("usage")
        chart = page.get_by_role("img", name="By day")
        expect(chart).to_be_visible()
        with page.expect_response(lambda answer: "v1/usage" in answer.url and answer.status == 503):
            page.route("**/v1/usage?*", lambda route: route.fulfill(
                status=503, json={"error": {"code": "unavailable", "message": "the database is busy"}}))
            self.daemon.emit("reset")
        page.evaluate("() => new Promise(requestAnimationFrame)")
        self.assertTrue(chart.is_visible())

    def test_an_upload_that_is_gone_says_so(self):
        page = self.sign_in()
        self.go("queue?upload=01M8MQDJPJFAKE00ZZZZZZZZZZ")
        expect(page.get_by_role("dialog")).to_contain_text("does not know this upload any more")


if __name__ == "__main__":
    unittest.main()
