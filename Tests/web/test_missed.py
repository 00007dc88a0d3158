"""Missed events: a hidden tab, a lost connection, and a database whose numbers begin again."""

import unittest

from playwright.sync_api import expect

import fake_views
from support import hide
from test_waits import ListTest


class MissedTest(ListTest):
    def expect_paused_after_a_minute_away(self):
        page = self.page = self.open_page(self.open_context())
        self.read_only_after_events(page)
        self.sign_in("queue")
        self.stream()
        upload = self.waiting("rule")
        self.link(upload).focus()
        hide(page, True)
        self.wait(lambda: not self.daemon.subscribers, "the stream is closed")
        self.daemon.change_one("pause", upload["id"], {}, age=60)
        hide(page, False)
        self.stream()
        expect(self.row(upload)).to_contain_text("Paused")
        # Later events do not change it either.
        self.daemon.change_one("priority", upload["id"], {"priority": 5})
        expect(self.row(upload)).to_contain_text("priority 5")
        expect(self.row(upload)).to_contain_text("Paused")
        self.daemon.change_one("resume", upload["id"], {})
        page.context.close()

    def test_an_upload_that_was_paused_while_the_tab_was_hidden_is_paused(self):
        for clock in (0, 3600, -3600):
            with self.subTest(clock=clock):
                self.daemon.clock = clock
                self.expect_paused_after_a_minute_away()

    def tell_no_time(self):
        """Only progress tells the time of the daemon when the page is opened."""
        for identifier in [each["id"] for each in self.daemon.running()]:
            self.daemon.changed[identifier] = {"state": "queued", "holds": []}

    def test_the_same_for_a_daemon_that_has_told_no_time(self):
        self.tell_no_time()
        self.expect_paused_after_a_minute_away()

    def test_a_tab_that_was_opened_in_the_background_shows_a_pause_from_before_it_was_seen(self):
        self.tell_no_time()
        page = self.page
        self.read_only_after_events(page)
        page.add_init_script("Object.defineProperty(document, 'hidden', { value: true, configurable: true });")
        self.sign_in("queue")
        upload = self.waiting("rule")
        self.link(upload).focus()
        self.assertFalse(self.daemon.subscribers)
        self.daemon.change_one("pause", upload["id"], {}, age=3600)
        hide(page, False)
        expect(self.row(upload)).to_contain_text("Paused")

    def test_a_database_that_was_built_again_is_shown_though_its_numbers_begin_lower(self):
        for is_in_use in (False, True):
            with self.subTest(is_in_use=is_in_use):
                page = self.page = self.open_page(self.open_context())
                self.read_only_after_events(page)
                self.sign_in("queue")
                self.stream()
                upload = self.waiting("rule")
                if is_in_use:
                    self.link(upload).focus()
                self.daemon.change_one("pause", upload["id"], {})
                expect(self.row(upload)).to_contain_text("Paused")
                del self.daemon.changed[upload["id"]]
                self.daemon.log.clear()
                self.daemon.seq = 5
                self.daemon.emit("reset")
                expect(self.row(upload)).to_contain_text("Outside the window")
                self.daemon.change_one("priority", upload["id"], {"priority": 77})
                expect(self.row(upload)).to_contain_text("priority 77")
                page.context.close()
                self.daemon.changed.pop(upload["id"])
                self.daemon.seq = 5000
                self.daemon.log.clear()

    def test_a_transfer_that_ended_while_the_tab_was_hidden_is_gone(self):
        page = self.sign_in()
        self.stream()
        ended, other = self.daemon.running()[:2]
        expect(page.locator(f".transfer a[href*='{ended['id']}']")).to_be_visible()
        hide(page, True)
        self.wait(lambda: not self.daemon.subscribers, "the stream is closed")
        change = {"state": "completed", "list": "completed"}
        self.daemon.changed[ended["id"]] |= change
        self.daemon.emit("completed", {**ended, **change}, age=60)
        hide(page, False)
        expect(page.locator(f".transfer a[href*='{ended['id']}']")).to_have_count(0)
        expect(page.locator(f".transfer a[href*='{other['id']}']")).to_be_visible()


class MissedPlaceTest(ListTest):
    uploads = 1000
    updates = 2.0

    def offer(self):
        return self.page.get_by_text("Uploads were added or have ended.")

    def test_missed_events_leave_the_place_and_the_focus_where_they_are(self):
        page = self.sign_in("queue")
        self.stream()
        self.scroll_to(500)
        link = page.locator('.row[data-row="500"] a').first
        link.evaluate("node => node.focus({ preventScroll: true })")
        place, address = link.bounding_box()["y"], link.get_attribute("href")
        upload = self.newest(500)
        self.daemon.changed[upload["id"]] = {"state": "waiting", "holds": [fake_views.hold("disk", "the disk is full")]}
        self.daemon.emit("reset")
        expect(self.row(upload)).to_contain_text("No space")
        # No upload came or went.
        expect(self.offer()).to_be_hidden()
        self.daemon.total += 1
        self.daemon.emit("reset")
        expect(self.offer()).to_be_visible()
        self.assertLess(abs(link.bounding_box()["y"] - place), 2)
        self.assertEqual(page.evaluate("document.activeElement.getAttribute('href')"), address)
        self.assertTrue(page.get_by_role("button", name="Show them").evaluate("""node => {
          const { left, top } = node.getBoundingClientRect();
          return node.contains(document.elementFromPoint(left + 9, top + 9));
        }"""), "the offer is in the window")
        page.get_by_role("button", name="Show them").click()
        expect(page.locator('.row[data-row="0"] a').first).to_be_focused()

    def test_a_connection_that_was_lost_offers_nothing_where_nothing_came_or_went(self):
        page = self.sign_in("queue")
        self.stream()
        upload = self.waiting("rule")
        self.row(upload).get_by_role("checkbox").check()
        self.daemon.stop()
        expect(page.locator("#connection")).to_be_visible()
        self.daemon.changed[upload["id"]] = {"holds": [], "state": "queued"}
        self.daemon.restart()
        page.locator("#connection").get_by_role("button", name="Try now").click()
        expect(self.row(upload)).to_contain_text("Queued")
        expect(self.offer()).to_be_hidden()


if __name__ == "__main__":
    unittest.main()
