"""Small pictures of videos and photos: what is asked for, when, and what is shown without one."""

import threading
import time

from playwright.sync_api import expect

from support import PageTest


class ThumbnailTest(PageTest):
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

    def names(self):
        return {self.daemon.upload(each)["name"] for each in self.asked}

    def test_videos_and_photos_in_view_have_pictures_and_nothing_else_is_asked_for(self):
        page = self.sign_in("queue")
        expect(page.locator(".row .thumbnail.loaded img").first).to_be_visible()
        self.wait(lambda: self.running == 0 and len(self.asked) > 3, "the pictures are there")
        self.daemon.receive({"name": "notes.txt"}, 10)
        self.daemon.receive({"name": "brand-new.mp4"}, 10)
        expect(page.get_by_role("link", name="notes.txt")).to_be_visible()
        self.wait(lambda: "brand-new.mp4" in self.names(), "the newest video is asked for")
        self.assertNotIn("notes.txt", self.names())
        self.assertLess(len(self.asked), self.uploads)

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

    def test_the_drawer_shows_a_large_one(self):
        page = self.sign_in("queue")
        page.locator(".row a").first.click()
        expect(page.locator("dialog.drawer .thumbnail.large.loaded img")).to_be_visible()
