"""Files that are added in the page: none is lost, none is added twice, and the page says only what is so."""

import pathlib
import tempfile
import unittest

from playwright.sync_api import expect

from page_server import Refused
from support import PageTest


def file(name, size=10):
    return {"name": name, "mimeType": "video/mp4", "buffer": b"x" * size}


class AddingTest(PageTest):
    def dialog(self):
        return self.page.locator("dialog.question")

    def choose(self, *names):
        self.dialog().get_by_label("Files").set_input_files([file(name) for name in names])

    def open(self, *names):
        self.sign_in()
        self.page.get_by_role("button", name="Add files…").click()
        self.choose(*names)
        return self.dialog()

    def add(self):
        self.dialog().get_by_role("button", name="Add", exact=True).click()

    def hold(self):
        """Keeps the requests with bytes back; gives the list of them."""
        held = []
        self.addCleanup(self.page.unroute_all, behavior="ignoreErrors")
        self.page.route("**/v1/bytes?*", lambda route: held.append(route))
        return held

    def sent(self):
        return [body["name"] for path, body in self.daemon.commands if path == "/v1/bytes"]

    def test_nothing_else_is_chosen_while_files_are_sent(self):
        dialog = self.open("a.mp4", "b.mp4")
        held = self.hold()
        self.add()
        self.wait(lambda: len(held) == 1, "the first file is on its way")
        expect(dialog.get_by_label("Files")).to_be_disabled()
        expect(dialog.get_by_label("To")).to_be_disabled()
        held[0].continue_()
        self.wait(lambda: len(held) == 2, "the second file is on its way")
        held[1].continue_()
        expect(dialog).to_have_count(0)
        expect(self.page.locator("#announcements")).to_contain_text("Added: 2 files to nas.")
        self.assertEqual(self.sent(), ["a.mp4", "b.mp4"])

    def test_after_a_refusal_more_are_chosen_and_all_that_were_added_are_counted(self):
        dialog = self.open("good.mp4", "a\x1b.mp4")
        self.add()
        expect(dialog.get_by_role("alert")).to_contain_text("control character")
        dialog.get_by_label("To").select_option("archive")
        self.choose("other.mp4")
        expect(dialog.get_by_role("listitem")).to_have_count(2)
        expect(dialog.get_by_role("listitem").first).to_contain_text("added")
        self.add()
        expect(dialog).to_have_count(0)
        expect(self.page.locator("#announcements")).to_contain_text("Added: 1 file to nas, 1 file to archive.")
        self.assertEqual(self.sent(), ["good.mp4", "other.mp4"])

    def test_a_refused_file_does_not_keep_the_others_back(self):
        page = self.sign_in()
        page.get_by_role("button", name="Add files…").click()
        self.dialog().get_by_label("Files").set_input_files(
            [{"name": name, "mimeType": "video/mp4", "buffer": b"x"} for name in ("a\x1b.mp4", "good.mp4")])
        self.dialog().get_by_role("button", name="Add", exact=True).click()
        expect(self.dialog().get_by_role("alert")).to_contain_text("`name` contains a control character")
        expect(self.dialog().get_by_role("listitem").nth(1)).to_contain_text("added")
        self.assertEqual(self.sent(), ["good.mp4"])

    def test_a_refused_file_is_left_out_by_keys_and_the_focus_stays_in_the_list(self):
        page = self.sign_in()
        page.get_by_role("button", name="Add files…").click()
        self.dialog().get_by_label("Files").set_input_files(
            [{"name": name, "mimeType": "video/mp4", "buffer": b"x"} for name in ("a\x1b.mp4", "b\x1b.mp4", "good.mp4")])
        self.dialog().get_by_role("button", name="Add", exact=True).click()
        expect(self.dialog().get_by_role("alert")).to_contain_text("`name` contains a control character")
        buttons = self.dialog().get_by_role("button", name="Leave out")
        # What was added stays.
        expect(buttons).to_have_count(2)
        expect(buttons.first).to_have_accessible_name("Leave out a\\u001b.mp4")
        buttons.first.press("Enter")
        expect(buttons).to_have_count(1)
        expect(buttons.first).to_be_focused()
        expect(self.dialog().get_by_role("alert")).to_be_hidden()
        page.keyboard.press("Enter")
        expect(buttons).to_have_count(0)
        expect(self.dialog().get_by_label("Files")).to_be_focused()
        self.dialog().get_by_role("button", name="Add", exact=True).click()
        expect(self.dialog()).to_have_count(0)
        expect(page.locator("#announcements")).to_contain_text("Added: 1 file to nas.")
        self.assertEqual(self.sent(), ["good.mp4"])

    def test_a_file_whose_answer_is_lost_is_known_by_its_key_and_added_once(self):
        dialog = self.open("a.mp4")
        self.daemon.loses_answers = "late"
        self.add()
        expect(dialog).to_have_count(0)
        expect(self.page.locator("#announcements")).to_contain_text("Added: 1 file to nas.")
        self.assertEqual(self.daemon.total, 61)
        # A browser may have sent it again by itself, after the upload had ended.
        query = self.daemon.commands[-1][1]
        self.daemon.changed[self.daemon.keys[query["key"]]] |= {"list": "completed", "state": "completed"}
        with self.assertRaises(Refused):
            self.daemon.receive(query, 10)

    def test_a_file_of_which_nothing_is_known_is_not_added_twice(self):
        dialog = self.open("a.mp4")
        self.daemon.loses_answers = "early"
        self.add()
        expect(dialog.get_by_role("alert")).to_contain_text("It is not known whether the file was added.")
        self.check_axe()
        self.daemon.loses_answers = ""
        # The daemon records it late, and knows it when the page tries again.
        self.daemon.receive(self.daemon.taken[0], 10)
        self.add()
        expect(dialog).to_have_count(0)
        self.assertEqual(self.daemon.total, 61)

    def lose_answer(self):
        """Adds what was chosen. Whether the daemon has recorded it is not known afterwards."""
        self.daemon.loses_answers = "early"
        self.add()
        expect(self.dialog().get_by_role("alert")).to_contain_text("It is not known whether the file was added.")
        self.daemon.loses_answers = ""

    def test_a_file_whose_earlier_try_cannot_be_asked_for_is_not_sent_again(self):
        dialog = self.open("a.mp4")
        self.lose_answer()
        # The daemon has sent the file meanwhile: it would take its key again.
        upload = self.daemon.receive(self.daemon.taken[0], 10)["uploads"][0]
        self.daemon.changed[upload["id"]] |= {"state": "completed", "list": "completed"}
        self.page.route("**/v1/uploads/web-*", lambda route: route.fulfill(
            status=503, json={"error": {"code": "unavailable", "message": "the database is busy"}}))
        self.add()
        expect(dialog.get_by_role("alert")).to_contain_text(
            "the database is busy It is not known whether the last try added the file, so it was not sent again.")
        self.page.unroute("**/v1/uploads/web-*")
        self.add()
        expect(dialog).to_have_count(0)
        self.assertEqual(self.daemon.total, 61)

    def cancel_while_the_page_asks(self):
        """Cancels while the page asks for an earlier try. Returns the question, which has no answer yet."""
        held = []
        self.page.route("**/v1/uploads/web-*", lambda route: held.append(route))
        self.add()
        self.wait(lambda: held, "the page asks")
        self.page.keyboard.press("Escape")
        return held[0]

    def test_a_file_that_is_cancelled_while_the_page_asks_for_an_earlier_try_is_not_sent(self):
        dialog = self.open("a.mp4")
        self.lose_answer()
        question = self.cancel_while_the_page_asks()
        expect(dialog).to_have_count(0)
        question.continue_()
        expect(self.page.locator("#notice")).to_contain_text("Stopped. No file was added. a.mp4: Cancelled.")
        self.assertEqual(self.sent(), [])

    def test_a_file_of_which_nothing_is_known_is_not_added_twice_when_it_is_chosen_again(self):
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place, "a.mp4")
            path.write_bytes(b"x" * 10)
            dialog = self.open()
            dialog.get_by_label("Files").set_input_files(path)
            self.lose_answer()
            self.page.keyboard.press("Escape")
            self.daemon.receive(self.daemon.taken[0], 10)
            self.page.get_by_role("button", name="Add files…").click()
            dialog.get_by_label("Files").set_input_files(path)
            self.add()
            expect(dialog).to_have_count(0)
            self.assertEqual(self.daemon.total, 61)

    def test_a_connection_that_breaks_before_the_last_byte_adds_nothing_and_the_page_says_so(self):
        dialog = self.open("a.mp4")
        self.page.route("**/v1/bytes?*", lambda route: route.abort())
        self.add()
        expect(dialog.get_by_role("alert")).to_contain_text("a.mp4: The connection broke. The file was not added.")
        self.page.unroute("**/v1/bytes?*")
        self.add()
        expect(dialog).to_have_count(0)
        self.assertEqual(self.sent(), ["a.mp4"])
        self.assertTrue(self.page.locator("#notice").is_hidden(), "what the first try said is over")

    def test_what_was_missing_is_said_again_and_not_after_the_files_were_added(self):
        dialog = self.open()
        alert = dialog.get_by_role("alert")
        self.add()
        expect(alert).to_have_text("Choose a file.")
        # Screen readers speak the same text again only after it was away.
        alert.evaluate("""node => {
          window.texts = [];
          new MutationObserver(() => texts.push(node.textContent)).observe(node, { childList: true });
        }""")
        self.add()
        self.wait(lambda: len(self.page.evaluate("texts")) == 2, "the text is there again")
        self.assertEqual(self.page.evaluate("texts"), ["", "Choose a file."])
        self.choose("a.mp4")
        self.add()
        expect(dialog).to_have_count(0)
        self.assertEqual(self.sent(), ["a.mp4"])
        self.assertTrue(self.page.locator("#notice").is_hidden(), "what was missing is there")

    def test_closing_while_files_are_sent_says_what_was_added(self):
        dialog = self.open("a.mp4", "b.mp4")
        held = self.hold()
        self.add()
        self.wait(lambda: len(held) == 1, "the first file is on its way")
        held[0].continue_()
        self.wait(lambda: len(held) == 2, "the second file is on its way")
        self.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        notice = self.page.locator("#notice")
        expect(notice).to_contain_text("Stopped. Added: 1 file to nas.")
        expect(notice).to_contain_text("b.mp4: Cancelled.")
        self.assertEqual(self.sent(), ["a.mp4"])

    def test_back_leaves_files_that_are_sent_alone_and_closes_the_question_afterwards(self):
        page = self.sign_in("queue")
        self.go("now")
        page.get_by_role("button", name="Add files…").click()
        self.choose("a.mp4", "b.mp4", "c\x1b.mp4")
        dialog, items = self.dialog(), self.dialog().get_by_role("listitem")
        held = self.hold()
        self.add()
        self.wait(lambda: len(held) == 1, "the first file is on its way")
        page.go_back()
        expect(page.locator(".view-queue")).to_be_attached()
        held[0].continue_()
        expect(items.first).to_contain_text("added")
        for number in (1, 2):
            self.wait(lambda: len(held) == number + 1, "the next file is on its way")
            held[number].continue_()
        expect(items.nth(1)).to_contain_text("added")
        expect(dialog.get_by_role("alert")).to_contain_text("control character")
        self.assertEqual(self.sent(), ["a.mp4", "b.mp4"])
        page.go_forward()
        expect(page.locator(".view-now")).to_be_attached()
        expect(dialog).to_have_count(0)

    def test_another_role_closes_the_question_also_while_files_are_sent(self):
        dialog = self.open("a.mp4")
        held = self.hold()
        self.add()
        self.wait(lambda: held, "the file is on its way")
        self.page.evaluate("code => { location.hash = `#code=${code}`; }", self.daemon.sessions.code(role="view"))
        expect(dialog).to_have_count(0)
        expect(self.page.locator("#notice")).to_contain_text("Stopped. No file was added. a.mp4: Cancelled.")

    def test_stopping_names_each_file_that_the_daemon_may_have_also_after_a_refused_one(self):
        self.open("a.mp4", "b.mp4", "c.mp4")
        self.daemon.loses_answers = "early"
        self.page.route("**/v1/bytes?name=a*", lambda route: route.fulfill(
            status=507, json={"error": {"code": "no_room", "message": "not enough space"}}))
        asked, held = [], []

        def answer(route):
            asked.append(route.request.url)
            if len(set(asked)) == 2 and not held:
                held.append(route)
            else:
                route.continue_()

        self.page.route("**/v1/uploads/web-*", answer)
        self.add()
        self.wait(lambda: held, "the page asks for the last file")
        self.page.keyboard.press("Escape")
        held[0].continue_()
        notice = self.page.locator("#notice")
        expect(notice).to_contain_text("Stopped. a.mp4: not enough space. b.mp4: The connection broke. It is not known")
        expect(notice).to_contain_text("c.mp4: The connection broke. It is not known whether the file was added.")
        self.check_axe()

    def test_stopping_gives_the_number_of_files_for_whose_names_a_notice_has_no_room(self):
        self.change_asset(self.page, "api.js", "[0, 1000, 3000]", "[0]")
        self.open(*(f"{number}.mp4" for number in range(7)))
        self.daemon.loses_answers = "early"
        held = []
        self.page.route("**/v1/bytes?name=6*", lambda route: held.append(route))
        self.add()
        self.wait(lambda: held, "the last file is on its way")
        self.page.keyboard.press("Escape")
        notice = self.page.locator("#notice")
        expect(notice).to_contain_text("3.mp4: The connection broke.")
        expect(notice).not_to_contain_text("4.mp4")
        expect(notice).to_contain_text("Not known either: 2 more files.")

    def test_stopping_does_not_say_that_no_file_was_added_where_an_earlier_try_may_have(self):
        self.open("a.mp4")
        self.lose_answer()
        question = self.cancel_while_the_page_asks()
        question.fulfill(status=503, json={"error": {"code": "unavailable", "message": "the database is busy"}})
        notice = self.page.locator("#notice")
        expect(notice).to_contain_text("It is not known whether the last try added the file")
        expect(notice).not_to_contain_text("No file was added")

    def drop(self, *paths):
        """Drops files of the disk, as a file manager does."""
        network = self.page.context.new_cdp_session(self.page)
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        cover = self.page.get_by_text("Drop the files to add them")

        def is_over():
            network.send("Input.dispatchDragEvent", {"type": "dragOver", "x": 300, "y": 300, "data": data})
            return cover.is_visible()

        def is_dropped():
            network.send("Input.dispatchDragEvent", {"type": "dragEnter", "x": 300, "y": 300, "data": data})
            # A browser repeats it, and drops only where the page has said that it takes files.
            self.wait(is_over, "the page takes the files")
            self.wait(is_over, "it still does")
            network.send("Input.dispatchDragEvent", {"type": "drop", "x": 300, "y": 300, "data": data})
            # A busy browser may lose it: then it has told the page nothing after a second.
            return self.page.evaluate("""() => new Promise((resolve) => {
              setTimeout(() => resolve(window.isDropped), 1000);
              if (window.isDropped) resolve(true);
              addEventListener("drop", () => resolve(true), { capture: true, once: true });
            })""")

        self.page.evaluate("""() => {
          window.isDropped = false;
          addEventListener("drop", () => { window.isDropped = true; }, { capture: true, once: true });
        }""")
        self.wait(is_dropped, "the page gets the files")

    def test_a_name_with_a_blank_a_plus_and_marks_of_an_address_stays_as_it_is(self):
        name = "a b+c&d=e#f%20 \u00fc.mp4"
        dialog = self.open(name)
        self.add()
        expect(dialog).to_have_count(0)
        self.assertEqual(self.sent(), [name])

    def test_a_search_with_a_blank_and_a_plus_asks_for_these(self):
        asked = []
        self.page.on("request", lambda request: asked.append(request.url))
        self.sign_in("history?text=a%20b%2Bc")
        self.wait(lambda: any("text=a%20b%2Bc" in url for url in asked), "the search is sent as it is")

    def test_a_dropped_folder_is_named_and_not_sent_as_a_file(self):
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place, "holiday")
            folder.mkdir()
            single = pathlib.Path(place, "one.mp4")
            single.write_bytes(b"x" * 10)
            self.sign_in()
            self.drop(folder)
            expect(self.page.locator("#notice")).to_contain_text("Folders cannot be added here: holiday.")
            expect(self.dialog()).to_have_count(0)
            self.drop(folder, single)
            expect(self.dialog()).to_contain_text("Folders cannot be added here: holiday.")
            expect(self.dialog().get_by_role("listitem")).to_have_count(1)
            self.check_axe()
            self.add()
            expect(self.dialog()).to_have_count(0)
            self.assertEqual(self.sent(), ["one.mp4"])


if __name__ == "__main__":
    unittest.main()
