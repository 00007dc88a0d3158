"""What the emulator keeps: keys, objects, unfinished uploads; and who may do what with them."""

import base64
import os
import secrets
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import oss_signatures as signatures


def iso(seconds, short=False):
    return time.strftime("%Y-%m-%dT%H:%M:%S" + ("Z" if short else ".000Z"), time.gmtime(seconds))


class Refusal(Exception):
    """An answer that says no. `more` are further fields of its body."""

    def __init__(self, status, code, message="", ec=None, headers=None, **more):
        super().__init__(code)
        self.status, self.code, self.message, self.ec = status, code, message or code, ec
        self.headers, self.more = headers or {}, more


@dataclass
class Answer:
    status: int = 200
    headers: dict = field(default_factory=dict)
    body: bytes = b""
    file: tuple = None  # path, first byte, count


@dataclass
class Key:
    id: str
    secret: str
    token: str = None
    ends: float = None
    bucket: str = None  # with `key`: the one object that it is good for
    key: str = None
    services: tuple = ("oss", "vod")
    active: bool = True
    issued: float = 0


@dataclass
class Stored:
    """An object or a part: the bytes are in a file, and this is what the service says of them."""
    path: Path
    size: int
    md5: str
    crc: int
    etag: str = ""
    headers: dict = field(default_factory=dict)
    kind: str = "Normal"
    changed: float = 0
    version: int = 0


@dataclass
class Upload:
    id: str
    bucket: str
    key: str
    begun: float
    headers: dict
    parts: dict = field(default_factory=dict)
    completing: threading.Lock = field(default_factory=threading.Lock)


class State:
    def __init__(self, folder, region="cn-shanghai"):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.region, self.lock, self.port = region, threading.RLock(), 0
        self.settings = {
            "skew": 0,  # seconds that the clock of the service is ahead
            "page_size": 1000,  # of every list
            "smallest_part": 102400, "body_timeout": 60,  # seconds that a piece of a body may take
            "path_style": True,  # False: only Host: bucket.name is served
            "lifetime": 3000,  # of temporary keys
            "said_lifetime": None,  # what ExpireUTCTime says instead
            "say_end": True,  # False: there is no ExpireUTCTime
            "vod_bucket": "outin-emulated",
            "vod_endpoint": None,  # what addresses say; without it, this server
            "media_status": None,  # what is said of a medium whose bytes are there, in place of "Normal"
            "info_lags": False,  # the video service has not noticed yet what was uploaded
            "info_names": None,  # the medium that information is of, whichever was asked for, and its size
            "info_size": 0,
            "own_style": "coded",  # how the user's own service passes on what it gets: coded, text, object, wrapped
            "own_headers": {},  # that the user's own service asks for
        }
        self.keys, self.buckets, self.objects, self.uploads = {}, {"cameras", "outin-emulated"}, {}, {}
        self.videos, self.nonces, self.record, self.faults = {}, set(), [], []

    def now(self):
        return time.time() + self.settings["skew"]

    def place(self):
        return self.folder / secrets.token_hex(12)

    def issue(self, lifetime=None, bucket=None, key=None, services=("oss", "vod")):
        """A temporary key. Its token has the characters that are spoiled by careless encoding."""
        new = Key("STS.N" + secrets.token_hex(10), secrets.token_urlsafe(30), "CAIS+/" + base64.b64encode(os.urandom(64)).decode(),
                  self.now() + (self.settings["lifetime"] if lifetime is None else lifetime), bucket, key, tuple(services),
                  issued=self.now())
        with self.lock:
            self.keys[new.id] = new
        return new

    def expire(self, id=None):
        for key in self.keys.values():
            if key.token and id in (None, key.id):
                key.ends = self.now() - 1

    def authorise(self, call):
        """The key that a storage request is signed with, or the refusal."""
        try:
            claim = signatures.oss_claim(call.headers)
        except signatures.Unreadable as problem:
            raise Refusal(400, "InvalidArgument", str(problem), problem.ec)
        if claim is None:
            raise Refusal(403, "AccessDenied", "You have no right to access this object because of bucket acl.", "0003-00000001")
        key = self.keys.get(claim.id)
        if not key or not key.active or key.token and not claim.token:
            raise Refusal(403, "InvalidAccessKeyId", "The OSS Access Key Id you provided does not exist in our records.",
                          "0002-00000902", OSSAccessKeyId=claim.id)
        if claim.token != key.token:
            raise Refusal(403, "InvalidSecurityToken", "The security token you provided is invalid.", "0002-00000006")
        self.check_end(key)
        if claim.time is None:
            raise Refusal(403, "AccessDenied", "OSS authentication requires a valid Date.", "0002-00000005")
        now = self.now()
        if abs(claim.time - now) > signatures.SKEW:
            if claim.day and claim.day != time.strftime("%Y%m%d", time.gmtime(now)) or call.fault("skew_in_words"):
                raise Refusal(400, "InvalidArgument", "Invalid signing date in Authorization header.")
            raise Refusal(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.",
                          "0002-00000504", RequestTime=iso(claim.time), ServerTime=iso(now))
        if claim.region not in (None, self.region):
            raise Refusal(400, "InvalidArgument", "Invalid signing region in Authorization header.")
        shape = key.secret, call.method, call.bucket, call.key, call.query, call.headers
        if claim.scheme == "V1":
            (string, right), more, ec = signatures.oss_v1(*shape), {}, "0002-00000040"
        else:
            string, right, canonical = signatures.oss_v4(*shape, claim.region, claim.day, claim.extra)
            more, ec = {"CanonicalRequest": canonical}, "0002-00000201"
        if right != claim.signature:
            raise Refusal(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. "
                          "Check your key and signing method.", ec, OSSAccessKeyId=key.id, SignatureProvided=claim.signature,
                          StringToSign=string, StringToSignBytes=string.encode().hex(" ").upper(), **more)
        if "oss" not in key.services or key.bucket and (key.bucket, key.key) != (call.bucket, call.key):
            raise Refusal(403, "AccessDenied", "You have no right to access this object.", "0003-00000001")
        return key

    def check_end(self, key):
        if key.token and self.now() >= key.ends:
            raise Refusal(403, "SecurityTokenExpired", "The security token you provided has expired.", "0002-00000007")


def upload_at(state, call):
    found = state.uploads.get(call.q.get("uploadId"))
    if not found or (found.bucket, found.key) != (call.bucket, call.key):
        raise Refusal(404, "NoSuchUpload", "The specified upload does not exist. The upload ID may be invalid, or the "
                      "upload may have been aborted or completed.", "0017-00000244", UploadId=call.q.get("uploadId", ""))
    return found
