"""What the page does after a while, with a clock that the tests move, and with a clock that is not the daemon's."""

import datetime
import unittest
import urllib.parse

from playwright.sync_api import expect

from page_server import Refused
from support import PageTest, hide


class TimerTest(PageTest):
    def setUp(self):
        super().setUp()
        self.page.clock.install()
        self.asked = []
        self.page.on("request", lambda request: self.asked.append(request.url))

    def count(self, path):
        return sum(1 for url in self.asked if path in url)

    def test_a_page_that_found_the_daemon_does_not_ask_for_its_session_again(self):
        page = self.sign_in()
        page.route("**/v1/session", lambda route: route.abort())
        page.reload()
        expect(page.get_by_role("heading", name="The daemon does not answer")).to_be_visible()
        page.unroute("**/v1/session")
        page.get_by_role("button", name="Try now").click()
        expect(page.get_by_role("heading", name="Now", exact=True)).to_be_visible()
        asked = self.count("v1/session")
        with page.expect_response("**/v1/status"):
            page.clock.run_for(20_000)
        self.assertEqual(self.count("v1/session"), asked)

    def test_the_ways_are_read_again_once_in_a_while(self):
        page = self.sign_in()
        expect(page.get_by_text("unmetered: eth0 is wired")).to_be_visible()
        asked = self.count("v1/routes")
        with page.expect_response("**/v1/status"):
            page.clock.run_for(6_000)
        self.assertEqual(self.count("v1/routes"), asked)
        with page.expect_response("**/v1/routes"):
            page.clock.fast_forward(61_000)

    def test_a_picture_that_the_daemon_could_not_make_at_the_time_is_asked_for_again(self):
        make, refused, made = self.daemon.thumbnail, [], []

        def refuse(reference):
            refused.append(reference)
            raise Refused(503, "unavailable", "a hold `busy` keeps the processor free")

        def answer(reference):
            made.append(reference)
            return make(reference)
        self.daemon.thumbnail = refuse
        # A stream would be lost as the clock is moved, and the page reads everything again after that.
        self.page.route("**/v1/events?*", lambda route: route.abort())
        page = self.sign_in("queue")
        self.wait(lambda: len(refused) > 4, "some pictures are refused")
        self.daemon.thumbnail = answer

        def are_asked_for_later():
            page.clock.fast_forward(31_000)
            return set(refused[:4]) <= set(made)
        self.wait(are_asked_for_later, "the refused ones are asked for again")
        expect(page.locator(".row .thumbnail.loaded canvas").first).to_be_visible()

    def test_a_hidden_tab_asks_for_no_picture_and_asks_again_when_it_is_seen(self):
        make, refused, made = self.daemon.thumbnail, [], []

        def refuse(reference):
            refused.append(reference)
            raise Refused(503, "unavailable", "a hold `busy` keeps the processor free")

        def answer(reference):
            made.append(reference)
            return make(reference)
        self.daemon.thumbnail = refuse
        self.page.route("**/v1/events?*", lambda route: route.abort())
        page = self.sign_in("queue")
        # Those that are loading when the tab is hidden end.
        self.wait(lambda: len(refused) > 4, "some pictures are refused")
        with page.expect_response(lambda answer: refused[-1] in answer.url):
            hide(page, True)
            page.evaluate("id => fetch(`v1/thumbnails/${id}`)", refused[-1])
        asked = self.count("v1/thumbnails")
        page.clock.fast_forward(31_000)
        page.clock.fast_forward(31_000)
        page.evaluate("() => fetch('v1/session')")
        self.assertEqual(self.count("v1/thumbnails"), asked)
        self.daemon.thumbnail = answer
        hide(page, False)
        self.wait(lambda: set(refused[:4]) <= set(made), "the refused ones are asked for again")

    def test_a_hidden_tab_does_not_ask_whether_the_daemon_answers_by_now(self):
        page = self.sign_in()
        page.route("**/v1/session", lambda route: route.abort())
        page.reload()
        expect(page.get_by_role("heading", name="The daemon does not answer")).to_be_visible()
        hide(page, True)
        asked = self.count("v1/session")
        page.clock.run_for(20_000)
        self.assertEqual(self.count("v1/session"), asked)
        page.unroute("**/v1/session")
        hide(page, False)
        page.clock.run_for(6_000)
        expect(page.get_by_role("heading", name="Now", exact=True)).to_be_visible()

    def test_a_file_without_a_picture_is_asked_for_again_only_after_missed_events(self):
        make, refused, made = self.daemon.thumbnail, [], []

        def refuse(reference):
            refused.append(reference)

        def answer(reference):
            made.append(reference)
            return make(reference)
        self.daemon.thumbnail = refuse
        # A stream would be lost as the clock is moved, and the page reads everything again after that.
        self.page.route("**/v1/events?*", lambda route: route.abort())
        page = self.sign_in("queue")
        self.wait(lambda: len(refused) > 4, "some pictures are refused")
        # The browser tells the statuses of answers a little later.
        page.evaluate("""given => new Promise(resolve => {
          const addresses = new Set(given);
          new PerformanceObserver(list => {
            for (const each of list.getEntries()) if (each.responseStatus === 404) addresses.delete(each.name);
            if (!addresses.size) resolve();
          }).observe({ type: "resource", buffered: true });
        })""", [f"{self.daemon.url}v1/thumbnails/{reference}" for reference in refused[:4]])
        self.daemon.thumbnail = answer
        asked = [self.count(f"v1/thumbnails/{reference}") for reference in refused[:4]]
        page.clock.fast_forward(120_000)
        page.evaluate("() => new Promise(requestAnimationFrame)")
        self.assertEqual([self.count(f"v1/thumbnails/{reference}") for reference in refused[:4]], asked)
        page.unroute("**/v1/events?*")
        page.locator("#connection").get_by_role("button", name="Try now").click()
        self.wait(lambda: set(refused[:4]) <= set(made), "the refused ones are asked for again")
        expect(page.locator(".row .thumbnail.loaded canvas").first).to_be_visible()


class ClockTest(PageTest):
    def test_the_plan_has_48_hours_of_the_daemon_whatever_the_clock_here_says(self):
        for days in (-3, 0, 3):
            with self.subTest(days=days):
                self.daemon.clock = days * 86400
                page = self.open_page(self.open_context())
                self.sign_in(page=page)
                asked = []
                page.on("request", lambda request: asked.append(request.url) if "v1/plan" in request.url else None)
                self.go("plan", page)
                expect(page.get_by_role("region", name="Timeline")).to_be_visible()
                until = urllib.parse.parse_qs(urllib.parse.urlsplit(asked[-1]).query)["until"][0]
                there = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days, hours=48)
                self.assertLess(abs((datetime.datetime.fromisoformat(until) - there).total_seconds()), 900)
                page.context.close()

    def test_today_is_the_day_of_the_daemon(self):
        hour = datetime.datetime.now(datetime.timezone.utc).hour
        zone = "Pacific/Kiritimati" if hour >= 10 else "Pacific/Pago_Pago"
        page = self.open_page(self.open_context(timezone_id=zone))
        self.sign_in("usage", page)
        rows = page.get_by_role("region", name="By day: table").locator("tbody th")
        expect(rows.first).to_have_text("today")
        expect(rows.get_by_text("today")).to_have_count(1)

    def test_a_name_has_one_colour_in_all_charts(self):
        page = self.sign_in()

        def without_nas(route):
            answer = route.fetch().json()
            for period in answer.get("minutes", []):
                period["parts"] = [part for part in period["parts"] if part["name"] != "nas"]
            route.fulfill(json=answer)
        page.route("**/v1/usage?*", without_nas)
        self.go("usage?by=destination")
        charts = page.locator(".legend")
        expect(charts).to_have_count(3)
        found = page.evaluate("""() => [...document.querySelectorAll(".legend")].map(legend =>
          Object.fromEntries([...legend.querySelectorAll("li")].map(entry =>
            [entry.textContent, entry.querySelector("rect").getAttribute("class")])))""")
        self.assertEqual(set(found[0]), {"archive", "cloud"})
        for name in found[0]:
            self.assertEqual({chart[name] for chart in found}, {found[0][name]})
        drawn = page.evaluate("""() => [...document.querySelectorAll(".chart-frame svg")].map(chart =>
          [...new Set([...chart.querySelectorAll("rect.series")].map(bar => bar.getAttribute("class")))].sort())""")
        self.assertEqual([set(each) for each in drawn], [set(each.values()) for each in found])


if __name__ == "__main__":
    unittest.main()
