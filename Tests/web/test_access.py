"""Access for everybody: axe in each view, the keyboard alone, narrow windows, less motion."""

import unittest

from playwright.sync_api import expect

from support import VIEWS, PageTest

# Rows are used again for other uploads: there, the upload and the place in its row name a control.
KEY = """const keyOf = node => {
  const row = node.closest('.row');
  if (!row) return node.dataset.probe ||= String(Math.random());
  return `${row.querySelector('a').hash} ${[...row.querySelectorAll('a, button, input')].indexOf(node)}`;
};"""
NAMED = f"""() => {{
  {KEY}
  const node = document.activeElement;
  if (!node || node === document.body) return null;
  const label = node.getAttribute('aria-label') || node.labels?.[0]?.textContent || node.textContent || node.title;
  const box = node.getBoundingClientRect();
  return {{ tag: node.tagName, name: (label || '').trim(), key: keyOf(node), isVisible: box.width > 0 && box.height > 0,
    isMarked: getComputedStyle(node).outlineStyle !== 'none' || node.type === 'date' }};
}}"""
FOCUSABLE = f"""() => {{
  {KEY}
  return [...document.querySelectorAll('a[href], button:not(:disabled), input, select, [tabindex="0"]')]
    .filter(node => node.checkVisibility()).map(keyOf);
}}"""


class AxeTest(PageTest):
    def check_views(self, scheme):
        page = self.open_page(self.open_context(color_scheme=scheme, reduced_motion="reduce"))
        self.sign_in(page=page)
        for view in VIEWS:
            with self.subTest(view=view, scheme=scheme):
                self.go(view, page)
                self.check_axe(page)
        with self.subTest(view="check with findings", scheme=scheme):
            page.get_by_role("button", name="Run check").click()
            expect(page.locator(".steps li").first).to_be_visible()
            self.check_axe(page)
        for view in ("queue", "history?list=failed"):
            with self.subTest(view=f"drawer of {view}", scheme=scheme):
                self.go(view, page)
                page.locator(".row a").first.click()
                expect(page.get_by_role("heading", name="File", exact=True)).to_be_visible()
                self.check_axe(page)
                page.keyboard.press("Escape")
                expect(page.locator("dialog.drawer")).to_have_count(0)
        for name in ("Pause…", "Limit rate…", "Add files…", "Allow folder garden"):
            with self.subTest(dialog=name, scheme=scheme):
                self.go("now", page)
                page.get_by_role("button", name=name, exact=True).first.click()
                self.check_axe(page)
                page.keyboard.press("Escape")

    def test_axe_finds_nothing_in_light(self):
        self.check_views("light")

    def test_axe_finds_nothing_in_dark(self):
        self.check_views("dark")

    def test_axe_finds_nothing_in_a_narrow_window(self):
        page = self.open_page(self.open_context(viewport={"width": 360, "height": 740}))
        self.sign_in(page=page)
        for view in VIEWS:
            with self.subTest(view=view):
                self.go(view, page)
                self.check_axe(page)

    def test_axe_finds_nothing_where_there_is_no_view_and_with_a_refused_file(self):
        for scheme in ("light", "dark"):
            page = self.open_page(self.open_context(color_scheme=scheme))
            self.sign_in(page=page)
            page.get_by_role("button", name="Add files…").click()
            page.locator("dialog").get_by_label("Files").set_input_files(
                [{"name": "a\x1b.mp4", "mimeType": "video/mp4", "buffer": b"x"}])
            page.locator("dialog").get_by_role("button", name="Add", exact=True).click()
            expect(page.get_by_role("alert")).to_contain_text("control character")
            self.check_axe(page)
            page.keyboard.press("Escape")
            page.evaluate("location.hash = '#/nonsense'")
            expect(page.get_by_role("heading", name="No such view")).to_be_visible()
            self.check_axe(page)

    def test_axe_finds_nothing_when_signing_in_and_when_the_daemon_is_lost(self):
        for scheme in ("light", "dark"):
            page = self.open_page(self.open_context(color_scheme=scheme))
            page.goto(self.daemon.url)
            expect(page.get_by_label("Token")).to_be_visible()
            self.check_axe(page)
            self.sign_in("queue", page)
            page.locator(".row input").nth(3).check()
            self.wait(lambda: self.daemon.subscribers, "the stream is open")
            self.daemon.stop()
            expect(page.locator("#connection")).to_be_visible()
            self.check_axe(page)
            self.daemon.restart()


class KeyboardTest(PageTest):
    uploads = 12

    def walk(self, limit=400):
        """Presses Tab until the focus is where it began, and gives what it met."""
        met = {}
        last = None
        for _ in range(limit):
            self.page.keyboard.press("Tab")
            found = self.page.evaluate(NAMED)
            if not found:
                continue
            # A date has several fields, and is one control.
            if found["key"] in met and found["key"] != last:
                return met
            last = found["key"]
            met[found["key"]] = found
        return self.fail("the focus does not come back")

    def test_every_control_of_every_view_is_reached_named_and_marked_by_tab_alone(self):
        page = self.sign_in()
        for view in VIEWS:
            with self.subTest(view=view):
                self.go(view)
                wanted = set(page.evaluate(FOCUSABLE))
                met = self.walk()
                self.assertEqual(wanted - set(met), set())
                for each in met.values():
                    self.assertTrue(each["name"], each)
                    self.assertTrue(each["isVisible"] and each["isMarked"], each)

    def test_an_upload_is_opened_commanded_and_closed_by_keys_and_the_focus_returns(self):
        page = self.sign_in("queue")
        link = page.locator(".row a").nth(5)
        link.focus()
        name = link.inner_text()
        page.keyboard.press("Enter")
        expect(page.locator("dialog.drawer h2")).to_be_focused()
        expect(page.get_by_role("heading", name="File", exact=True)).to_be_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        expect(page.locator("dialog.drawer").get_by_role("button", name="Pause")).to_be_focused()
        page.keyboard.press("Enter")
        self.last_command("/v1/pause")
        expect(page.locator("dialog.drawer").get_by_role("button", name="Resume")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator(".row a:focus")).to_have_text(name)

    def check_overlay(self, root):
        """Every control in `root` is reached by Tab alone, has a name and shows the focus."""
        wanted = set(self.page.evaluate(FOCUSABLE.replace("document.querySelectorAll", f"{root}.querySelectorAll")))
        self.assertTrue(wanted)
        met = self.walk()
        self.assertEqual(wanted - set(met), set())
        for key in wanted:
            self.assertTrue(met[key]["name"], met[key])
            self.assertTrue(met[key]["isVisible"] and met[key]["isMarked"], met[key])

    def test_every_control_of_the_drawer_is_reached_by_tab_alone(self):
        page = self.sign_in("history?list=failed")
        page.locator(".row a").first.press("Enter")
        expect(page.get_by_role("heading", name="File", exact=True)).to_be_visible()
        self.check_overlay("document.querySelector('dialog.drawer')")

    def test_every_control_of_each_question_is_reached_by_tab_alone(self):
        page = self.sign_in()
        for name in ("Pause…", "Limit rate…", "Add files…", "Allow folder garden"):
            with self.subTest(question=name):
                page.get_by_role("button", name=name, exact=True).first.press("Enter")
                expect(page.locator("dialog.question")).to_be_visible()
                self.check_overlay("document.querySelector('dialog.question')")
                page.keyboard.press("Escape")
                expect(page.locator("dialog.question")).to_have_count(0)
                expect(page.get_by_role("button", name=name, exact=True).first).to_be_focused()

    def test_every_control_of_the_sign_in_is_reached_by_tab_alone(self):
        self.page.goto(self.daemon.url)
        expect(self.page.get_by_label("Token")).to_be_focused()
        self.check_overlay("document.querySelector('form')")

    def test_the_banner_and_the_notice_are_reached_by_tab_and_used_by_keys(self):
        page = self.sign_in()
        self.wait(lambda: self.daemon.subscribers, "the stream is open")
        page.evaluate("location.hash = '#code=0123456789abcdef'")
        expect(page.locator("#notice")).to_be_visible()
        self.daemon.stop()
        expect(page.locator("#connection")).to_be_visible()
        self.check_overlay("document.querySelector('#connection')")
        self.check_overlay("document.querySelector('#notice')")
        page.locator("#notice button").press("Enter")
        expect(page.locator("#notice")).to_be_hidden()
        self.daemon.restart()
        page.locator("#connection button").press("Enter")
        expect(page.locator("#connection")).to_be_hidden()

    def test_arrow_keys_go_from_row_to_row(self):
        page = self.sign_in("queue")
        page.locator(".row a").first.focus()
        for _ in range(5):
            page.keyboard.press("ArrowDown")
        self.assertEqual(page.evaluate("document.activeElement.closest('.row').dataset.row"), "5")

    def test_the_skip_link_leads_to_the_content(self):
        page = self.sign_in()
        page.keyboard.press("Tab")
        while page.evaluate("document.activeElement.id") != "skip":
            page.keyboard.press("Shift+Tab")
        page.keyboard.press("Enter")
        self.assertEqual(page.evaluate("document.activeElement.id"), "main")

    def test_a_new_view_begins_at_its_heading(self):
        page = self.sign_in()
        page.get_by_role("link", name="Plan").press("Enter")
        expect(page.get_by_role("heading", name="Plan", exact=True)).to_be_focused()

    def test_a_row_that_is_removed_hands_the_focus_to_the_next(self):
        page = self.sign_in("history")
        page.get_by_role("button", name="Remove").nth(2).press("Enter")
        page.get_by_role("button", name="Remove 1 upload").press("Enter")
        expect(page.locator("dialog")).to_have_count(0)
        page.wait_for_function("() => document.activeElement.closest('.row')?.dataset.row === '2'")


SMALL = """smallest => [...document.querySelectorAll('a[href], button, input, select')]
  .filter(node => node.checkVisibility()).map(node => [node, node.getBoundingClientRect()])
  .filter(([node, { width, height }]) => Math.min(width, height) < smallest)
  .map(([node, { width, height }]) => `${node.tagName} ${node.textContent || node.ariaLabel} ${width} x ${height}`)"""


class TargetTest(PageTest):
    """Places to press: WCAG 2.2, 2.5.8."""

    def check_targets(self, page, smallest, only=""):
        for view in (*VIEWS, "history?list=failed"):
            with self.subTest(view=view):
                self.go(view, page)
                self.expect_large(page, smallest, only)
        self.go("queue", page)
        page.locator(".row a").first.click()
        expect(page.get_by_role("heading", name="File", exact=True)).to_be_visible()
        self.expect_large(page, smallest, only)
        page.keyboard.press("Escape")
        for name in ("Pause…", "Limit rate…", "Add files…", "Allow folder garden"):
            with self.subTest(dialog=name):
                self.go("now", page)
                page.get_by_role("button", name=name, exact=True).first.click()
                self.expect_large(page, smallest, only)
                page.keyboard.press("Escape")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Token")).to_be_visible()
        self.expect_large(page, smallest, only)

    def expect_large(self, page, smallest, only):
        found = page.evaluate(SMALL, smallest)
        self.assertEqual([each for each in found if each.startswith(only)], [])

    def test_every_control_has_24_pixels_each_way(self):
        for width in (360, 1440):
            page = self.open_page(self.open_context(viewport={"width": width, "height": 800}))
            self.check_targets(self.sign_in(page=page), 24)

    def test_the_buttons_have_40_pixels_under_a_finger(self):
        for width in (360, 800):
            page = self.open_page(self.open_context(
                viewport={"width": width, "height": 800}, has_touch=True, is_mobile=True))
            self.check_targets(self.sign_in(page=page), 40, "BUTTON")

    def test_under_a_finger_nothing_of_a_row_lies_over_another_part(self):
        for width in (360, 800, 1440):
            page = self.open_page(self.open_context(
                viewport={"width": width, "height": 800}, has_touch=True, is_mobile=True))
            self.sign_in("queue", page)
            page.locator(".row").first.wait_for()
            boxes = page.evaluate("""() => [...document.querySelectorAll('.row')].slice(0, 5).map(row => [row,
              ...row.querySelectorAll('.row-choice, .row-name, .row-commands button')].map(node => {
                const { left, top, right, bottom } = node.getBoundingClientRect();
                return [left, top, right, bottom];
              }))""")
            for row, *parts in boxes:
                for part in parts:
                    self.assertTrue(row[1] <= part[1] and part[3] <= row[3], f"{width}: {part} is not in {row}")
                for index, one in enumerate(parts):
                    for other in parts[:index]:
                        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
                        self.assertTrue(apart, f"{width}: {one} over {other}")


class LayoutTest(PageTest):
    def test_no_view_scrolls_sideways_from_360_pixels_on(self):
        for width, height in ((360, 740), (768, 1024), (1440, 900), (3840, 2160)):
            page = self.open_page(self.open_context(viewport={"width": width, "height": height}))
            self.sign_in(page=page)
            for view in VIEWS:
                with self.subTest(view=view, width=width):
                    self.go(view, page)
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0)

    def test_the_choices_of_the_usage_show_their_longest_word(self):
        for width in (360, 768, 1440):
            with self.subTest(width=width):
                page = self.open_page(self.open_context(viewport={"width": width, "height": 900}))
                self.sign_in("usage", page)
                missing = page.evaluate("""() => [...document.querySelectorAll(".filters select")].map(select => {
                  const whole = select.cloneNode(true);
                  Object.assign(whole.style, { width: "max-content", position: "absolute" });
                  document.body.append(whole);
                  return whole.offsetWidth - select.offsetWidth;
                })""")
                self.assertLessEqual(max(missing), 0)

    def test_the_lists_of_the_history_fit_into_a_narrow_window_with_large_numbers(self):
        self.daemon.counts = lambda: {name: 1_234_567 for name in ("ongoing", "completed", "failed", "cancelled")}
        page = self.open_page(self.open_context(viewport={"width": 360, "height": 740}))
        self.sign_in("history", page)
        expect(page.get_by_role("link", name="Completed 1,234,567")).to_be_visible()
        self.assertLessEqual(page.evaluate("""() => {
          const tabs = document.querySelector(".tabs");
          return tabs.scrollWidth - tabs.clientWidth;
        }"""), 0)

    def test_text_of_twice_the_size_fits(self):
        page = self.open_page(self.open_context(viewport={"width": 720, "height": 900}))
        self.sign_in(page=page)
        page.evaluate("document.documentElement.style.fontSize = '30px'")
        for view in VIEWS:
            with self.subTest(view=view):
                self.go(view, page)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0)

    def test_nothing_moves_for_those_who_want_less_motion(self):
        page = self.open_page(self.open_context(reduced_motion="reduce"))
        self.sign_in("queue", page)
        page.locator(".row a").first.click()
        expect(page.locator("dialog.drawer")).to_be_visible()
        self.assertEqual(page.evaluate("document.getAnimations().length"), 0)

    def test_forced_colours_keep_every_state_as_a_word(self):
        page = self.open_page(self.open_context(forced_colors="active"))
        self.sign_in("queue", page)
        words = page.locator(".row .badge").all_inner_texts()
        self.assertTrue(words and all(word.strip() for word in words), words)

    def test_times_are_local_with_the_full_time_as_title(self):
        page = self.sign_in("queue")
        times = page.locator(".row time")
        self.assertRegex(times.first.get_attribute("datetime"), r"^\d{4}-.*Z$")
        self.assertRegex(times.first.get_attribute("title"), r"^[A-Z][a-z]+day,? .*(CET|CEST|GMT\+[12])")


if __name__ == "__main__":
    unittest.main()
