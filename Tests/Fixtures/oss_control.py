"""How tests steer the emulator and ask it: faults, settings, and what has come to pass."""

import hashlib
import json
import secrets
from urllib.parse import quote

import oss_operations as storage
from oss_operations import BLOCK
from oss_signatures import Crc64
from oss_state import Answer, Key, iso

FAULTS = {  # what a fault does, and the values that it takes
    "error": {"status", "code", "message", "ec", "early"},  # `early`: not a byte of the body is read before
    "close": {"bytes", "reset"},  # the connection ends after so many bytes of the body
    "lose_answer": {"reset"},  # the work is done, the answer is not sent
    "cut": {"bytes"},  # the answer's body ends early, and the connection with it
    "slow": {"seconds"},  # the answer waits
    "slow_read": {"rate"},  # bytes a second of the body
    "callback_failed": set(),  # 203 after the work
    "wrong_crc": set(), "no_crc": set(), "lower_etag": set(), "loose_xml": set(),
    "expire": {"id", "bytes"},  # the temporary key of the request ends, before it or so many bytes into its body
    "skew_in_words": set(),  # a wrong time is told in the words of the fourth signature
    "drop_part": set(),  # taken, and lost
    "corrupt": {"seen"},  # one bit; `seen`: before the sums are made, so that the answer tells it
    "abort_leaves": set(),  # the parts go and the upload stays
    "move": set(),  # a refreshed video has another address
}


def matches(wanted, call):
    facts = {"operation": call.operation, "method": call.method, "bucket": call.bucket, "key": call.key,
             "part": int(call.q["partNumber"]) if call.q.get("partNumber", "").isdigit() else None, "upload": call.q.get("uploadId")}
    return all(value in call.path if name == "path" else facts[name] in value if isinstance(value, list) else facts[name] == value
               for name, value in wanted.items())


def strike(state, call):
    """The faults that are this request's. Each counts what it matches, whatever becomes of it."""
    with state.lock:
        for fault in state.faults:
            if not matches(fault["match"], call):
                continue
            fault["matched"] += 1
            if fault["matched"] >= fault["nth"] and (not fault["times"] or fault["struck"] < fault["times"]):
                fault["struck"] += 1
                call.faults.append(fault)


def damage(path):
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))


SUMS = {}


def digest(path, kind):
    """Of the bytes as they are now, whatever was said of them. Each kind on demand: the CRC takes far longer than SHA-256."""
    mark = path, path.stat().st_mtime_ns, kind
    if mark not in SUMS:
        one = Crc64() if kind == "crc" else hashlib.new(kind)
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                one.update(block)
        SUMS[mark] = str(one.crc) if kind == "crc" else one.hexdigest()
    return SUMS[mark]


def sums(path):
    return {"size": path.stat().st_size} | {kind: digest(path, kind) for kind in ("md5", "crc", "sha256")}


def shown_key(state, key):
    return {"ends": key.ends and iso(key.ends, short=True), "left": key.ends and round(key.ends - state.now(), 3), "bucket": key.bucket,
            "key": key.key, "services": key.services, "active": key.active, "temporary": bool(key.token)}


def asked(state, name):
    if name == "objects":
        return {f"{bucket}/{key}": sums(one.path) | {"etag": one.etag, "said_crc": str(one.crc), "type": one.kind, "headers": one.headers}
                for (bucket, key), one in state.objects.items()}
    if name == "uploads":
        return {one.id: {"bucket": one.bucket, "key": one.key, "begun": iso(one.begun), "headers": one.headers, "parts": {
            n: {"size": part.size, "md5": part.md5, "crc": str(part.crc)} for n, part in sorted(one.parts.items())}}
            for one in state.uploads.values()}
    if name == "keys":
        return {key.id: shown_key(state, key) for key in state.keys.values()}
    if name == "videos":
        return {id: one | {"uploaded": (one["bucket"], one["key"]) in state.objects} for id, one in state.videos.items()}
    if name in ("record", "faults", "settings"):
        return getattr(state, name)
    raise KeyError(name)


LINES = {  # the same as lines of text, names percent-coded, for whom JSON is too much
    "sums": lambda state: [f"{digest(one.path, 'sha256')}\t{one.path.stat().st_size}\t{one.path.resolve()}\t{quote(f'{bucket}/{key}', safe='')}"
                           for (bucket, key), one in state.objects.items()],
    "unfinished": lambda state: [quote(f"{one.bucket}/{one.key}", safe="") for one in state.uploads.values()],
    "operations": lambda state: [entry["operation"] or "none" for entry in state.record],
}


def set_faults(state, wanted):
    """Replaces all faults. What is no fault of a request but a state of the service is set with them."""
    faults, settings = [], {}
    for one in wanted if isinstance(wanted, list) else [wanted]:
        if one["do"] in ("skew", "page_size", "lifetime", "path_style"):
            settings[one["do"]] = one["value"]
        elif one["do"] == "expire_now":
            state.expire(one.get("id"))
        else:
            if strange := set(one) - FAULTS[one["do"]] - {"do", "match", "nth", "times"}:
                raise KeyError(f"{one['do']} takes no {', '.join(strange)}")
            if strange := set(one.get("match", {})) - {"operation", "method", "bucket", "key", "part", "upload", "path"}:
                raise KeyError(f"nothing matches by {', '.join(strange)}")
            faults.append({"match": {}, "nth": 1, "times": 1} | one | {"matched": 0, "struck": 0})
    state.faults = faults
    state.settings |= settings
    return faults


def new_key(state, wish):
    if wish.get("long_lived") or "id" in wish:
        lifetime = wish.get("lifetime")
        key = Key(wish.get("id") or "LTAI5t" + secrets.token_hex(9), wish.get("secret") or secrets.token_urlsafe(30), wish.get("token"),
                  None if not wish.get("token") else state.now() + (state.settings["lifetime"] if lifetime is None else lifetime),
                  wish.get("bucket"), wish.get("key"), tuple(wish.get("services", ("oss", "vod"))), wish.get("active", True), state.now())
        state.keys[key.id] = key
    else:
        key = state.issue(wish.get("lifetime"), wish.get("bucket"), wish.get("key"), wish.get("services", ("oss", "vod")))
    return {"AccessKeyId": key.id, "AccessKeySecret": key.secret, "SecurityToken": key.token, "Expiration": key.ends and iso(key.ends, short=True)}


def told(state, name, wish):
    if name == "forget":
        for what in wish or ["record"]:
            if what in ("objects", "uploads"):
                storage.forget(state, what)
            getattr(state, what).clear()
        return {}
    if name == "faults":
        return set_faults(state, wish)
    if name == "keys":
        return new_key(state, wish)
    if name == "expire":
        state.expire((wish or {}).get("id"))
        return asked(state, "keys")
    if name == "settings":
        if strange := set(wish) - set(state.settings):
            raise KeyError(", ".join(strange))
        state.settings |= wish
        return state.settings
    if name == "buckets":
        state.buckets.add(wish["name"])
        return sorted(state.buckets)
    if name in ("corrupt", "drop"):
        place = wish["bucket"], wish["key"]
        if "part" not in wish:
            damage(state.objects[place].path)
            return {}
        upload = next(one for one in state.uploads.values() if (one.bucket, one.key) == place)
        return {"lost": storage.drop(state, upload, wish["part"])} if name == "drop" else damage(upload.parts[wish["part"]].path) or {}
    raise KeyError(name)


def serve(state, call):
    call.side = "control"
    name = call.path.removeprefix("/_control/")
    body = call.read(1 << 24)
    try:
        with state.lock:
            if name in LINES and call.method == "GET":
                return Answer(200, {"Content-Type": "text/plain; charset=utf-8"}, "\n".join(LINES[name](state)).encode())
            found = asked(state, name) if call.method == "GET" else told(state, name, json.loads(body or b"null"))
            return Answer(200, {"Content-Type": "application/json"}, json.dumps(found).encode())
    except (KeyError, ValueError, TypeError, AttributeError, StopIteration) as problem:
        return Answer(400, {"Content-Type": "application/json"}, json.dumps({"problem": repr(problem)}).encode())
