"""How requests to the storage are read, and how its answers are written."""

import base64
import binascii
import json
import re
from urllib.parse import parse_qsl, quote
from xml.sax.saxutils import escape

from oss_state import Answer, Refusal

KEPT = ("content-type", "cache-control", "content-disposition", "content-encoding", "expires", "x-oss-storage-class",
        "x-oss-server-side-encryption", "x-oss-object-acl", "x-oss-tagging", "x-oss-notification", "x-oss-callback")
CHOICES = {
    "x-oss-storage-class": ("Standard", "IA", "Archive", "ColdArchive", "DeepColdArchive"),
    "x-oss-server-side-encryption": ("AES256", "KMS", "SM4"),
    "x-oss-object-acl": ("default", "private", "public-read", "public-read-write"),
    "x-oss-forbid-overwrite": ("true", "false"),
}


def xml(name, fields):
    """Fields are (name, text) or (name, fields), in order."""
    inner = "".join(xml(*one) if isinstance(one[1], list) else f"<{one[0]}>{escape(str(one[1]))}</{one[0]}>" for one in fields)
    return f"<{name}>{inner}</{name}>"


def document(name, fields):
    return Answer(200, {"Content-Type": "application/xml"},
                  ('<?xml version="1.0" encoding="UTF-8"?>\n' + xml(name, fields)).encode())


def bad(message, ec=None, code="InvalidArgument", **more):
    return Refusal(400, code, message, ec, **more)


def number(call, name, default, low, high):
    value = call.q.get(name, "")
    if not value:
        return default
    if not re.fullmatch("[0-9]+", value) or not low <= int(value) <= high:
        raise bad(f"{name} has to be from {low} to {high}.", ArgumentName=name, ArgumentValue=value)
    return int(value)


def coded(call):
    """How names are written in lists: as they are, or encoded when that is asked for."""
    return (lambda name: quote(name, safe="/")) if call.q.get("encoding-type") == "url" else lambda name: name


def said_coding(call):
    return [("EncodingType", "url")] if call.q.get("encoding-type") == "url" else []


def check_headers(headers):
    for name, allowed in CHOICES.items():
        if headers.get(name, allowed[0]) not in allowed:
            raise bad(f"{name} is not one of {', '.join(allowed)}.", ArgumentName=name, ArgumentValue=headers[name])
    limit = headers.get("x-oss-traffic-limit")
    if limit is not None and not (re.fullmatch("[0-9]+", limit) and 819200 <= int(limit) <= 838860800):
        raise bad("x-oss-traffic-limit has to be from 819200 to 838860800.", "0004-00000502")
    tags = parse_qsl(headers.get("x-oss-tagging", ""), keep_blank_values=True)
    if len(tags) > 10 or len(dict(tags)) != len(tags) or any(not n or len(n) > 128 or len(v) > 256 for n, v in tags):
        raise bad("The tags are not valid.", code="InvalidTag")
    for name, needed in (("x-oss-callback", "callbackUrl"), ("x-oss-callback-var", None), ("x-oss-notification", None)):
        if name in headers:
            try:
                inner = json.loads(base64.b64decode(headers[name], validate=True))
            except (ValueError, binascii.Error):
                inner = None
            if not isinstance(inner, dict) or needed and not inner.get(needed):
                raise bad(f"{name} is not Base64 of JSON.", ArgumentName=name)


def kept(headers):
    return {name: value for name, value in headers.items() if name in KEPT or name.startswith("x-oss-meta-")}
