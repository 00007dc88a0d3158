"""Every control: what it asks the daemon for, what it asks the person first, and where its result is shown."""

import unittest
import urllib.parse

from playwright.sync_api import expect

import fake_views
from page_server import Refused
from support import PageTest


class ControlTest(PageTest):
    def row(self, name):
        return self.page.locator(".row", has=self.page.get_by_role("link", name=name)).first

    def waiting(self, kind):
        """The newest upload with such a hold."""
        for number in range(self.daemon.total - 1, -1, -1):
            upload = self.daemon.upload(fake_views.identifier(number))
            if any(hold["kind"] == kind for hold in upload["holds"]):
                return upload
        return self.fail(kind)

    def open(self, upload, view="queue"):
        self.go(f"{view}?upload={upload['id']}")
        drawer = self.page.locator("dialog.drawer")
        expect(drawer.get_by_role("heading", name="File", exact=True)).to_be_visible()
        return drawer

    def ended(self, name):
        return next(each for each in self.daemon.ended.values() if each["list"] == name)

    def dialog(self):
        return self.page.locator("dialog.question")

    def expect_said(self, text):
        expect(self.page.locator("#announcements")).to_contain_text(text)

    def test_pause_and_resume_one_upload_in_its_row(self):
        page = self.sign_in("queue")
        row = page.locator(".row").nth(4)
        identifier = page.locator(".row a").nth(4).get_attribute("href").split("upload=")[1]
        row.get_by_role("button", name="Pause").click()
        self.assertEqual(self.last_command("/v1/pause"), {"ids": [identifier]})
        expect(row.locator(".result")).to_contain_text("Paused: 1 upload.")
        self.expect_said("Paused: 1 upload.")
        row.get_by_role("button", name="Resume").click()
        self.assertEqual(self.last_command("/v1/resume"), {"ids": [identifier]})

    def test_pause_everything_for_a_while_after_parts(self):
        page = self.sign_in()
        page.get_by_role("button", name="Pause…", exact=True).first.click()
        self.dialog().get_by_label("How long").select_option("7200")
        self.dialog().get_by_label("Let parts in flight arrive first").check()
        self.dialog().get_by_role("button", name="Pause").click()
        self.assertEqual(self.last_command("/v1/pause"), {"all": True, "after_part": True, "duration": 7200})
        expect(page.get_by_text("Everything is paused")).to_be_visible()
        page.get_by_role("button", name="Resume everything").click()
        self.assertEqual(self.last_command("/v1/resume"), {"all": True})
        self.expect_said("Everything is resumed.")
        expect(page.get_by_text("Everything is paused")).to_be_hidden()

    def test_pause_and_resume_a_destination_and_a_folder_on_their_cards(self):
        page = self.sign_in()
        for scope, words, name in (("destination", "to", "cloud"), ("folder", "of folder", "<b>yard</b>")):
            page.get_by_role("button", name=f"Pause {scope} {name}").click()
            self.dialog().get_by_role("button", name="Pause").click()
            self.assertEqual(self.last_command("/v1/pause"), {scope: name, "after_part": False})
            page.get_by_role("button", name=f"Resume {scope} {name}").click()
            self.expect_said(f"Resumed: uploads {words} {name}.")
            self.assertEqual(self.last_command("/v1/resume"), {scope: name})

    def test_retry_a_failed_upload(self):
        page = self.sign_in("history?list=failed")
        failed = self.ended("failed")
        drawer = self.open(failed, "history")
        drawer.get_by_role("button", name="Retry").click()
        self.assertEqual(self.last_command("/v1/retry"), {"ids": [failed["id"]]})
        expect(drawer).to_contain_text("Begun again: 1 upload.")
        page.keyboard.press("Escape")
        expect(drawer).to_have_count(0)

    def test_retry_all_failed_names_their_number_first(self):
        page = self.sign_in("history?list=failed")
        page.get_by_role("button", name="Retry failed…").click()
        expect(self.dialog()).to_contain_text("Retries 20 failed uploads of all folders.")
        self.dialog().get_by_role("button", name="Retry them").click()
        self.assertEqual(self.last_command("/v1/retry"), {"all": True})

    def test_what_a_command_refused_stays_to_be_read_after_its_dialog(self):
        page = self.sign_in("history?list=failed")
        page.route("**/v1/retry", lambda route: route.fulfill(status=202, json={
            "uploads": [], "count": 18, "refused": 2, "refusal": "neither source nor copy is left"}))
        page.get_by_role("button", name="Retry failed…").click()
        self.dialog().get_by_role("button", name="Retry them").click()
        expect(self.dialog()).to_have_count(0)
        expect(page.locator("#notice")).to_contain_text("2 uploads refused: neither source nor copy is left")
        self.check_axe()
        page.locator("#notice").get_by_role("button", name="Close").click()
        expect(page.locator("#notice")).to_be_hidden()

    def test_try_now_an_upload_that_waits_for_its_destination(self):
        self.sign_in("queue")
        upload = self.waiting("destination")
        self.open(upload).get_by_role("button", name="Try now").click()
        self.assertEqual(self.last_command("/v1/resume"), {"ids": [upload["id"]]})

    def test_cancel_asks_with_number_and_name(self):
        self.sign_in("queue")
        upload = self.waiting("quota")
        drawer = self.open(upload)
        drawer.get_by_role("button", name="Cancel…").click()
        expect(self.dialog()).to_contain_text("Cancel 1 upload?")
        self.dialog().get_by_role("button", name="Keep").click()
        self.assertEqual(self.daemon.commands, [])
        drawer.get_by_role("button", name="Cancel…").click()
        self.dialog().get_by_role("button", name="Cancel 1 upload").click()
        self.assertEqual(self.last_command("/v1/cancel"), {"ids": [upload["id"]]})
        expect(drawer.locator(".drawer-state")).to_contain_text("Cancelled")

    def test_cancel_of_a_scope_counts_before_it_asks(self):
        page = self.sign_in("queue")
        page.get_by_role("button", name="Cancel uploads…").click()
        expect(self.dialog()).to_contain_text("Cancels 60 ongoing uploads of all folders.")
        self.dialog().get_by_label("What").select_option("folder:garden")
        expect(self.dialog()).to_contain_text("Cancels 15 ongoing uploads of folder garden.")
        self.dialog().get_by_label("What").select_option("destination:nas")
        expect(self.dialog()).to_contain_text("ongoing uploads to nas.")
        self.dialog().get_by_role("button", name="Cancel them").click()
        self.assertEqual(self.last_command("/v1/cancel"), {"destination": "nas"})

    def test_pause_and_exceptions_of_a_scope_name_their_number_too(self):
        page = self.sign_in()
        page.get_by_role("button", name="Pause folder garden").click()
        expect(self.dialog()).to_contain_text("Holds 15 ongoing uploads of folder garden.")
        self.dialog().get_by_label("What").select_option("all")
        expect(self.dialog()).to_contain_text("Holds 60 ongoing uploads of all folders.")
        self.dialog().get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Allow folder workshop").click()
        expect(self.dialog()).to_contain_text("The folder has 15 ongoing uploads.")

    def test_each_number_is_the_daemons_for_the_selection_that_is_sent(self):
        page = self.sign_in("history?list=failed&folder=garden")
        asked = []
        page.on("request", lambda request: asked.append(request.url) if "limit=1" in request.url.split("&") else None)
        failed = [each for each in self.daemon.ended.values() if each["list"] == "failed" and each["folder"] == "garden"]
        page.get_by_role("button", name="Retry failed…").click()
        expect(self.dialog()).to_contain_text(f"Retries {len(failed)} failed uploads of folder garden.")
        self.assertEqual(len(asked), 1)
        self.assertRegex(asked[0], r"folder=garden&list=failed")
        self.dialog().get_by_role("button", name="Retry them").click()
        self.assertEqual(self.last_command("/v1/retry"), {"folder": "garden"})

    def test_without_an_answer_the_number_is_said_to_be_unknown(self):
        page = self.sign_in("queue")
        page.route("**/v1/uploads?*limit=1", lambda route: route.fulfill(status=503, json={
            "error": {"code": "unavailable", "message": "the database is busy"}}))
        page.get_by_role("button", name="Cancel uploads…").click()
        expect(self.dialog()).to_contain_text("Cancels an unknown number of ongoing uploads of all folders.")

    def test_a_scope_that_the_configuration_has_no_more_keeps_its_name(self):
        page = self.sign_in("queue?folder=gone")
        page.get_by_role("button", name="Cancel uploads…").click()
        expect(self.dialog()).to_contain_text("Cancels 0 ongoing uploads of folder gone.")
        self.dialog().get_by_role("button", name="Cancel them").click()
        self.assertEqual(self.last_command("/v1/cancel"), {"folder": "gone"})
        self.daemon.receive({"name": "by-hand.mp4"}, 10)
        self.go("queue?folder=-")
        page.get_by_role("button", name="Pause…", exact=True).click()
        expect(self.dialog()).to_contain_text("Holds 1 ongoing upload added by hand.")
        self.dialog().get_by_role("button", name="Pause").click()
        self.assertEqual(self.last_command("/v1/pause"), {"folder": "-", "after_part": False})

    def test_a_folder_and_a_destination_together_are_a_scope(self):
        page = self.sign_in("queue?folder=garden&destination=archive")
        page.get_by_role("button", name="Cancel uploads…").click()
        expect(self.dialog()).to_contain_text("Cancels 15 ongoing uploads of folder garden to archive.")
        self.dialog().get_by_role("button", name="Cancel them").click()
        self.assertEqual(self.last_command("/v1/cancel"), {"folder": "garden", "destination": "archive"})
        page.get_by_role("button", name="Pause…", exact=True).click()
        expect(self.dialog()).to_contain_text("not for one to the other")
        expect(self.dialog()).to_contain_text("Holds 15 ongoing uploads of folder garden.")
        self.dialog().get_by_role("button", name="Cancel").click()
        both = {"folder": "garden", "destination": "archive"}
        failed = [each for each in self.daemon.ended.values()
                  if each["list"] == "failed" and all(each[key] == both[key] for key in both)]
        self.go("history?list=failed&folder=garden&destination=archive")
        page.get_by_role("button", name="Clear list…").click()
        expect(self.dialog()).to_contain_text(
            f"Takes all {len(failed)} failed uploads of folder garden to archive off the list.")
        self.dialog().get_by_role("button", name="Clear").click()
        self.assertEqual(self.last_command("/v1/flush"), {"list": "failed"} | both)

    def test_dates_of_the_history_are_asked_for_as_days_of_the_viewer(self):
        page = self.sign_in("history")
        with page.expect_request(lambda request: "since=" in request.url and "until=" in request.url) as asked:
            page.get_by_label("Added from").fill("2026-11-01")
            page.get_by_label("Added before").fill("2026-11-08")
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(asked.value.url).query)
        self.assertEqual((query["since"], query["until"]), (["2026-10-31T23:00:00.000Z"], ["2026-11-07T23:00:00.000Z"]))
        page.wait_for_url("**/#/history?since=2026-11-01&until=2026-11-08")

    def test_choose_none_takes_every_choice_back(self):
        page = self.sign_in("queue")
        for place in (3, 4):
            page.locator(".row input").nth(place).check()
        bar = page.get_by_role("group", name="Chosen uploads")
        bar.get_by_role("button", name="Choose none").click()
        expect(bar).to_be_hidden()
        expect(page.locator(".row input:checked")).to_have_count(0)
        expect(page.get_by_label("Search")).to_be_focused()

    def test_the_exceptions_of_a_folder_are_ended_in_the_question(self):
        page = self.sign_in()
        page.get_by_role("button", name="Allow folder workshop").click()
        self.dialog().get_by_role("button", name="Allow").click()
        expect(page.get_by_text("Exception from quota for folder workshop")).to_be_visible()
        page.get_by_role("button", name="Allow folder workshop").click()
        self.dialog().get_by_label("How long").select_option("end the exceptions now")
        self.dialog().get_by_role("button", name="Allow").click()
        self.assertEqual(self.last_command("/v1/allow"), {"folder": "workshop", "kinds": ["quota"], "duration": 0})
        expect(page.get_by_text("Exception from quota for folder workshop")).to_have_count(0)

    def test_the_plan_is_made_again_on_demand(self):
        page = self.sign_in("plan")
        with page.expect_response("**/v1/plan?*"):
            page.get_by_role("button", name="Plan again").click()

    def test_usage_is_grouped_and_as_long_as_wanted(self):
        page = self.sign_in("usage")
        page.get_by_role("combobox", name="By").select_option("destination")
        expect(page.locator(".legend").first).to_contain_text("archive")
        with page.expect_response(lambda answer: "days=7&" in answer.url):
            page.get_by_label("Days").select_option("7")
        page.wait_for_url("**/#/usage?by=destination&days=7")
        expect(page.get_by_role("region", name="By day: table").locator("tbody tr")).to_have_count(7)

    def test_remove_a_completed_upload_in_its_row(self):
        page = self.sign_in("history")
        page.locator(".row").first.get_by_role("button", name="Remove").click()
        expect(self.dialog()).to_contain_text("Remove 1 upload?")
        self.dialog().get_by_role("button", name="Remove 1 upload").click()
        self.assertEqual(len(self.last_command("/v1/remove")["ids"]), 1)

    def test_flush_names_list_and_number(self):
        page = self.sign_in("history?list=cancelled")
        page.get_by_role("button", name="Clear list…").click()
        expect(self.dialog()).to_contain_text("Takes all 40 cancelled uploads of all folders off the list.")
        self.dialog().get_by_role("button", name="Clear 40 cancelled uploads").click()
        self.assertEqual(self.last_command("/v1/flush"), {"list": "cancelled"})
        expect(page.get_by_text("Nothing was cancelled lately.")).to_be_visible()

    def test_priority_of_one_upload(self):
        self.sign_in("queue")
        upload = self.waiting("quota")
        drawer = self.open(upload)
        drawer.get_by_role("button", name="Priority…").click()
        self.dialog().get_by_label("Priority").fill("50")
        self.dialog().get_by_role("button", name="Set priority").click()
        self.assertEqual(self.last_command("/v1/priority"), {"ids": [upload["id"]], "priority": 50})
        expect(drawer.locator("dl div", has_text="Priority")).to_contain_text("50")

    def test_allow_for_an_upload_and_for_a_folder(self):
        page = self.sign_in("queue")
        upload = self.waiting("rule")
        drawer = self.open(upload)
        drawer.get_by_role("button", name="Allow…").click()
        expect(self.dialog().get_by_label("Windows")).to_be_checked()
        self.dialog().get_by_role("button", name="Allow").click()
        self.assertEqual(self.last_command("/v1/allow"), {"ids": [upload["id"]], "kinds": ["window"], "duration": 3600})
        page.keyboard.press("Escape")
        self.go("now")
        page.get_by_role("button", name="Allow folder workshop").click()
        expect(self.dialog().get_by_label("Quotas")).to_be_checked()
        self.dialog().get_by_label("How long").select_option("900")
        self.dialog().get_by_role("button", name="Allow").click()
        self.assertEqual(self.last_command("/v1/allow"), {"folder": "workshop", "kinds": ["quota"], "duration": 900})
        expect(page.get_by_text("Exception from quota for folder workshop")).to_be_visible()
        page.get_by_role("button", name="End the exception of folder workshop").click()
        self.assertEqual(self.last_command("/v1/allow"), {"folder": "workshop", "kinds": ["quota"], "duration": 0})
        expect(page.get_by_text("Exception from quota for folder workshop")).to_have_count(0)

    def test_limit_of_the_rate(self):
        page = self.sign_in()
        page.get_by_role("button", name="Limit rate…").click()
        self.dialog().get_by_label("MB a second").fill("1.5")
        self.dialog().get_by_role("button", name="Set limit").click()
        self.assertEqual(self.last_command("/v1/limit"), {"rate": 1_500_000, "duration": 3600})

    def test_commands_for_chosen_uploads_are_those_that_each_of_them_takes(self):
        page = self.sign_in("queue")
        for place in (3, 4, 6):
            page.locator(".row input").nth(place).check()
        bar = page.get_by_role("group", name="Chosen uploads")
        expect(bar).to_contain_text("3 chosen")
        expect(bar.get_by_role("button", name="Retry")).to_have_count(0)
        bar.get_by_role("button", name="Cancel…").click()
        expect(self.dialog().get_by_role("listitem")).to_have_count(3)
        self.dialog().get_by_role("button", name="Cancel 3 uploads").click()
        self.assertEqual(len(self.last_command("/v1/cancel")["ids"]), 3)
        expect(bar).to_be_hidden()

    def test_check_shows_each_finding_and_the_steps_of_a_destination(self):
        page = self.sign_in("check")
        page.get_by_role("button", name="Run check").click()
        expect(page.get_by_text("Something failed. The list says what.").first).to_be_visible()
        expect(page.locator(".steps li")).to_have_count(4)
        page.get_by_label("What").select_option("destination:nas")
        page.get_by_role("button", name="Run check").click()
        expect(page.locator(".findings .card")).to_have_count(1)
        self.assertEqual(self.last_command("/v1/check"), {"destination": "nas"})

    def test_reload_of_the_configuration_lists_the_changes_or_the_mistakes(self):
        page = self.sign_in("check")
        page.get_by_role("button", name="Reload configuration").click()
        expect(page.get_by_text("destination nas changed (token)")).to_be_visible()
        page.route("**/v1/reload", lambda route: route.fulfill(status=422, json={
            "applied": False, "changes": [], "warnings": [],
            "errors": [{"place": "sluice.yaml:7:3", "key": "folders", "text": "no key `pth`; did you mean `path`?"}]}))
        page.get_by_role("button", name="Reload configuration").click()
        expect(page.locator(".result.bad")).to_contain_text("sluice.yaml:7:3: no key `pth`")

    def test_rescan_of_the_folders(self):
        page = self.sign_in()
        page.get_by_role("button", name="Rescan folders").click()
        self.assertEqual(self.last_command("/v1/rescan"), {})

    def test_a_chosen_file_is_sent_to_a_destination(self):
        page = self.sign_in()
        page.get_by_role("button", name="Add files…").click()
        self.dialog().get_by_label("Files").set_input_files(
            [{"name": "a b.mp4", "mimeType": "video/mp4", "buffer": b"x" * 5000}])
        self.dialog().get_by_label("To").select_option("archive")
        self.dialog().get_by_role("button", name="Add").click()
        body = self.last_command("/v1/bytes")
        self.assertRegex(body.pop("key"), r"^web-[0-9a-f]{32}$")
        self.assertEqual(body, {"name": "a b.mp4", "to": "archive", "once": "true", "size": 5000})
        expect(self.dialog()).to_have_count(0)
        self.expect_said("Added: 1 file to archive.")

    def test_a_dropped_file_asks_where_it_goes(self):
        page = self.sign_in("queue")
        data = page.evaluate_handle("""() => {
          const data = new DataTransfer();
          data.items.add(new File(['hello'], 'dropped.mp4', { type: 'video/mp4' }));
          return data;
        }""")
        page.dispatch_event("main", "dragover", {"dataTransfer": data})
        expect(page.get_by_text("Drop the files to add them")).to_be_visible()
        page.dispatch_event("main", "drop", {"dataTransfer": data})
        expect(self.dialog()).to_contain_text("dropped.mp4")
        self.dialog().get_by_role("button", name="Add", exact=True).click()
        self.assertEqual(self.last_command("/v1/bytes")["name"], "dropped.mp4")

    def test_a_refused_command_is_shown_where_it_was_given_and_spoken(self):
        self.daemon.refusals["/v1/pause"] = Refused(409, "conflict", "it is over: <b>completed</b>")
        page = self.sign_in("queue")
        row = page.locator(".row").nth(4)
        row.get_by_role("button", name="Pause").click()
        expect(row.locator(".result")).to_have_text("it is over: <b>completed</b>")
        self.expect_said("Not done: it is over: <b>completed</b>")

    def test_a_refused_question_stays_open_with_the_reason(self):
        self.daemon.refusals["/v1/priority"] = Refused(404, "not_found", "there is no /v1/priority")
        self.sign_in("queue")
        self.open(self.waiting("quota")).get_by_role("button", name="Priority…").click()
        self.dialog().get_by_role("button", name="Set priority").click()
        expect(self.dialog().get_by_role("alert")).to_contain_text("there is no /v1/priority")

    def test_search_folder_destination_and_state_are_in_the_address(self):
        page = self.sign_in("queue")
        page.get_by_label("Search").fill("besuch")
        page.get_by_label("Folder").select_option("garden")
        page.get_by_label("State").select_option("waiting")
        page.wait_for_url("**/#/queue?text=besuch&folder=garden&state=waiting")
        expect(page.locator(".row").first).to_contain_text("Besuch")
        page.reload()
        expect(page.get_by_label("Search")).to_have_value("besuch")
        page.get_by_label("Search").fill("nothing has this name")
        expect(page.get_by_text("No upload matches these filters.")).to_be_visible()
        page.get_by_role("link", name="Show all").click()
        expect(page.locator(".row").first).to_be_visible()

    def test_the_theme_is_chosen_by_hand_and_kept(self):
        page = self.sign_in()
        page.get_by_role("button", name="Theme: auto").click()
        page.get_by_role("button", name="Theme: light").click()
        self.assertEqual(page.evaluate("document.documentElement.dataset.theme"), "dark")
        page.reload()
        expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()


if __name__ == "__main__":
    unittest.main()
