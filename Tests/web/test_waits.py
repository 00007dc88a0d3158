"""Lists follow the daemon: waits that change without an event of their upload, transfers, and places that stay."""

import time
import unittest

from playwright.sync_api import expect

import fake_views
from support import PageTest


class ListTest(PageTest):
    def read_only_after_events(self, page):
        """The list is not read once in a while, so that this cannot show what an event failed to show."""
        self.change_asset(page, "view-uploads.js", "WAITS_INTERVAL = 10_000", "WAITS_INTERVAL = 1e9")

    def stream(self):
        self.wait(lambda: self.daemon.subscribers, "the stream is open")

    def newest(self, place=0):
        return self.daemon.upload(fake_views.identifier(self.daemon.total - 1 - place))

    def waiting(self, kind):
        uploads = (self.newest(place) for place in range(self.daemon.total))
        return next(each for each in uploads if kind in [hold["kind"] for hold in each["holds"]])

    def ended(self, name):
        """The newest one."""
        return max((each for each in self.daemon.ended.values() if each["list"] == name), key=lambda each: each["id"])

    def link(self, upload):
        return self.page.locator(f".row a[href*='{upload['id']}']")

    def row(self, upload):
        return self.page.locator(".row", has=self.page.locator(f"a[href*='{upload['id']}']"))

    def scroll_to(self, row):
        """Scrolls until this row was reached."""
        self.page.wait_for_function("""row => {
          const list = document.querySelector(".rows");
          const height = document.querySelector(".rows .row").offsetHeight;
          scrollTo(0, list.offsetTop + row * height - innerHeight / 2);
          const found = document.querySelector(`.row[data-row="${row}"]`);
          return found && !document.querySelector(".row.unread") && found.getBoundingClientRect().top < innerHeight;
        }""", arg=row)


class EventTest(ListTest):
    """With no reading but those that an event leads to."""

    def setUp(self):
        super().setUp()
        self.read_only_after_events(self.page)

    def test_a_pause_of_everything_is_shown_in_rows_that_are_in_use(self):
        page = self.sign_in("queue")
        self.stream()
        upload = self.waiting("rule")
        self.link(upload).focus()
        self.daemon.change("pause", {"all": True})
        expect(self.row(upload)).to_contain_text("Paused")
        expect(page.locator(".row a:focus")).to_have_attribute("href", self.link(upload).get_attribute("href"))
        self.daemon.change("resume", {"all": True})
        expect(self.row(upload)).to_contain_text("Outside the window")

    def test_a_reading_that_is_due_later_is_brought_forward_by_an_event(self):
        page = self.sign_in("queue")
        self.stream()
        upload = self.waiting("rule")
        self.link(upload).focus()
        # The status that follows an event makes a later reading due.
        with page.expect_response("**/v1/status"):
            self.daemon.change_one("priority", upload["id"], {"priority": 77})
        expect(self.row(upload)).to_contain_text("priority 77")
        self.daemon.change("pause", {"all": True})
        expect(self.row(upload)).to_contain_text("Paused")

    def test_a_renewed_credential_shows_what_other_uploads_wait_for_now(self):
        self.sign_in("queue")
        self.stream()
        upload = self.waiting("rule")
        self.link(upload).focus()
        self.daemon.changed[upload["id"]] = {"holds": [], "state": "queued"}
        self.daemon.emit("credential", self.daemon.running()[0])
        expect(self.row(upload)).to_contain_text("Queued")

    def test_the_reasons_in_an_open_drawer_follow_a_pause(self):
        page = self.page
        self.change_asset(page, "upload.js", 'subscribe("status", () => this.refreshSoon()),', "")
        self.sign_in("queue")
        self.stream()
        self.go(f"queue?upload={self.waiting('rule')['id']}")
        drawer = page.locator("dialog.drawer")
        expect(drawer.get_by_role("heading", name="File", exact=True)).to_be_visible()
        self.daemon.change("pause", {"all": True})
        expect(drawer.locator(".holds")).to_contain_text("everything is paused")


class WaitsTest(ListTest):
    def test_a_wait_that_ends_without_any_event_is_shown_with_a_later_status(self):
        self.sign_in("queue")
        upload = self.waiting("rule")
        expect(self.row(upload)).to_contain_text("Outside the window")
        self.daemon.changed[upload["id"]] = {"holds": [], "state": "queued"}
        expect(self.row(upload)).to_contain_text("Queued", timeout=25_000)

    def test_a_retry_from_elsewhere_takes_the_row_off_the_failed_ones(self):
        page = self.sign_in("history?list=failed")
        self.stream()
        upload = self.ended("failed")
        expect(self.link(upload)).to_be_visible()
        self.daemon.change_one("retry", upload["id"], {})
        expect(self.link(upload)).to_have_count(0)
        expect(page.locator(".heading [role=status]")).to_have_text("19 uploads")

    def test_the_numbers_of_the_lists_follow_while_the_rows_are_in_use(self):
        page = self.sign_in("history?list=failed")
        self.stream()
        expect(page.get_by_role("link", name="Failed 20")).to_be_visible()
        page.locator(".row a").nth(3).focus()
        self.daemon.change_one("retry", self.ended("failed")["id"], {})
        expect(page.get_by_role("link", name="Failed 19")).to_be_visible()
        expect(page.get_by_text("Uploads were added or have ended.")).to_be_visible()

    def test_a_priority_that_is_set_elsewhere_is_shown(self):
        self.sign_in("queue")
        self.stream()
        upload = self.waiting("quota")
        self.daemon.change_one("priority", upload["id"], {"priority": 77})
        expect(self.row(upload)).to_contain_text("priority 77")


class TransferTest(ListTest):
    def finish(self, upload):
        change = {"state": "completed", "list": "completed"}
        self.daemon.changed[upload["id"]] = {**self.daemon.changed.get(upload["id"], {}), **change}
        self.daemon.emit("completed", {**upload, **change})

    def test_a_transfer_that_ends_leaves_the_view_and_the_sentence_follows(self):
        page = self.sign_in()
        self.stream()
        expect(page.locator(".transfer:not(.copy)")).to_have_count(3)
        for upload in self.daemon.running():
            self.finish(upload)
        expect(page.locator(".transfer:not(.copy)")).to_have_count(0)
        expect(page.get_by_text("Nothing is sent now; 57 uploads wait.")).to_be_visible()
        counts = self.daemon.counts()
        for number, words in ((1, "Nothing is sent now; 1 upload waits."), (0, "Nothing to send.")):
            self.daemon.status_changes = {"counts": counts | {"ongoing": number}}
            page.get_by_role("button", name="Rescan folders").click()
            expect(page.get_by_text(words)).to_be_visible()

    def test_progress_that_comes_after_the_end_does_not_bring_a_transfer_back(self):
        page = self.sign_in()
        self.stream()
        upload, other = self.daemon.running()[:2]
        shown = page.locator(f".transfer a[href*='{upload['id']}']")
        expect(shown).to_be_visible()
        self.finish(upload)
        self.daemon.emit("progress", upload)
        self.daemon.emit("state", {**other, "name": "renamed.mp4"})
        expect(shown).to_have_count(0)
        self.finish(other)
        expect(page.locator(f".transfer a[href*='{other['id']}']")).to_have_count(0)
        expect(shown).to_have_count(0)

    def test_a_transfer_that_waited_and_runs_again_after_missed_events_moves(self):
        self.daemon.updates = 0.001
        page = self.sign_in()
        self.stream()
        upload = self.daemon.running()[0]
        shown = page.locator(".transfer", has=page.locator(f"a[href*='{upload['id']}']"))
        expect(shown).to_be_visible()
        self.daemon.changed[upload["id"]] = {"state": "waiting"}
        self.daemon.emit("state", self.daemon.upload(upload["id"]))
        expect(shown).to_have_count(0)
        self.daemon.changed[upload["id"]] = {"state": "uploading"}
        self.daemon.emit("reset")
        expect(shown).to_be_visible()
        self.daemon.emit("progress", {**upload, "progress": {**upload["progress"], "fraction": 0.9}})
        expect(shown.locator("progress")).to_have_attribute("value", "0.9")

    def test_a_transfer_that_ends_while_the_page_reads_them_does_not_stay(self):
        ended, other = self.daemon.running()[:2]

        def late(route):
            answer = route.fetch()
            end = time.monotonic() + 5
            while not self.daemon.subscribers and time.monotonic() < end:
                time.sleep(0.01)
            if "state" in self.daemon.changed.get(ended["id"], {}):
                return route.fulfill(response=answer)
            self.finish(ended)
            while any(not each.empty() for each in self.daemon.subscribers) and time.monotonic() < end:
                time.sleep(0.01)
            return route.fulfill(response=answer)
        self.page.route("**/v1/uploads?state=uploading*", late)
        page = self.sign_in()
        expect(page.locator(f".transfer a[href*='{other['id']}']")).to_be_visible()
        expect(page.locator(f".transfer a[href*='{ended['id']}']")).to_have_count(0)

    def test_transfers_that_could_not_be_read_are_read_with_the_next_status(self):
        self.daemon.updates = 0.001
        self.page.route("**/v1/uploads?state=*", lambda route: route.fulfill(
            status=503, json={"error": {"code": "unavailable", "message": "busy"}}))
        page = self.sign_in()
        expect(page.locator(".headline")).to_contain_text("Sending")
        self.page.unroute("**/v1/uploads?state=*")
        expect(page.locator(".transfer:not(.copy)")).to_have_count(3)
        expect(page.get_by_text("Reading…", exact=True)).to_have_count(0)

    def test_two_holds_of_a_folder_to_one_destination_are_two_cards_and_none_stays(self):
        page = self.sign_in()
        cards = page.locator(".panel", has=page.get_by_role("heading", name="Holds")).locator("li.card")
        expect(cards).to_have_count(3)
        known = fake_views.status(self.daemon)["classes"]
        other = known[0] | {"hold": fake_views.hold("quota", "the quota of large files is used up")}
        for classes in ([*known, other], [other, *known], known[1:], [other, other]):
            self.daemon.status_changes = {"classes": classes}
            page.get_by_role("button", name="Rescan folders").click()
            expect(cards).to_have_count(len(classes))
            texts = [each["hold"]["text"].replace("`", "") for each in classes]
            for card, text in zip(cards.all(), texts):
                expect(card).to_contain_text(text[:40])


class IdleTest(PageTest):
    empty = True

    def test_an_empty_queue_says_that_nothing_waits_and_not_that_everything_was_sent(self):
        page = self.sign_in()
        counts = {"ongoing": 0, "completed": 3, "failed": 0, "cancelled": 0}
        for change in ({"counts": counts}, {"counts": counts | {"failed": 1}}, {"folders": [fake_views.folder("a")]}):
            with self.subTest(change=change):
                self.daemon.status_changes = change
                self.go("now")
                page.get_by_role("button", name="Rescan folders").click()
                expect(page.locator(".headline")).to_have_text("Idlenothing waits")
                self.go("queue")
                expect(page.locator(".view > .empty")).to_have_text("The queue is empty: nothing waits.")


class PlaceTest(ListTest):
    uploads = 1000
    updates = 2.0

    def rows(self):
        return self.page.evaluate("""() => [...document.querySelectorAll(".row")].map(row =>
          [Number(row.dataset.row), row.querySelector("a").hash.split("upload=")[1], row.style.transform])""")

    def test_a_page_that_is_read_again_does_not_overlap_the_next_one(self):
        self.sign_in("queue")
        self.scroll_to(700)
        # In the second page, which was dropped meanwhile.
        for place in range(120, 135):
            self.daemon.changed[self.newest(place)["id"]] = {"list": "completed", "state": "completed"}
        for row in (500, 300, 200, 180, 190, 120, 60):
            self.scroll_to(row)
            rows = self.rows()
            self.assertEqual(len({identifier for _, identifier, _ in rows}), len(rows), row)
            self.assertEqual(len({transform for _, _, transform in rows}), len(rows), row)
            self.assertEqual([each for _, each, _ in rows], sorted((each for _, each, _ in rows), reverse=True), row)
        shown = {identifier for _, identifier, _ in self.rows()}
        self.assertTrue(shown)

    def test_a_row_that_the_page_removed_itself_is_not_offered_as_a_change(self):
        page = self.sign_in("history")
        self.stream()
        late = []
        for subscriber in self.daemon.subscribers:
            put = subscriber.put
            subscriber.put = lambda lines, put=put: late.append(lambda: put(lines))
        row = page.locator(".row").nth(2)
        upload = self.daemon.ended[row.locator("a").get_attribute("href").split("upload=")[1]]
        row.get_by_role("button", name="Remove").press("Enter")
        page.get_by_role("button", name="Remove 1 upload").press("Enter")
        expect(self.link(upload)).to_have_count(0)
        page.wait_for_function("() => document.activeElement.closest('.row')?.dataset.row === '2'")
        other = self.daemon.ended[page.locator(".row a:focus").get_attribute("href").split("upload=")[1]]
        # A later event: the page has seen the one of the removal when it shows this one.
        self.daemon.emit("state", {**other, "priority": 77})
        for tell in late:
            tell()
        expect(self.row(other)).to_contain_text("priority 77")
        expect(page.get_by_text("Uploads were added or have ended.")).to_be_hidden()

    def test_a_row_that_is_removed_far_down_leaves_the_others_at_their_place(self):
        page = self.sign_in("queue")
        self.scroll_to(500)
        upload, following = self.newest(500), self.newest(501)
        box = self.row(upload).get_by_role("checkbox")
        box.check()
        page.get_by_role("group", name="Chosen uploads").get_by_role("button", name="Cancel…").click()
        page.get_by_role("button", name="Cancel 1 upload").click()
        expect(page.locator("dialog")).to_have_count(0)
        expect(self.link(upload)).to_have_count(0)
        expect(self.row(following)).to_be_in_viewport()
        self.assertEqual(self.row(following).get_attribute("data-row"), "500")

    def test_rows_that_come_into_use_before_the_list_is_read_again_do_not_move(self):
        page = self.sign_in("queue")
        self.stream()
        self.daemon.receive({"name": "brand-new.mp4"}, 10)
        self.wait(lambda: page.evaluate("() => new Promise(done => requestAnimationFrame(() => done(true)))"), "a frame")
        page.locator(".row a").nth(4).focus()
        expect(page.get_by_text("Uploads were added or have ended.")).to_be_visible()
        expect(page.get_by_role("link", name="brand-new.mp4")).to_have_count(0)


if __name__ == "__main__":
    unittest.main()
