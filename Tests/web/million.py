#!/usr/bin/env python3
"""Measures the page of a real daemon with very many uploads: `make bench ONLY=page/` calls it.

    million.py PROGRAM HOME ROWS

HOME/state was filled by `Benchmarks fill`. One finding on each line: what, value, unit and the bound, with tabs between.
"""

import fcntl
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from playwright.sync_api import sync_playwright

from test_scale import FRAMES

PROGRAM, HOME, ROWS = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
CHROMIUM = os.environ.get("SLUICE_WEB_CHROMIUM", "/usr/bin/chromium")
TOKEN = "a token for the measurement"
FOLDERS = ("front-door", "garden", "attic", "inbox")
DESTINATIONS = ("archive", "nas", "pictures")
RUNNING = 24
ROUNDS = 5
HIDE = """isHidden => {
  Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def find(what, value, unit, most=None):
    print("\t".join([what, f"{value:.6g}", unit, "" if most is None else f"{most:g}"]), flush=True)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise SystemExit(f"not within {seconds} s: {what}")
        time.sleep(0.05)


class Daemon:
    def __init__(self):
        self.port, self.receiver_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        live = HOME / "live"
        live.mkdir(exist_ok=True)
        folders = [f"  - {{name: {name}, path: {HOME}/drop/{name}, upload_to: [{DESTINATIONS[at % 3]}]}}"
                   for at, name in enumerate(FOLDERS)]
        for name in FOLDERS:
            (HOME / "drop" / name).mkdir(parents=True, exist_ok=True)
        # No server listens at port 1.
        destinations = [f'  {name}: {{type: tus, url: "http://127.0.0.1:1/"}}' for name in DESTINATIONS]
        (HOME / "sluice.yaml").write_text("\n".join([
            "version: 1", f"state: {HOME}/state", f"policy: {{concurrency: {{total: {RUNNING}}}}}",
            f"staging: {{path: {HOME}/staging, keep_free: 1 MB, memory: allow}}",
            "folders:", *folders, f"  - {{name: live, path: {live}, upload_to: [live], settle: {{quiet_for: 1s}}}}",
            "destinations:", *destinations,
            f'  live: {{type: tus, url: "http://127.0.0.1:{self.receiver_port}/files/", concurrency: {RUNNING}, '
            "bandwidth: 3 MB/s}",
            f"control: {{socket: {HOME}/control.sock, listen: \"127.0.0.1:{self.port}\", "
            f"tokens: [{{name: bench, secret: {{literal: \"{TOKEN}\"}}}}]}}", ""]))
        self.log = open(HOME / "daemon.log", "ab")
        self.receiver = subprocess.Popen(
            [PROGRAM, "receive", "--into", str(HOME / "received"), "--listen", f"127.0.0.1:{self.receiver_port}"],
            stdout=self.log, stderr=self.log)
        self.process = subprocess.Popen(
            [PROGRAM, "run", "--config", str(HOME / "sluice.yaml")], stdout=self.log, stderr=self.log)
        until("the daemon answers", self.is_ready)

    def is_ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the daemon ended: {(HOME / 'daemon.log').read_text()[-2000:]}")
        try:
            return not self.ask("v1/status").get("starting")
        except OSError:
            return False

    def ask(self, path, body=None, headers=()):
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {TOKEN}", **dict(headers)})
        if body is not None:
            request.data = json.dumps(body).encode()
        with urllib.request.urlopen(request, timeout=120) as answer:
            self.cookie = answer.headers.get("Set-Cookie")
            return json.load(answer)

    def memory(self):
        """Resident now and at most, in MiB."""
        lines = pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in lines)
        return [int(sizes[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM")]

    def seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def sleeps(self):
        """Waits until it has used no processor time for three seconds."""
        used = []

        def rests():
            used.append(self.seconds())
            time.sleep(0.95)
            return len(used) > 3 and used[-1] - used[-4] < 0.02
        until("the daemon sleeps", rests, 600)

    def connections(self):
        """Open TCP connections to it."""
        port = f":{self.port:04X}"
        lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
        return sum(1 for line in lines if line.split()[1].endswith(port) and line.split()[3] == "01")

    def events(self, seconds):
        """Events a second that a stream gets."""
        request = urllib.request.Request(f"{self.url}v1/events", headers={"Authorization": f"Bearer {TOKEN}"})
        count, end = 0, time.monotonic() + seconds
        with urllib.request.urlopen(request, timeout=20) as stream:
            while time.monotonic() < end:
                count += stream.readline().startswith(b"data:")
        return count / seconds

    def end(self):
        for process in (self.process, self.receiver):
            process.terminate()
            process.wait(30)


class Tab:
    """A page in a browser of its own, signed in, with nothing in its cache."""

    def __init__(self, playwright, daemon):
        self.browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-features=SpareRendererForSitePerProcess"])
        self.context = self.browser.new_context(viewport={"width": 1440, "height": 900})
        daemon.ask("v1/session", {})
        name, _, value = daemon.cookie.split(";")[0].partition("=")
        self.context.add_cookies([{"name": name, "value": value, "url": daemon.url, "httpOnly": True,
                                   "sameSite": "Strict"}])
        self.page = self.context.new_page()

    def open(self, view):
        self.page.goto(f"{view}")
        self.page.locator(".row a").first.wait_for()
        return self.page.evaluate("performance.now()")

    def renderer(self):
        processes = self.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
        return max((private(each["id"]) for each in processes if each["type"] == "renderer"))

    def heap(self):
        session = self.context.new_cdp_session(self.page)
        session.send("Performance.enable")
        session.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        return metrics["JSHeapUsedSize"] / 1e6, metrics["Nodes"]

    def close(self):
        self.browser.close()


class PlainTab:
    """
    A page that nothing debugs but the calls here. Playwright watches the network of a page, and for that the process of
    the page keeps the answers that it read: some 20 MB after 30,000 rows.
    """

    def __init__(self, daemon):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.profile = tempfile.TemporaryDirectory()

        def give_pipes():
            kept = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (commands, answers)]
            for number, each in enumerate(kept, 3):
                os.dup2(each, number)
                os.close(each)
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-features=SpareRendererForSitePerProcess",
             "--no-first-run", "--window-size=1440,900", f"--user-data-dir={self.profile.name}",
             "--remote-debugging-pipe", "about:blank"], close_fds=False, preexec_fn=give_pipes, stderr=daemon.log)
        os.close(commands)
        os.close(answers)
        self.text, self.count = b"", 0
        daemon.ask("v1/session", {})
        name, _, value = daemon.cookie.split(";")[0].partition("=")
        self.call("Storage.setCookies", cookies=[{"name": name, "value": value, "url": daemon.url}])
        target = self.call("Target.createTarget", url=f"{daemon.url}#/queue")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, session=None, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.text:
                some = os.read(self.answers, 1 << 16)
                if not some:
                    raise SystemExit("the browser ended")
                self.text += some
            one, _, self.text = self.text.partition(b"\0")
            answer = json.loads(one)
            if answer.get("id") == self.count:
                return answer.get("result", {})

    def evaluate(self, script):
        """None also while the page is not there yet."""
        answer = self.call("Runtime.evaluate", self.session, expression=script, awaitPromise=True, returnByValue=True)
        return answer.get("result", {}).get("value")

    def renderer(self):
        processes = self.call("SystemInfo.getProcessInfo")["processInfo"]
        return max(private(each["id"]) for each in processes if each["type"] == "renderer")

    def close(self):
        self.call("Browser.close")
        self.process.wait(30)
        os.close(self.commands)
        os.close(self.answers)
        self.profile.cleanup()


# Scrolls on by 1,000 rows. Resolves to the number of the last row.
SCROLL = """(async () => {
  const last = () => Number([...document.querySelectorAll('.row:not(.unread)')].at(-1)?.dataset.row ?? 0);
  for (const end = last() + 1000; last() < end;) {
    const before = last();
    scrollTo(0, document.documentElement.scrollHeight);
    while (last() <= before) await new Promise(requestAnimationFrame);
  }
  return last();
})()"""


# Jumps to parts of the height, each as soon as the rows of the one before are there.
JUMPS = """(async () => {
  for (const part of %s) {
    scrollTo(0, document.documentElement.scrollHeight * part);
    do await new Promise(requestAnimationFrame); while (document.querySelector('.row.unread'));
  }
})()"""


def scroll(daemon):
    """Scrolls as fast as the rows come, and then rests."""
    tab = PlainTab(daemon)
    until("the first rows", lambda: tab.evaluate("document.querySelectorAll('.row a').length"))
    rows, sizes, began = 0, [], time.monotonic()
    # The list ends at 150,000 rows.
    for end, most in ((min(30_000, ROWS // 4), 150), (min(148_000, ROWS // 4), 150)):
        while rows < end:
            rows = tab.evaluate(SCROLL)
            sizes.append(tab.renderer())
        find(f"seconds to scroll through {rows} rows", time.monotonic() - began, "s")
        find("tab during that, at most: private bytes", max(sizes), "MB", most)
    heights = [at / 200 for at in (*range(200), *range(200, 0, -1))]
    jumped = []
    for _ in range(10):
        tab.evaluate(JUMPS % heights)
        jumped.append(tab.renderer())
    find("tab after 4,000 jumps up and down, at most: private bytes", max(jumped), "MB", 150)
    print(f"each 1,000 rows\t{', '.join(f'{size:.0f}' for size in sizes)} MB", flush=True)
    # The browser gives back what it has freed when the page has little to do.
    time.sleep(30)
    find("tab after a rest of 30 s: private bytes", tab.renderer(), "MB", 150)
    tab.close()


# No part of the view says that it is being read.
LOADED = "() => ![...document.querySelectorAll('main p')].some(node => /^(Reading|Planning)…$/.test(node.textContent))"


def settles(tab):
    """Waits until the memory of the tab changes by less than a megabyte in a second."""
    sizes = []

    def rests():
        sizes.append(tab.renderer())
        tab.page.wait_for_timeout(450)
        return len(sizes) > 2 and max(sizes[-3:]) - min(sizes[-3:]) < 1
    until("the memory of the tab settles", rests)


def private(pid):
    """The bytes that a process has for itself, in MB."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    sizes = dict(line.split(":", 1) for line in text.splitlines()[1:])
    return sum(int(sizes[key].split()[0]) for key in ("Private_Clean", "Private_Dirty", "Swap")) * 1024 / 1e6


def measure(playwright, daemon):
    queue = f"{daemon.url}#/queue"
    at_first = daemon.memory()
    find("daemon without a page: resident", at_first[0], "MiB", 50)
    find("daemon without a page: most resident", at_first[1], "MiB", 50)
    times = []
    for _ in range(ROUNDS):
        tab = Tab(playwright, daemon)
        times.append(tab.open(queue))
        tab.close()
    find(f"cold tab: navigation to the first rows, median of {ROUNDS}", statistics.median(times) / 1000, "s", 1)
    find("the slowest of them", max(times) / 1000, "s")

    tab = Tab(playwright, daemon)
    tab.open(queue)
    page = tab.page
    heading = page.locator(".heading [role=status]").inner_text()
    print(f"the page says\t{heading}", flush=True)
    settles(tab)
    find("tab after the first rows: private bytes of its process", tab.renderer(), "MB", 150)
    for _ in range(60):
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        page.wait_for_function("() => document.querySelectorAll('.row:not(.unread)').length > 5")
    heap, nodes = tab.heap()
    find("tab after that: heap of its scripts", heap, "MB")
    find("tab after that: nodes", nodes, "nodes")
    page.evaluate("scrollTo(0, 0)")
    for view in ("now", "usage", "plan", "history", "check", "queue"):
        page.evaluate("view => { location.hash = `#/${view}`; }", view)
        page.locator(f".view-{view} h1").wait_for()
        page.wait_for_function(LOADED)
    settles(tab)
    find("tab after each view: private bytes", tab.renderer(), "MB", 150)
    now, most = daemon.memory()
    find("daemon with the page open: resident", now, "MiB", 50)
    find("daemon: most resident so far", most, "MiB", 50)
    find("more than without a page: resident", now - at_first[0], "MiB")

    for number in range(RUNNING):
        with open(HOME / "live" / f"running-{number}.mp4", "wb") as file:
            file.truncate(200_000_000)
    until("transfers run", lambda: next(
        each for each in daemon.ask("v1/status")["destinations"] if each["name"] == "live")["running"] == RUNNING, 120)
    for view in ("now", "queue"):
        page.evaluate("view => { location.hash = `#/${view}`; }", view)
        page.locator(f".view-{view} h1").wait_for()
        page.locator("progress:visible").first.wait_for()
        settles(tab)
        counted = []
        counter = threading.Thread(target=lambda: counted.append(daemon.events(10)))
        counter.start()
        before = daemon.seconds()
        frames = sorted(page.evaluate(FRAMES, 10))
        counter.join()
        find(f"{view}: updates a second", counted[0], "events/s")
        find(f"{view}: 95 % of {len(frames)} frames within", frames[int(len(frames) * 0.95)], "ms", 20)
        find(f"{view}: median frame", statistics.median(frames), "ms")
        find(f"{view}: processor of the daemon", (daemon.seconds() - before) / 10 * 100, "% of a core")
    find("tab with transfers: private bytes", tab.renderer(), "MB", 150)
    now, most = daemon.memory()
    # Each transfer has buffers, with a page or without.
    find(f"daemon with {RUNNING} transfers and the page: resident", now, "MiB")

    page.evaluate(HIDE, True)
    streams = until("the stream is closed", lambda: daemon.connections() <= 6 and [daemon.connections()])
    print(f"connections of a hidden tab at once\t{streams[0]}", flush=True)
    until("the kept connections of a hidden tab are closed", lambda: daemon.connections() == 0, 120)
    find("connections of a hidden tab after the idle time", daemon.connections(), "connections", 0)
    tab.close()


def main():
    # The configuration has a secret.
    os.umask(0o077)
    daemon = Daemon()
    try:
        for name in DESTINATIONS:
            daemon.ask("v1/pause", {"destination": name})
        # The first start shortens the lists of what has ended. A daemon of every day has done that.
        daemon.sleeps()
        daemon.end()
        daemon = Daemon()
        daemon.sleeps()
        counts = daemon.ask("v1/status")["counts"]
        print(f"uploads\t{json.dumps(counts)}", flush=True)
        with sync_playwright() as playwright:
            measure(playwright, daemon)
        scroll(daemon)
    finally:
        daemon.end()


if __name__ == "__main__":
    main()
