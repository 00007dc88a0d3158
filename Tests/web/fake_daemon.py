"""A daemon of made-up data, for states that a real one hardly reaches: a million uploads, hostile texts, modems.

Run it by hand to look at the page: `./fake_daemon.py --port 8800 --uploads 1000000`.
"""

import argparse
import json
import queue
import threading
import time
import urllib.parse

import fake_views as views
from page_server import Handler, Refused, Server, Sessions, now

TOKENS = {"operator-token-0123": ("ops", "operate"), "viewer-token-0123": ("guest", "view")}
VERBS = ("pause", "resume", "cancel", "retry", "remove", "priority")


class FakeDaemon:
    """The state of the fake. `commands` has every change that was asked for, as (path, body)."""

    def __init__(self, uploads=60, updates=2.0, empty=False, port=0):
        self.empty = empty
        self.total = 0 if empty else uploads
        self.updates = updates
        self.seq = 1000
        self.commands = []
        self.refusals = {}  # path of a command: how it is refused
        self.silent = set()  # paths that are answered only when they are no longer in here
        self.paused = []
        self.exceptions = []
        self.changed = {}  # id of an upload: what differs from its made-up view
        self.ended = {} if empty else views.ended()
        self.status_changes = {}  # what differs from the made-up status
        self.plan_changes = {}
        self.clock = 0  # seconds that it is before the clock of the viewer
        self.keys = {}  # keys of uploads that were added: their ids
        self.loses_answers = ""  # the connection breaks `early`, before bytes are recorded, or `late`, after that
        self.taken = []  # queries of bytes that were lost early
        self.log = []  # the events: (number, time, type, id of the upload, detail)
        self.subscribers = set()
        self.streams_opened = 0
        self.lock = threading.RLock()
        self.sessions = Sessions(TOKENS)
        self.handler = type("FakeHandler", (FakeHandler,), {"daemon": self, "sessions": self.sessions})
        self.server = Server(port, self.handler).start()
        self.port = self.server.server_address[1]
        self.stopped = threading.Event()
        threading.Thread(target=self.tick, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def stop(self):
        self.server.cut()

    def restart(self):
        self.server = Server(self.port, self.handler).start()

    def close(self):
        self.stopped.set()
        self.server.cut()

    # Uploads, the newest first: number `total - 1` is the newest.

    def upload(self, identifier):
        identifier = self.keys.get(identifier, identifier)
        if identifier in self.ended:
            return self.ended[identifier]
        number = views.number(identifier)
        if number is None or number >= self.total:
            raise Refused(404, "not_found", f"no upload has the id {identifier}")
        view = {**views.ongoing(number, self.total), **self.changed.get(identifier, {})}
        for pause in self.paused:
            if view["state"] in ("queued", "waiting") and pause.get("name") in (None, view.get(pause["scope"])):
                hold = {"kind": "global", "since": pause["since"], "text": f"{pause.get('name', 'everything')} is paused"}
                view |= {"state": "waiting", "holds": [*view["holds"], hold]}
        return view

    def running(self):
        numbers = range(max(0, self.total - views.RUNNING), self.total)
        return [each for each in (self.upload(views.identifier(n)) for n in numbers) if each["state"] == "uploading"]

    def ongoing(self, query):
        """The page of uploads that are not over, made up while the reader goes on."""
        start = views.number(query["after"]) - 1 if "after" in query else self.total - 1
        wanted = int(query.get("limit", 100))
        keys = ("folder", "destination")
        for number in range(start, max(-1, start - 200_000), -1):
            each = self.upload(views.identifier(number))
            if each["list"] != "ongoing" or any(key in query and each[key] != query[key] for key in keys):
                continue
            if query.get("state") and query["state"] != each["state"]:
                continue
            if query.get("text", "").lower() not in each["path"].lower():
                continue
            yield each
            wanted -= 1
            if wanted < 0:
                return

    def page(self, query):
        known = {"list", "state", "destination", "folder", "text", "since", "until", "after", "limit"}
        if set(query) - known:
            raise Refused(400, "bad_request", f"no filter `{min(set(query) - known)}`")
        limit = int(query.get("limit", 100))
        if query.get("list", "ongoing") == "ongoing" or "state" in query:
            states = ("opening", "uploading", "finishing")
            if query.get("state") in states and "list" not in query:
                found = [each for each in self.running() if each["state"] == query["state"]]
            else:
                found = list(self.ongoing(query))
        else:
            found = [each for each in self.ended.values() if each["list"] == query["list"]]
            found = [each for each in found if query.get("text", "").lower() in each["path"].lower()]
            for key in ("folder", "destination"):
                found = [each for each in found if key not in query or each[key] == query[key]]
            found.sort(key=lambda each: each["id"], reverse=True)
            if "after" in query:
                found = [each for each in found if each["id"] < query["after"]]
        answer = {"uploads": found[:limit], "counts": self.counts(), "seq": self.seq}
        if "folder" in query or "destination" in query:
            answer["selected"] = self.selected(query)
        if len(found) > limit:
            answer["next"] = found[limit - 1]["id"]
        return answer

    def counts(self):
        lists = [each["list"] for each in self.ended.values()]
        ended_here = sum(1 for each in self.changed.values() if each.get("list", "ongoing") != "ongoing")
        return {"ongoing": self.total - ended_here} | {
            name: lists.count(name) + sum(1 for each in self.changed.values() if each.get("list") == name)
            for name in ("completed", "failed", "cancelled")}

    def selected(self, query):
        """The counts of a folder and a destination, as the daemon keeps them."""
        ongoing = (self.upload(views.identifier(number)) for number in range(self.total))
        counted = dict.fromkeys(("ongoing", "completed", "failed", "cancelled"), 0)
        for each in (*ongoing, *self.ended.values()):
            if each["list"] in counted and all(each[key] == query[key] for key in ("folder", "destination")
                                               if key in query):
                counted[each["list"]] += 1
        return counted

    def status(self):
        return views.status(self) | self.status_changes

    def plan(self, query):
        now = views.now(self.clock)
        if query.get("until", now + "Z") <= now:
            raise Refused(400, "bad_request", "`until` is in the past, or not after the start of the plan")
        return views.plan(self) | {"from": now, "until": query.get("until", views.now(self.clock + 7 * 86400))} \
            | self.plan_changes

    # Events.

    def emit(self, type, op=None, age=0, **detail):
        with self.lock:
            if type != "progress":
                self.seq += 1
                self.log.append((self.seq, now(self.clock - age), type, op and op["id"], detail))
            event = {"seq": self.seq, "ts": now(self.clock), "type": type, "detail": detail}
            if op:
                event["op"] = op
            for subscriber in self.subscribers:
                subscriber.put(self.lines(event))

    @staticmethod
    def lines(event):
        return f"id: {event['seq']}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()

    def missed(self, since):
        """The events after `since`, as the daemon sends them later: an old one has its upload as it is now without holds."""
        if since > self.seq or since + 1 < (self.log[0][0] if self.log else self.seq + 1):
            yield {"seq": self.seq, "ts": now(self.clock), "type": "reset", "detail": {}}
            return
        for seq, time, type, identifier, detail in self.log:
            if seq <= since:
                continue
            event = {"seq": seq, "ts": time, "type": type, "detail": detail}
            if identifier:
                event["op"] = self.upload(identifier)
                if time < now(self.clock - 10):
                    state = event["op"]["state"]
                    event["op"] = {**event["op"], "holds": [], "state": "queued" if state == "waiting" else state}
            yield event

    def tick(self):
        turn = 0
        while not self.stopped.wait(1 / self.updates):
            running = self.running()
            if not running or not self.subscribers:
                continue
            each = running[turn % len(running)]
            turn += 1
            total = each["size"]
            acked = (each["progress"]["acked"] + total // 400) % total
            rate = 1_400_000 + (turn * 7919) % 900_000
            progress = {"fraction": acked / total, "acked": acked, "sent": acked, "total": total, "rate": rate,
                        "eta": (total - acked) // rate}
            self.changed.setdefault(each["id"], {})["progress"] = progress
            self.emit("progress", {**each, "progress": progress})

    # Changes.

    def command(self, path, body):
        self.commands.append((path, body))
        if path in self.refusals:
            raise self.refusals[path]
        verb = path.removeprefix("/v1/")
        if verb in VERBS:
            return 202, self.change(verb, body)
        if verb == "flush":
            gone = [each for each in self.ended.values() if body.get("list") in (None, each["list"])]
            for each in gone:
                each["list"] = "history"
            self.emit("flushed", count=str(len(gone)), lists=body.get("list", "completed, failed, cancelled"))
            return 200, {"uploads": [], "count": len(gone)}
        if verb == "allow" and body["duration"] == 0:
            ended = [each for each in self.exceptions if each["kind"] in body["kinds"] and each["name"] == body["folder"]]
            self.exceptions = [each for each in self.exceptions if each not in ended]
            return 200, {"exceptions": self.exceptions, "ended": ended}
        if verb == "allow":
            for kind in body["kinds"] or ["rule"]:
                scope, name = ("folder", body["folder"]) if body.get("folder") else ("upload", body["ids"][0])
                self.exceptions.append({"scope": scope, "name": name, "kind": kind, "since": now(),
                                        "until": now(body["duration"]), "by": "ops"})
            self.emit("allowed", kind=",".join(body["kinds"]))
            return 200, {"exceptions": self.exceptions}
        if verb == "limit":
            return 200, {"exceptions": []}
        if verb == "check":
            return 200, views.check(body)
        if verb == "rescan":
            return 202, {"done": False, "folders": []}
        if verb == "reload":
            return 200, {"applied": True, "changes": [{"what": "destination", "name": "nas", "change": "changed",
                                                       "keys": ["token"]}], "errors": [], "warnings": []}
        raise Refused(404, "not_found", f"there is no {path}")

    def change(self, verb, body):
        ids = body.get("ids", [])
        if verb == "pause" and not ids:
            scope = "folder" if body.get("folder") else "destination" if body.get("destination") else "all"
            pause = {"scope": scope, "since": now()}
            if scope != "all":
                pause["name"] = body[scope]
            if body.get("duration"):
                pause["until"] = now(body["duration"])
            self.paused.append(pause)
            self.emit("paused", scope=scope)
        if verb == "resume" and not ids:
            named = body.get("folder") or body.get("destination")
            self.paused = [each for each in self.paused if each.get("name") != named]
            self.emit("resumed", scope="all")
        for each in ids:
            self.change_one(verb, each, body)
        return {"uploads": [self.upload(each) for each in ids], "count": len(ids) or 7}

    def change_one(self, verb, identifier, body, age=0):
        view = self.upload(identifier)
        if verb == "priority":
            change = {"priority": body["priority"]}
        elif verb == "pause":
            text = "paused by ops"
            change = {"state": "waiting", "holds": [{"kind": "operator", "since": now(), "text": text}]}
        elif verb == "cancel":
            change = {"state": "cancelled", "list": "cancelled", "holds": [], "finished_at": now()}
        elif verb == "remove":
            change = {"list": "history"}
        else:
            change = {"state": "queued", "list": "ongoing", "holds": []}
        before = view["state"]
        if identifier in self.ended:
            view.update(change)
        else:
            self.changed.setdefault(identifier, {}).update(change)
        kind = {"cancel": "cancelled", "remove": "removed"}.get(verb, "state")
        detail = {"to": change["state"]} if "state" in change else {}
        if verb == "retry":
            detail["from"] = before
        self.emit(kind, {**view, **change}, age, **detail)

    def receive(self, query, size):
        if not query["name"].isprintable():
            raise Refused(400, "bad_request", "`name` contains a control character")
        self.commands.append(("/v1/bytes", query | {"size": size}))
        holder = self.keys.get(query.get("key"))
        # As the daemon: without `once` another upload may have the key of one that is over.
        if holder and (query.get("once") == "true" or self.upload(holder)["list"] == "ongoing"):
            raise Refused(409, "conflict", f"upload {holder} has the same key")
        self.total += 1
        view = self.upload(views.identifier(self.total - 1)) | {"name": query["name"], "state": "queued"}
        self.changed[view["id"]] = {"name": query["name"], "folder": "-", "path": f"/dev/stdin/{query['name']}",
                                    "state": "queued", "holds": [], "size": size}
        view = self.upload(view["id"])
        if "key" in query:
            self.keys[query["key"]] = view["id"]
        self.emit("added", view)
        return {"uploads": [view], "count": 1}

    def thumbnail(self, reference):
        return views.thumbnail(reference)


class FakeHandler(Handler):
    daemon: FakeDaemon

    def api(self, path, query, body):
        daemon = self.daemon
        kind, _, reference = path.removeprefix("/v1/").partition("/")
        reference = urllib.parse.unquote(reference)
        while path in daemon.silent and not daemon.stopped.wait(0.05):
            pass
        if path == "/v1/events":
            return self.events(query)
        if path == "/v1/bytes":
            if daemon.loses_answers == "early":
                daemon.taken.append(query)
                raise ConnectionResetError
            answer = daemon.receive(query, len(body))
            if daemon.loses_answers:
                raise ConnectionResetError
            return self.send(202, answer)
        if self.command == "POST":
            with daemon.lock:
                return self.send(*daemon.command(path, json.loads(body or b"{}")))
        if kind == "thumbnails":
            picture = daemon.thumbnail(reference)
            if picture is None:
                raise Refused(404, "not_found", "no picture: ffmpeg finds no picture in the file")
            return self.send(200, picture, "image/png", [("Cache-Control", "no-store")])
        answers = {
            "status": daemon.status, "plan": lambda: daemon.plan(query), "routes": views.routes,
            "usage": lambda: views.usage(query, daemon.empty),
            "uploads": lambda: views.detail(daemon.upload(reference)) if reference else daemon.page(query),
            "why": lambda: views.why(daemon.upload(reference)),
        }
        if kind not in answers:
            raise Refused(404, "not_found", f"there is no {path}")
        with daemon.lock:
            self.send(200, answers[kind]())

    def events(self, query):
        daemon = self.daemon
        mine = queue.Queue()
        since = int(query.get("since", daemon.seq))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.close_connection = True
        daemon.streams_opened += 1
        with daemon.lock:
            for event in daemon.missed(since):
                mine.put(daemon.lines(event))
            daemon.subscribers.add(mine)
        try:
            self.wfile.write(b"retry: 3000\n\n")
            while True:
                try:
                    self.wfile.write(mine.get(timeout=2))
                except queue.Empty:
                    self.wfile.write(b": \n\n")
        finally:
            daemon.subscribers.discard(mine)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8800)
    parser.add_argument("--uploads", type=int, default=60)
    parser.add_argument("--updates", type=float, default=2.0, help="progress events a second")
    parser.add_argument("--empty", action="store_true")
    options = parser.parse_args()
    daemon = FakeDaemon(options.uploads, options.updates, options.empty, options.port)
    print(f"{daemon.url}#code={daemon.sessions.code()}", "or a token:", ", ".join(TOKENS), flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
