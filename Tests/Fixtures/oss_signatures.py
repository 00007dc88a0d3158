"""The four signatures of the vendor, recomputed by the vendor's own code from what came over the wire.

Nothing here signs by rules of this project: a mistake in our reading of the rules would otherwise sit on both
sides of a test. Only the taking apart of a request is written here.
"""

import hashlib
import re
from collections import namedtuple
from datetime import datetime, timezone
from urllib.parse import quote, unquote_to_bytes

import crcmod
from alibabacloud_oss_v2.signer import SignerV1, SignerV4
from alibabacloud_oss_v2.types import HttpRequest, SigningContext

# What only some servers need is loaded when it is: each of the vendor's packages takes a third of a second, and tests start many.

NO_BODY = hashlib.sha256(b"").hexdigest()
SKEW = 15 * 60

# What a request says about its signature. `extra` is the names of the headers that are signed beside the usual ones.
Claim = namedtuple("Claim", "scheme id signature time region day extra token")


class Unreadable(Exception):
    def __init__(self, message, ec="0002-00000063"):
        super().__init__(message)
        self.ec = ec


def text(raw):
    """Header values and paths are bytes on the wire; the signers want text."""
    if isinstance(raw, str):
        raw = raw.encode("latin-1")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def pairs(query):
    """The decoded pairs of a raw query. Both kinds of a space are read, since the vendor's clients send both."""
    found = []
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        found.append(tuple(text(unquote_to_bytes(side.replace("+", " "))) for side in (name, value)))
    return found


COMPACT, ISO, HTTP = "%Y%m%dT%H%M%SZ", "%Y-%m-%dT%H:%M:%SZ", "%a, %d %b %Y %H:%M:%S GMT"


def moment(spelled, *shapes):
    """Seconds since 1970 of a time in exactly one of these spellings, by default of all three, or None."""
    for shape in shapes or (COMPACT, ISO, HTTP):
        try:
            when = datetime.strptime(spelled, shape).replace(tzinfo=timezone.utc)
        except (TypeError, ValueError):
            continue
        if when.strftime(shape) == spelled:
            return when.timestamp()
    return None


# ------------------------------------------------------------------------------------------------ object storage


def oss_claim(headers):
    """Reads the Authorization header of a storage request; None when there is none."""
    value = headers.get("authorization")
    if value is None:
        return None
    token = headers.get("x-oss-security-token")
    old = re.fullmatch(r"OSS ([^:\s]+):([A-Za-z0-9+/=]+)", value.strip())
    if old:
        # One of the vendor's clients names the token of this scheme without the prefix.
        token = token or headers.get("security-token")
        said = headers.get("x-oss-date") or headers.get("date")
        return Claim("V1", old[1], old[2], moment(said, HTTP), None, None, None, token)
    if not value.startswith("OSS4-HMAC-SHA256 "):
        raise Unreadable("Authorization header is invalid.")
    fields = dict(part.strip().partition("=")[::2] for part in value.split(" ", 1)[1].split(","))
    scope = fields.get("Credential", "").split("/")
    if len(scope) != 5 or scope[3:] != ["oss", "aliyun_v4_request"] or not fields.get("Signature"):
        raise Unreadable("Authorization header is invalid.")
    extra = None
    if "AdditionalHeaders" in fields:
        extra = fields["AdditionalHeaders"].split(";")
        if not fields["AdditionalHeaders"]:
            raise Unreadable("Authorization header is invalid: AdditionalHeaders is empty.", "0002-00000209")
        if extra != sorted(extra) or extra != [name.lower() for name in extra] or not all(map(headers.get, extra)):
            raise Unreadable("Authorization header is invalid: AdditionalHeaders.", "0002-00000209")
    if headers.get("x-oss-content-sha256") != "UNSIGNED-PAYLOAD":
        raise Unreadable("The x-oss-content-sha256 header is missing or invalid.")
    said = headers.get("x-oss-date", "")
    if moment(said, COMPACT) is None or said[:8] != scope[1]:
        raise Unreadable("Invalid signing date in Authorization header.")
    return Claim("V4", scope[0], fields["Signature"], moment(said, COMPACT), scope[2], scope[1], extra, token)


def oss_v1(secret, method, bucket, key, query, headers):
    """(string to sign, signature) of the first scheme."""
    context = storage_context(method, bucket, key, query, headers)
    from oss2.auth import ProviderAuth

    # The newer client's list of signed parameters is short of some that the older one's has.
    context.sub_resource = ProviderAuth._subresource_key_set
    signer = SignerV1()
    string = signer._calc_string_to_sign(context)
    return string, signer._calc_signature(secret, string)


def oss_v4(secret, method, bucket, key, query, headers, region, day, extra=None):
    """(string to sign, signature, canonical request) of the fourth scheme."""
    context = storage_context(method, bucket, key, query, headers)
    signer = SignerV4()
    canonical = signer._calc_canonical_request(context, extra or [])
    scope = signer._build_scope(date=day, region=region, product="oss")
    string = signer._calc_string_to_sign(headers["x-oss-date"], scope, canonical)
    return string, signer._calc_signature(secret, day, region, "oss", string), canonical


def storage_context(method, bucket, key, query, headers):
    # Encoded anew from the decoded pairs: `uploads` and `uploads=` are one and the same to the service.
    url = "http://service/?" + "&".join(quote(name, safe="") + "=" + quote(value, safe="") for name, value in query)
    return SigningContext(bucket=bucket, key=key, request=HttpRequest(method, url, headers=dict(headers)))


# ------------------------------------------------------------------------------------------------ remote calls


def rpc(secret, method, parameters):
    """(string to sign, signature) of a call with everything in its query."""
    from alibabacloud_tea_openapi.utils import Utils
    from aliyunsdkcore.auth.composer import rpc_signature_composer

    signed = {name: value for name, value in parameters.items() if name != "Signature"}
    string = getattr(rpc_signature_composer, "__compose_string_to_sign")(method, signed)
    older = getattr(rpc_signature_composer, "__get_signature")(string, secret)
    newer = Utils.get_rpcsignature(signed, method, secret)
    # Where the vendor's two clients differ there is no oracle, and no answer either.
    return string, newer if newer == older else "the vendor's clients do not agree"


def acs3_claim(headers):
    value = headers.get("authorization", "")
    found = re.fullmatch(r"ACS3-HMAC-SHA256 Credential=([^,]+),\s*SignedHeaders=([^,]+),\s*Signature=([0-9a-f]+)", value)
    if not found:
        return None
    return Claim("ACS3", found[1], found[3], moment(headers.get("x-acs-date"), ISO), None, None, found[2].split(";"),
                 headers.get("x-acs-security-token"))


def acs3(secret, id, method, query, headers, names, payload):
    """The Authorization header as it has to be."""
    from alibabacloud_tea_openapi.utils import Utils
    from darabonba.request import DaraRequest

    request = DaraRequest()
    request.method, request.pathname, request.query = method, "/", dict(query)
    request.headers = {name: headers.get(name, "") for name in names}
    return Utils.get_authorization(request, "ACS3-HMAC-SHA256", payload, id, secret)


# ------------------------------------------------------------------------------------------------ check sum


class Crc64:
    """CRC-64/XZ, by the library and with the parameters that the vendor's client has."""

    fun = staticmethod(crcmod.mkCrcFun(0x142F0E1EBA9EA3693, initCrc=0, xorOut=0xFFFFFFFFFFFFFFFF, rev=True))

    def __init__(self):
        self.crc = 0

    def update(self, block):
        self.crc = Crc64.fun(block, self.crc)


def combine(first, second, length):
    from oss2.utils import Crc64 as Vendors

    return Vendors().combine(first, second, length)
