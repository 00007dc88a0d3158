"""The video service's calls, and the service that a user would run to hand out upload addresses."""

import base64
import hashlib
import json
import re
import secrets
import uuid
from urllib.parse import urlsplit

import oss_signatures as signatures
from oss_state import Refusal, iso

VERSION = "2017-03-21"
PICTURES = set("png jpg jpeg gif heic webp".split())
MEDIA = set("""mp4 ts 3gp mpg mpeg mpe dat vob asf avi wmv flv f4v rm rmvb mov mkv m3u8 dv gif m2t m4v mj2 mjpeg mts ogg qt swf
               webm mp3 wma wav aac ra m4a flac ape ac3 amr caf acm""".split())


def extension(name):
    """The extension of the last component, as it was written; empty when there is none."""
    last = re.split(r"[/\\]", name)[-1]
    return last.rpartition(".")[2] if "." in last.strip(".") else ""


# ------------------------------------------------------------------------------------------------ what values may be


def up_to(count):
    return lambda value: len(value) <= count


def whole(value):
    return value.isascii() and value.isdigit()


def tags(value):
    return len(value.split(",")) <= 16 and all(len(tag) <= 32 for tag in value.split(","))


def url(value):
    return urlsplit(value).scheme in ("http", "https") and bool(urlsplit(value).netloc)


def user_data(value):
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False


def shaped(pattern):
    return lambda value: re.fullmatch(pattern, value) is not None


COMMON = {"Title": up_to(128), "Description": up_to(1024), "CateId": whole, "Tags": tags, "StorageLocation": up_to(256),
          "UserData": user_data, "AppId": shaped(r"app-[A-Za-z0-9-]+")}
RULES = {  # action -> (what has to be there, what each value may be)
    "CreateUploadVideo": (("Title", "FileName"), COMMON | {
        "FileName": lambda value: extension(value).lower() in MEDIA, "FileSize": whole, "CoverURL": url, "TemplateGroupId": up_to(64),
        "WorkflowId": up_to(64), "ReferenceId": shaped(r"[A-Za-z0-9_-]{6,64}"), "TranscodeMode": shaped("NoTranscode|FastTranscode")}),
    "RefreshUploadVideo": ((), {"VideoId": up_to(64), "ReferenceId": up_to(64)}),
    "CreateUploadImage": (("ImageType",), COMMON | {
        "ImageType": shaped("default|cover"), "ImageExt": lambda value: value in PICTURES, "OriginalFileName": up_to(256)}),
    "GetVideoInfo": (("VideoId",), {"VideoId": up_to(64)}),
    "GetMezzanineInfo": ((), {"VideoId": up_to(64), "ReferenceId": up_to(64)}),
    "GetImageInfo": (("ImageId",), {"ImageId": up_to(64)}),
}


def check(action, given):
    needed, rules = RULES[action]
    for name in needed:
        if not given.get(name):
            raise Refusal(400, "MissingParameter", f"{name} is mandatory for this action.")
    for name, allowed in rules.items():
        if given.get(name) and not allowed(given[name]):
            code = "InvalidParameter.FileName" if name == "FileName" else "InvalidParameter"
            raise Refusal(400, code, f"The specified parameter {name} is not valid.")


# ------------------------------------------------------------------------------------------------ who calls


def known(state, id, token):
    """The key of a call, or the refusal, which differs from that of the storage."""
    key = state.keys.get(id)
    if not key or key.token and not token:
        raise Refusal(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
    if not key.active:
        raise Refusal(400, "InvalidAccessKeyId.Inactive", "Specified access key is disabled.")
    if token != key.token:
        other = any(token == one.token for one in state.keys.values())
        raise Refusal(400, "InvalidSecurityToken." + ("MismatchWithAccessKey" if other else "Malformed"), "Specified SecurityToken is not valid.")
    if key.token and state.now() >= key.ends:
        raise Refusal(400, "InvalidSecurityToken.Expired", "Specified SecurityToken is expired.")
    return key


def check_time(state, said):
    when = signatures.moment(said, signatures.ISO)
    if when is None:
        raise Refusal(400, "InvalidTimeStamp.Format", "Specified time stamp or date value is not well formatted.")
    if abs(when - state.now()) > signatures.SKEW:
        raise Refusal(400, "InvalidTimeStamp.Expired", "Specified time stamp or date value is expired.")


def check_nonce(state, nonce):
    with state.lock:
        if nonce in state.nonces:
            raise Refusal(400, "SignatureNonceUsed", "Specified signature nonce was used already.")
        state.nonces.add(nonce)


def by_query(state, call, given):
    for name in ("AccessKeyId", "Signature", "SignatureMethod", "SignatureVersion", "SignatureNonce", "Timestamp", "Version"):
        if not given.get(name):
            raise Refusal(400, "MissingParameter", f"{name} is mandatory for this action.")
    if (given["SignatureMethod"], given["SignatureVersion"]) != ("HMAC-SHA1", "1.0"):
        raise Refusal(400, "InvalidParameter", "The signature method or version is not supported.")
    key = known(state, given["AccessKeyId"], given.get("SecurityToken") or None)
    check_time(state, given["Timestamp"])
    string, right = signatures.rpc(key.secret, call.method, given)
    if right != given["Signature"]:
        raise Refusal(400, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation. server string to sign is:" + string)
    check_nonce(state, given["SignatureNonce"])
    return key, given["Version"]


def by_headers(state, call, body):
    claim = signatures.acs3_claim(call.headers)
    if not claim:
        raise Refusal(400, "MissingParameter", "Authorization is missing or not well formed.")
    needed = {"host", "x-acs-action", "x-acs-version", "x-acs-date", "x-acs-signature-nonce", "x-acs-content-sha256"}
    needed |= {name for name in call.headers if name.startswith("x-acs-")}
    for name in sorted(needed):
        if not call.headers.get(name):
            raise Refusal(400, "MissingParameter", f"{name} is mandatory for this action.")
    key = known(state, claim.id, claim.token)
    check_time(state, call.headers["x-acs-date"])
    payload = hashlib.sha256(body).hexdigest()
    right = signatures.acs3(key.secret, claim.id, call.method, call.query, call.headers, claim.extra, payload)
    right = signatures.acs3_claim({"authorization": right})
    if claim.extra != sorted(set(claim.extra)) or not needed <= set(claim.extra) or payload != call.headers["x-acs-content-sha256"] or right.signature != claim.signature:
        raise Refusal(400, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation.")
    check_nonce(state, call.headers["x-acs-signature-nonce"])
    return key, call.headers["x-acs-version"]


# ------------------------------------------------------------------------------------------------ the calls


def blobs(state, bucket, name):
    """Where to upload and with what, for one object; new keys each time."""
    settings = state.settings
    key = state.issue(bucket=bucket, key=name, services=("oss",))
    address = {"Endpoint": settings["vod_endpoint"] or f"http://127.0.0.1:{state.port}", "Bucket": bucket, "FileName": name}
    # The service says an hour, and takes the key for 3000 seconds.
    auth = {"SecurityToken": key.token, "AccessKeyId": key.id, "AccessKeySecret": key.secret, "Expiration": "3600", "Region": state.region}
    if settings["say_end"]:
        said = key.ends if settings["said_lifetime"] is None else state.now() + settings["said_lifetime"]
        auth["ExpireUTCTime"] = iso(said, short=True)
    pack = lambda value: base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()
    return {"UploadAddress": pack(address), "UploadAuth": pack(auth)}


def create_video(state, given, by):
    check("CreateUploadVideo", given)
    video = uuid.uuid4().hex
    with state.lock:
        reference = given.get("ReferenceId")
        if reference and any(one["reference"] == reference for one in state.videos.values()):
            raise Refusal(400, "InvalidParameter.ReferenceId", "The specified ReferenceId exists already.")
        short = secrets.token_hex(4)
        state.videos[video] = {
            "number": len(state.videos), "title": given["Title"], "file": given["FileName"], "size": given.get("FileSize"), "reference": reference or None,
            "bucket": state.settings["vod_bucket"], "key": f"sv/{short}/{short}.{extension(given['FileName'])}",
            "given": {name: value for name, value in given.items() if name in RULES["CreateUploadVideo"][1]},
            "by": by, "refreshes": 0, "refreshes_after_upload": 0}
    return {"VideoId": video} | blobs(state, state.videos[video]["bucket"], state.videos[video]["key"])


def refresh_video(state, given, by, move=False):
    check("RefreshUploadVideo", given)
    video, reference = given.get("VideoId"), given.get("ReferenceId")
    if not video and not reference:
        raise Refusal(400, "MissingParameter", "VideoId is mandatory for this action.")
    with state.lock:
        if not video:
            video = next((id for id, one in state.videos.items() if one["reference"] == reference), None)
        found = state.videos.get(video)
        if not found or found.get("image"):  # For a picture there is no such call: it takes a new address.
            raise Refusal(404, "InvalidVideo.NotFound", "The video does not exist.")
        found["refreshes"] += 1
        found["refreshes_after_upload"] += (found["bucket"], found["key"]) in state.objects
        if move:
            found["key"] = f"sv/{secrets.token_hex(4)}/moved.{extension(found['key'])}"
    return {"VideoId": video} | blobs(state, found["bucket"], found["key"])


def create_image(state, given, by):
    check("CreateUploadImage", given)
    image, bucket = uuid.uuid4().hex, state.settings["vod_bucket"]
    name = f"image/{given['ImageType']}/{image[:16]}.{given.get('ImageExt') or 'png'}"
    with state.lock:
        state.videos[image] = {"number": len(state.videos), "file": given.get("OriginalFileName"), "title": given.get("Title"), "image": True, "reference": None, "bucket": bucket, "key": name, "by": by,
                               "given": {field: value for field, value in given.items() if field in RULES["CreateUploadImage"][1]}}
    where = f"http://127.0.0.1:{state.port}/{bucket}/{name}"
    return {"ImageId": image, "ImageURL": where, "FileURL": where} | blobs(state, bucket, name)


def info(state, action, given):
    """Whether the bytes of a medium are there. Of a picture the maker's clients read the size as a text, of a video as a number."""
    check(action, given)
    medium = given.get("VideoId") or given.get("ImageId")
    if given.get("ReferenceId") and not medium:
        medium = next((id for id, one in state.videos.items() if one["reference"] == given["ReferenceId"]), None)
    found = state.videos.get(medium)
    image = action == "GetImageInfo"
    if not found or bool(found.get("image")) != image:
        raise Refusal(404, "InvalidImage.NotFound" if image else "InvalidVideo.NotFound", "The medium does not exist.")
    stored = state.objects.get((found["bucket"], found["key"]))
    status = "Normal" if stored and not state.settings["info_lags"] else "Uploading"
    if state.settings["info_names"]:
        medium, status = state.settings["info_names"], "Normal"
        size = int(state.settings["info_size"])
        return {"ImageInfo": {"ImageId": medium, "Status": status, "Mezzanine": {"FileSize": str(size)}}} if image else {"Mezzanine": {"VideoId": medium, "Status": status, "Size": size}}
    if state.settings["media_status"] and stored:
        status = state.settings["media_status"]  # what the service makes of what it has
    if action == "GetVideoInfo":
        return {"Video": {"VideoId": medium, "Status": status} | ({"Size": stored.size} if stored else {})}
    if image:
        return {"ImageInfo": {"ImageId": medium, "Status": status, "Mezzanine": {"FileSize": str(stored.size)} if stored else {}}}
    return {"Mezzanine": {"VideoId": medium, "Status": status} | ({"Size": stored.size} if stored else {})}


def serve(state, call):
    """A signed call, in either of the two ways."""
    body = call.read(1 << 20)
    given = dict(call.query)
    if call.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        given |= dict(signatures.pairs(body.decode()))
    modern = call.headers.get("authorization", "").startswith("ACS3-")  # The older clients send x-acs-action as well.
    call.json = modern or given.get("Format", "").upper() == "JSON"
    if call.method not in ("GET", "POST"):
        raise Refusal(405, "UnsupportedHTTPMethod", "This http method is not supported.")
    key, version = by_headers(state, call, body) if modern else by_query(state, call, given)
    call.signer = key
    if version != VERSION:
        raise Refusal(400, "InvalidVersion", "Specified parameter Version is not valid.")
    if call.operation not in RULES:
        raise Refusal(404, "InvalidAction.NotFound", "Specified api is not found, please check your url and method.")
    if "vod" not in key.services:
        raise Refusal(403, "Forbidden.RAM", "User not authorized to operate on the specified resource, or this API doesn't support RAM.")
    if call.operation == "CreateUploadVideo":
        found = create_video(state, given, key.id)
    elif call.operation == "RefreshUploadVideo":
        found = refresh_video(state, given, key.id, bool(call.fault("move")))
    elif call.operation in ("GetVideoInfo", "GetMezzanineInfo", "GetImageInfo"):
        found = info(state, call.operation, given)
    else:
        found = create_image(state, given, key.id)
    return found


# ------------------------------------------------------------------------------------------------ the user's own service


def own_service(state, call):
    """Unsigned, for the user's network only. The one place that knows how a request to it is written."""
    if any(call.headers.get(name.lower()) != value for name, value in state.settings["own_headers"].items()):
        raise Refusal(401, "Unauthorized", "A header that is asked for is missing or wrong.")
    try:
        asked = json.loads(call.read(1 << 20) or b"{}")
    except ValueError:
        raise Refusal(400, "InvalidParameter", "The body is not JSON.")
    if call.operation == "Sts":
        key = state.issue(lifetime=asked.get("lifetime"), services=asked.get("services", ("oss", "vod")))
        return {"AccessKeyId": key.id, "AccessKeySecret": key.secret, "SecurityToken": key.token, "Expiration": iso(key.ends, short=True)}
    operation = asked.get("operation", "create")
    if operation == "check":
        return {}
    given = dict(asked.get("parameters") or {})
    name, size = str(asked.get("file") or ""), asked.get("size")
    media = asked.get("media") or asked.get("video")
    kind = asked.get("kind") or ("image" if extension(name).lower() in PICTURES - MEDIA else "video")
    if media and kind != "image":
        return packed(state, refresh_video(state, {"VideoId": media}, "service", bool(call.fault("move"))))
    given.setdefault("Title", name[:128])
    if kind == "image":
        return packed(state, create_image(
            state, {"ImageType": "default", "ImageExt": extension(name).lower(), "OriginalFileName": name} | given, "service"))
    given |= {"FileName": name} | ({"FileSize": str(size)} if size is not None else {})
    reference = asked.get("reference")
    if reference and any(one["reference"] == reference for one in state.videos.values()):
        return packed(state, refresh_video(state, {"ReferenceId": reference}, "service"))
    return packed(state, create_video(state, given | ({"ReferenceId": reference} if reference else {}), "service"))


def packed(state, found):
    """As services of different people pass it on."""
    style = state.settings["own_style"]
    if style in ("text", "object"):
        for name in ("UploadAddress", "UploadAuth"):
            plain = base64.b64decode(found[name]).decode()
            found[name] = plain if style == "text" else json.loads(plain)
    return {"Code": "OK", "data": found} if style == "wrapped" else found
