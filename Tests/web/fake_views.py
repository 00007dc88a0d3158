"""Made-up views in the shapes of the API."""

import datetime
import struct
import zlib

from page_server import now

RUNNING = 3
HOUR = 3600
GB = 1_000_000_000
FOLDERS = ("front-door", "garden", "workshop", "<b>yard</b>")
DESTINATIONS = ("nas", "archive", "cloud", "nas")
HOSTILE = "<img src=x onerror=alert(1)>\u202e4pm.mp4"
NAMES = ("2026-11-29 08-15-00.mp4", HOSTILE, "Besuch \u2013 T\u00fcr (3).mp4", "IMG_2041.jpg", "long-" + "x" * 200
  + ".mkv")
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
QUOTA_TEXT = "the quota of destinations.cloud is used up: 2 GB a day (`quotas`), 2.0 GB sent"
WINDOW_TEXT = "outside the windows of destinations.archive (sluice.yaml:18): `windows: [\"22:00-06:00\"]`"


def identifier(number):
    text = ""
    for _ in range(10):
        text = ALPHABET[number % 32] + text
        number //= 32
    return "01M8MQDJPJFAKE00" + text


def number(text):
    if not text.startswith("01M8MQDJPJFAKE00"):
        return None
    value = 0
    for character in text[16:]:
        value = value * 32 + ALPHABET.index(character)
    return value


def hold(kind, text, until=None, **more):
    view = {"kind": kind, "since": now(-2 * HOUR), "text": text, **more}
    return view if until is None else view | {"until": now(until)}


HOLDS = (
    lambda: [hold("rule", WINDOW_TEXT, 5 * HOUR, rule="windows", file="sluice.yaml", line=18, facts=[])],
    lambda: [hold("quota", QUOTA_TEXT, 9 * HOUR)],
    lambda: [hold("destination", "nas: POST to nas.example: <script>alert(1)</script> answered 502; the next attempt "
                  "follows `retry: {first: 5s, max: 30m}`", 90)],
    lambda: [hold("metered", "wwan0 is metered, and `metered: pause` of policy waits for another route")],
    lambda: [],
)


def ongoing(index, total):
    running = index >= total - RUNNING
    holds = [] if running else HOLDS[index % len(HOLDS)]()
    size = 40_000_000 + index * 7919 % 900_000_000
    name = NAMES[index % len(NAMES)] if index % 7 else HOSTILE
    folder = FOLDERS[index % len(FOLDERS)]
    view = {
        "id": identifier(index), "context": {}, "folder": folder, "destination": DESTINATIONS[index % 4],
        "path": f"/srv/camera/{folder}/{name}", "relative": name, "name": name, "size": size, "settled_by": "lease",
        "state": "uploading" if running else "waiting" if holds else "queued", "list": "ongoing", "holds": holds,
        "priority": 10 if index % 4 == 0 else 0, "attempt": 0, "generation": 1, "warnings": [],
        "progress": {"fraction": 0, "acked": 0, "sent": 0, "total": size}, "source_action": "delete",
        "source_state": "pending", "created_at": now(-index % 9000 - 60), "sha256": "6b47547a6f7c56b1" * 4,
    }
    if running:
        acked = size * (index % 5 + 2) // 9
        view["progress"] = {"fraction": acked / size, "acked": acked, "sent": acked, "total": size, "rate": 1_600_000,
                            "eta": (size - acked) // 1_600_000}
        view["started_at"] = now(-90)
    return view


def ended():
    """Uploads that are over, by id."""
    result = {}
    for index in range(140):
        view = ongoing(index, 10_000) | {"id": identifier(900_000_000 + index), "holds": [],
          "finished_at": now(-index * 600)}
        size = view["size"]
        state = ("completed", "completed", "completed", "failed", "cancelled", "expired", "history")[index % 7]
        view |= {"state": "failed" if state == "history" else state,
                 "list": {"expired": "cancelled"}.get(state, state), "started_at": now(-index * 600 - 400)}
        if state == "completed":
            view["progress"] = {"fraction": 1, "acked": size, "sent": size, "total": size}
            view["remote"] = {"id": f"files/{index}", "verified_by": "offset"}
            view["source_state"] = "done"
        if view["state"] == "failed":
            view["error"] = error()
        result[view["id"]] = view
    return result


def error():
    return {"class": "permanent", "code": "http_415", "http": 415, "retryable": False, "at": now(-700),
            "message": "studio: studio.example answered 415 to creation: <b>unsupported codec</b>"}


def detail(view):
    attempts = [{"generation": 1, "attempt": 1, "error": error()}] if "error" in view else []
    return {"upload": view, "attempts": attempts, "wasted": 1_000_000,
            "media": {"recorded_at": now(-5000), "duration": 125.4, "width": 1920, "height": 1080,
                      "camera": "ACME <i>Dome</i> 4K"},
            "group": {"name": "2026-11-29", "files": 12, "bytes": 900_000_000, "verified": 5}}


def why(view):
    holds = view["holds"]
    text = holds[0]["text"] if holds else "it waits for a free slot: 2 of 2 uploads to nas are running"
    if view["list"] != "ongoing":
        text = f"it was refused: {view['error']['message']}" if "error" in view else "it arrived and was verified"
    return {"answers": [{
        "id": view["id"], "destination": view["destination"], "folder": view["folder"], "path": view["path"],
        "state": view["state"], "text": text, "holds": holds,
        "way": {"interface": "eth0", "address": "192.0.2.5", "text": "unmetered: eth0 is wired"},
        "other_ways": [{"interface": "wwan0", "address": "198.51.100.7",
          "text": "metered, and `metered: pause` holds it"}]}]}


def destination(name, kind, running=0, waiting=0, held=None, **more):
    view = {"name": name, "type": kind, "state": held["text"] if held else "up", "running": running,
            "waiting": waiting, "sent_today": 4_210_000_000, "received_today": 12_000_000, **more}
    return view | {"hold": held} if held else view


def folder(name, state="watching", **more):
    return {"name": name, "path": f"/srv/camera/{name}", "state": state, "settling": 0, "polled": 0, "unwatched": 0,
      **more}


def status(daemon):
    running = daemon.running()
    base = {
        "version": "0.1.0", "pid": 4711, "started_at": now(-86400), "starting": False, "counts": daemon.counts(),
        "files_total": 0, "files_done": 0, "bytes_total": 0, "bytes_done": 0, "rate": 0, "paused": daemon.paused,
        "folders": [], "destinations": [], "warnings": [], "seq": daemon.seq, "settling": [], "overflows": 0,
        "staging": {"path": "/var/lib/sluice/staging", "used": 0, "free": 412 * GB}, "exceptions": daemon.exceptions,
        "classes": [], "queue": [], "hooks": [],
    }
    if daemon.empty:
        return base
    waiting = max(0, daemon.total - len(running))
    holds = [make() for make in HOLDS[:4]]
    card = {"level": "busy", "settling": False, "unstaged": 3, "unverified": 9, "failed": 0, "unreleased": 4}
    retention = {"free": 120 * GB, "until_free": 50 * GB, "seconds": 7 * 86400, "going_files": 2,
      "going_bytes": 80_000_000,
                 "oldest": now(-9 * 86400)}
    staging = {"path": "/var/lib/sluice/staging", "used": 31 * GB, "free": 412 * GB, "cap": 40 * GB, "running": [
        {"path": f"/srv/camera/garden/{HOSTILE}", "work": "copying", "fraction": 0.42, "done": 2_100_000_000,
         "total": 5_000_000_000, "rate": 180_000_000, "eta": 16}]}
    return base | {
        "files_total": daemon.total + 140, "files_done": 140, "bytes_total": 91 * GB, "bytes_done": 22 * GB,
        "rate": 4_800_000, "eta": 14_400,
        "folders": [
            folder("front-door"), folder("garden", settling=2, retention=retention),
            folder("card", "absent: nothing is mounted at /media/camera (require.mount)"),
              folder("workshop", "scanning", card=card),
            folder("<b>yard</b>", "failed: cannot be read: Permission denied")],
        "destinations": [
            destination("nas", "tus", len(running), waiting // 2, space={
                "unit": "bytes", "free": 900 * GB, "used": 3100 * GB, "limit": 4000 * GB, "asked_at": now(-240),
                "text": "900 GB of 4.0 TB free"}, limit=6_000_000),
            destination("archive", "s3", 0, waiting // 4, holds[0][0]),
            destination("cloud", "vimeo", 0, waiting - waiting // 2 - waiting // 4, holds[1][0])],
        "staging": staging,
        "warnings": ["the disk of the staging folder has 2.1 GB left above `staging.keep_free`",
                     "/srv/camera/garden/a.mp4 has not settled for 2 h: a program has it open"],
        "settling": [{"folder": "garden", "path": "/srv/camera/garden/rec-0815.mp4", "size": 812_000_000,
                      "since": now(-7300), "reason": "a program has it open (`settle.writers`)", "rate": 2_100_000,
                      "overdue": True}],
        "classes": [
            {"folder": "garden", "destination": "archive", "waiting": waiting // 4, "hold": holds[0][0]},
            {"folder": "workshop", "destination": "cloud", "waiting": waiting // 4, "hold": holds[1][0]},
            {"folder": "<b>yard</b>", "destination": "nas", "waiting": waiting // 4, "hold": holds[3][0]}],
        "queue": [
            {"folder": source, "destination": target, "waiting": waiting // 4, "bytes": waiting // 4 * 40_000_000}
            for source, target in zip(FOLDERS, DESTINATIONS)],
        "hooks": [
            {"name": "tell-home", "target": "https://hooks.example", "waiting": 4, "oldest": now(-900),
              "delivered": 211,
             "given_up": 0, "dropped": 0, "last_delivered": now(-1200),
             "hold": hold("backoff", "hooks.example answered 503", 45)},
            {"name": "index", "target": "/usr/local/bin/index", "waiting": 0, "delivered": 1402, "given_up": 1,
             "dropped": 0, "last_delivered": now(-40)}],
    }


def plan(daemon):
    base = {"from": now(), "until": now(48 * HOUR), "is_cut": False, "rates": [], "steps": [], "queues": [],
      "notes": []}
    if daemon.empty:
        return base
    night = hold("rule", WINDOW_TEXT, 5 * HOUR)
    quota = hold("quota", QUOTA_TEXT, 20 * HOUR)

    def step(begin, end, source, target, total, reason, holds, network="unmetered"):
        return {"from": now(begin * HOUR), "to": now(end * HOUR), "folder": source, "destination": target,
                "interface": "eth0", "network": network, "files": int(total / 4e7), "bytes": int(total),
                "rate": 2_000_000, "end": reason, "holds": holds}

    def queue(source, target, total, ends=None, left=0, waits=(), obstacles=(), **more):
        view = {"folder": source, "destination": target, "files": int(total / 4e7), "bytes": int(total),
                "left_files": int(left / 4e7), "left_bytes": int(left), "copying": 0, "paused": 0, "standby": 0,
                "going": 0, "turns": 0, "waits": list(waits), "obstacles": list(obstacles), **more}
        return view | {"ends": now(ends * HOUR)} if ends else view

    def wait(kind, text, begin, end, seconds):
        view = {"kind": kind, "text": text, "from": now(begin * HOUR), "seconds": seconds}
        return view | {"until": now(end * HOUR)} if end else view

    offline = "the modem roams, and rule `roaming` of policy (sluice.yaml:9) pauses then"
    return base | {
        "rates": [{"destination": "nas", "rate": 2_000_000, "source": "measured"}],
        "steps": [
            step(0, 3.2, "front-door", "nas", 2.3e10, "done", []),
            step(5, 7.5, "garden", "archive", 1.8e10, "held", [quota]),
            step(20, 26, "garden", "archive", 4.3e10, "held", [night]),
            step(29, 36, "garden", "archive", 5e10, "done", []),
            step(9, 10, "workshop", "cloud", 2e9, "held", [quota], "metered"),
            step(33, 34, "workshop", "cloud", 2e9, "held", [quota], "metered")],
        "queues": [
            queue("front-door", "nas", 2.3e10, 3.2),
            queue("garden", "archive", 1.1e11, 36, waits=[
                wait("rule", WINDOW_TEXT, 0, 5, 18000), wait("quota", QUOTA_TEXT, 7.5, 20, 45000)]),
            queue("workshop", "cloud", 9e9, 81, 5e9, [wait("quota", QUOTA_TEXT, 0, 9, 90000)], paused=2),
            queue("<b>yard</b>", "nas", 3e9, None, 3e9, [wait("rule", offline, 0, None, 172800)],
                  [{"kind": "never", "text": "a file of 3.0 GB never fits into the quota of 2 GB a day", "files": 1,
                    "bytes": 3_000_000_000}])],
        "notes": ["the present networks and routes, destinations, power, temperature, `busy` sources and pauses without "
                  "an end are assumed to stay as they are now, and no new files are assumed"],
    }


def usage(query, empty):
    by = query.get("by", "network")
    groups = {"network": ("unmetered", "metered", "local", "any"), "destination": ("nas", "archive", "cloud"),
              "folder": ("front-door", "garden", "workshop", "<b>yard</b>")}[by]
    today = datetime.datetime.now(datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)

    def period(name, start, end, scale, seed):
        parts = [] if empty else [
            {"name": group, "bytes": int(scale * (seed * (31 + 7 * place) % 97) / (97 * (place + 1) ** 2)),
             "received": int(scale / 400), "files": seed * 13 % 90} for place, group in enumerate(groups)]
        parts = sorted((part for part in parts if part["bytes"]), key=lambda part: -part["bytes"])
        return {"name": name, "from": start.isoformat(), "until": end.isoformat(), "parts": parts,
                **{key: sum(part[key] for part in parts) for key in ("bytes", "received", "files")}}

    one = datetime.timedelta(days=1)
    days = [period((today - one * back).strftime("%Y-%m-%d"), today - one * back, today - one * (back - 1), 9e9, back
      + 5)
            for back in reversed(range(int(query.get("days", 7))))]
    months = []
    for back in reversed(range(int(query.get("months", 3)))):
        year, month = divmod(today.year * 12 + today.month - 1 - back, 12)
        start = today.replace(year=year, month=month + 1, day=1)
        months.append(period(start.strftime("%Y-%m"), start, start + one * 28, 1.6e11, back + 3))
    view = {"by": by, "days": days, "months": months, "quotas": [] if empty else quotas()}
    if "minutes" in query:
        minute = datetime.timedelta(minutes=1)
        start = datetime.datetime.now(datetime.timezone.utc).replace(second=0, microsecond=0)
        view["minutes"] = [
            period((start - minute * back).strftime("%H:%M"), start - minute * back, start - minute * (back - 1),
              2.4e8, back + 9)
            for back in reversed(range(int(query["minutes"])))]
    return view


def quotas():
    def quota(place, text, limit, used, reserved, hours, **more):
        begin = now((hours - 24 * (1 if "day" in text else 30)) * HOUR)
        return {"place": place, "text": text, "counts": "bytes", "direction": "sent", "limit": limit, "used": used,
                "reserved": reserved, "left": limit - used - reserved, "from": begin, "until": now(hours * HOUR),
                  **more}
    return [quota("policy", "200 GB a month", 200 * GB, 122 * GB, GB, 200),
            quota("destinations.cloud", "2 GB a day", 2 * GB, 2 * GB, 0, 9),
            quota("policy", "5 GB a month", 5 * GB, 4 * GB + 300_000_000, 0, 380, name="lte-plan", direction="both",
                  when="over lte: interface wwan*, metered"),
            quota("folder garden", "500 files a day", 500, 112, 2, 9) | {"counts": "files"}]


def routes():
    return {"destinations": [
        {"destination": "nas", "way": {"interface": "eth0", "address": "192.0.2.5", "text": "unmetered: eth0 is wired"},
         "other_ways": [{"interface": "wwan0", "address": "198.51.100.7",
           "text": "metered, and `metered: pause` holds it"}]},
        {"destination": "archive", "way": {"text": "no rule depends on networks, so the kernel chooses the route"},
         "other_ways": []}]}


def check(body):
    steps = [{"step": "name", "verdict": "ok", "detail": "nas.example is 192.0.2.7"},
             {"step": "route", "verdict": "ok", "detail": "to 192.0.2.7 over eth0, from 192.0.2.5"},
             {"step": "tls", "verdict": "warning",
               "detail": "certificate of CN = nas.example, valid until 2026-12-09 (10 days)"},
             {"step": "flow", "verdict": "ok", "detail": "tus 1.0.0 with creation, termination"}]
    found = [
        {"about": "folder", "name": "front-door", "verdict": "ok",
          "detail": "/srv/camera/front, writable; sources are deleted"},
        {"about": "folder", "name": "<b>yard</b>", "verdict": "failed",
          "detail": "/srv/camera/yard: Permission denied"},
        {"about": "staging", "name": "/var/lib/sluice/staging", "verdict": "ok", "detail": "writable, 412 GB free"},
        {"about": "destination", "name": "nas", "verdict": "warning", "detail": "tus 1.0.0; `http.ca_file` ends soon",
         "steps": steps}]
    if body.get("folder") or body.get("destination"):
        found = [each for each in found if each["name"] in (body.get("folder"), body.get("destination"))]
    return {"ok": all(each["verdict"] != "failed" for each in found), "checks": found}


def thumbnail(reference):
    """A small picture of a sky over a field, of other colours for each upload."""
    width, height, tone = 96, 54, zlib.crc32(reference.encode()) % 120
    rows = b"".join(
        b"\0" + bytes(channel for x in range(width) for channel in (
            (60 + tone, 110 + row, 190 - tone // 2) if row < 30 + (x * (tone + 7)) % 23 // 4
            else (50 + tone // 3, 90 + x // 4, 50 + row // 2)))
        for row in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
