"""Small pictures of videos and photos: what is asked for, when, and what is shown without one."""

import threading
import time
import zlib

from playwright.sync_api import expect

from support import PageTest, hide


class RecordingTest(PageTest):
    """Records what the page asks for."""

    def setUp(self):
        super().setUp()
        self.asked = []
        self.running = self.most = 0
        self.lock = threading.Lock()
        self.answer = self.daemon.thumbnail
        self.daemon.thumbnail = self.recorded

    def recorded(self, reference):
        with self.lock:
            self.asked.append(reference)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            time.sleep(0.05)
            return self.answer(reference)
        finally:
            with self.lock:
                self.running -= 1


class ThumbnailTest(RecordingTest):
    def names(self):
        return {self.daemon.upload(each)["name"] for each in self.asked}

    def test_videos_and_photos_in_view_have_pictures_and_nothing_else_is_asked_for(self):
        page = self.sign_in("queue")
        expect(page.locator(".row .thumbnail.loaded canvas").first).to_be_visible()
        self.assertEqual(page.locator(".row img").count(), 0)
        self.wait(lambda: self.running == 0 and len(self.asked) > 3, "the pictures are there")
        self.daemon.receive({"name": "notes.txt"}, 10)
        self.daemon.receive({"name": "brand-new.mp4"}, 10)
        expect(page.get_by_role("link", name="notes.txt")).to_be_visible()
        self.wait(lambda: "brand-new.mp4" in self.names(), "the newest video is asked for")
        self.assertNotIn("notes.txt", self.names())
        self.assertLess(len(self.asked), self.uploads)

    def test_a_picture_has_the_colours_that_the_daemon_sent_and_no_more_pixels_than_its_place(self):
        page = self.sign_in("queue")
        picture = page.locator(".row .thumbnail.loaded canvas").first
        reference = picture.evaluate("node => node.closest('.row').dataset.id")
        width, height, colours = picture.evaluate("""node => {
          const copy = new OffscreenCanvas(node.width, node.height).getContext("2d");
          copy.drawImage(node, 0, 0);
          const at = (y) => [...copy.getImageData(node.width / 2, y, 1, 1).data];
          return [node.width, node.height, [at(1), at(node.height - 2)]];
        }""")
        # 4.5rem of 15 pixels, and 2.55rem.
        self.assertEqual((width, height), (68, 38))
        tone = zlib.crc32(reference.encode()) % 120
        for colour, expected in zip(colours, ((60 + tone, 111, 190 - tone // 2), (50 + tone // 3, 102, 75))):
            self.assertLess(max(abs(one - other) for one, other in zip(colour, (*expected, 255))), 12)

    def test_a_picture_is_drawn_again_when_its_place_has_more_pixels(self):
        page = self.sign_in("queue")
        picture = page.locator(".row .thumbnail.loaded canvas").first
        self.assertEqual(picture.evaluate("node => node.width"), 68)
        size = page.viewport_size
        # As by a zoom, which also changes the size in CSS pixels.
        page.context.new_cdp_session(page).send("Emulation.setDeviceMetricsOverride", {
            "width": size["width"] - 8, "height": size["height"], "deviceScaleFactor": 2, "mobile": False})
        # All that the picture has; its place would have 136.
        in_view = """nodes => nodes.filter((node) => node.getBoundingClientRect().bottom < innerHeight)
          .every((node) => node.width === 96)"""
        pictures = page.locator(".row .thumbnail.loaded canvas")
        self.wait(lambda: pictures.evaluate_all(in_view), "the pictures in view are drawn with more pixels")
        page.wait_for_timeout(500)
        asked = len(self.asked)
        page.wait_for_timeout(500)
        self.assertEqual(len(self.asked), asked)
        self.assertTrue(picture.is_visible())

    def test_few_are_asked_for_at_a_time(self):
        self.sign_in("queue")
        self.wait(lambda: len(self.asked) > 5, "some pictures are there")
        self.assertLessEqual(self.most, 2)

    def test_a_file_without_a_picture_keeps_its_icon_and_is_not_asked_for_again(self):
        self.answer = lambda reference: None
        page = self.sign_in("queue")
        self.wait(lambda: self.running == 0 and len(self.asked) > 3, "all are refused")
        self.assertEqual(page.locator(".row .thumbnail.loaded").count(), 0)
        expect(page.locator(".row .thumbnail .icon").first).to_be_visible()
        first = list(self.asked)
        box = page.locator(".row .thumbnail").first.bounding_box()
        self.go("plan")
        self.go("queue")
        expect(page.locator(".row .thumbnail .icon").first).to_be_visible()
        self.assertEqual(box, page.locator(".row .thumbnail").first.bounding_box())
        # It is the last one that comes into view.
        new = self.daemon.receive({"name": "brand-new.mp4"}, 10)["uploads"][0]["id"]
        self.wait(lambda: new in self.asked, "the newest is asked for")
        self.assertEqual([each for each in self.asked[len(first):] if each in first], [])

    def test_those_that_waited_when_the_tab_was_hidden_are_asked_for_when_it_is_seen(self):
        answer, gate = self.answer, threading.Event()
        self.addCleanup(gate.set)
        self.answer = lambda reference: gate.wait(20) and answer(reference)
        page = self.sign_in("queue")
        self.wait(lambda: self.running == 2, "two pictures are loading")
        page.wait_for_timeout(300)
        hide(page, True)
        gate.set()
        self.wait(lambda: self.running == 0, "they are there")
        self.assertEqual(len(self.asked), 2)
        hide(page, False)
        self.wait(lambda: len(self.asked) > 4, "the others are asked for")

    def test_the_drawer_shows_a_large_one(self):
        page = self.sign_in("queue")
        page.locator(".row a").first.click()
        expect(page.locator("dialog.drawer .thumbnail.large.loaded canvas")).to_be_visible()


class LongListTest(RecordingTest):
    uploads = 400

    def test_rows_that_are_scrolled_past_ask_for_none(self):
        self.page.clock.install()
        page = self.sign_in("queue")
        last = page.locator(f".row[data-row='{self.uploads - 1}']:not(.unread)")
        self.wait(lambda: page.evaluate("scrollTo(0, document.body.scrollHeight)") or last.count(), "all rows are read")
        page.evaluate("scrollTo(0, 0)")
        expect(page.locator(".row .thumbnail.loaded canvas").first).to_be_visible()
        page.clock.pause_at(page.evaluate("Date.now() + 10_000") / 1000)
        def rests():
            count = len(self.asked)
            page.wait_for_timeout(300)
            return self.running == 0 and len(self.asked) == count
        self.wait(rests, "no picture is missing")
        before = len(self.asked)
        passed = set()
        for _ in range(12):
            # The browser tells which rows have left the view when it draws the next frame, whatever the page's clock is.
            page.evaluate("""() => new Promise((drawn) => {
              scrollBy(0, 1500);
              const observer = new IntersectionObserver(() => {
                observer.disconnect();
                drawn();
              });
              observer.observe(document.body);
            })""")
            page.clock.run_for(20)
            passed |= self.shown()
        self.assertGreater(len(passed), 120)
        self.assertEqual(len(self.asked), before)
        self.wait(lambda: page.clock.run_for(100) or len(self.asked) > before + 3, "those where it stops are asked for")
        self.assertLessEqual(set(self.asked[before:]), self.shown())

    def shown(self):
        return set(self.page.evaluate("[...document.querySelectorAll('.row:not(.unread)')].map(row => row.dataset.id)"))
