"""Object storage as its manual says it: the operations. They know nothing of sockets."""

import base64
import hashlib
import re
import secrets
import xml.etree.ElementTree as ElementTree
from email.utils import formatdate
from urllib.parse import parse_qsl

from oss_signatures import Crc64
from oss_lists import bucket_info, bucket_location, list_objects, list_parts, list_uploads
from oss_state import Answer, Refusal, Stored, Upload, upload_at
from oss_wire import bad, check_headers, coded, document, kept, number, said_coding

BLOCK = 1 << 18
LARGEST_REQUEST = 5 << 30


def check_digest(call, stored):
    said = call.headers.get("content-md5")
    if said is None:
        return
    if said != base64.b64encode(bytes.fromhex(stored.md5)).decode():
        stored.path.unlink()
        raise wrong_digest()


def wrong_digest():
    return bad("The Content-MD5 you specified was invalid.", code="InvalidDigest")


def object_at(state, call):
    found = state.objects.get((call.bucket, call.key))
    if not found:
        raise Refusal(404, "NoSuchKey", "The specified key does not exist.", "0026-00000001", Key=call.key)
    return found


def check_overwrite(state, call):
    if call.headers.get("x-oss-forbid-overwrite") == "true" and (call.bucket, call.key) in state.objects:
        raise Refusal(409, "FileAlreadyExists", "The object you specified already exists and can not be overwritten.", "0026-00000005")


def keep(state, call, stored, headers, kind, etag):
    stored.headers, stored.kind, stored.etag = headers, kind, etag
    stored.changed = state.now()
    with state.lock:
        try:
            check_overwrite(state, call)  # Once more: another may have been faster.
        except Refusal:
            stored.path.unlink()
            raise
        old = state.objects.get((call.bucket, call.key))
        state.objects[call.bucket, call.key] = stored
    if old:
        old.path.unlink(missing_ok=True)


def answer_after_callback(call, plain):
    """With a callback the answer's body is what the called server says; nobody is called here."""
    if call.fault("callback_failed"):
        raise Refusal(203, "CallbackFailed", "Error status : 502.", "0007-00000203", headers=plain.headers)
    if "x-oss-callback" in call.headers:
        plain.headers["Content-Type"], plain.body = "application/json", b'{"Status":"OK"}'
    return plain


# ------------------------------------------------------------------------------------------------ operations


def put_object(state, call):
    check_headers(call.headers)
    check_overwrite(state, call)
    stored = call.store(state.place())
    check_digest(call, stored)
    keep(state, call, stored, kept(call.headers), "Normal", stored.md5.upper())
    return answer_after_callback(call, Answer(200, received(stored)))


def append_object(state, call):
    """More bytes behind those of an object, which was begun so and is that long."""
    check_headers(call.headers)
    position = number(call, "position", None, 0, (1 << 63) - 1)
    if position is None:
        raise bad("position has to be a number of bytes.", ArgumentName="position")

    def before():
        old = state.objects.get((call.bucket, call.key))
        if old and old.kind != "Appendable":
            raise Refusal(409, "ObjectNotAppendable", "The object is not appendable.")
        size = old.size if old else 0
        if position != size:
            raise Refusal(409, "PositionNotEqualToLength", "Position is not equal to file length.",
                          headers={"x-oss-next-append-position": str(size)})
        return old

    before()
    stored = call.store(state.place())
    check_digest(call, stored)
    try:
        with state.lock:
            old = before()  # Once more: another may have been faster.
            whole = join(state.place(), [old, stored] if old else [stored])
            etag = hashlib.md5(whole.md5.encode()).hexdigest().upper()  # Not that of the bytes.
            keep(state, call, whole, old.headers if old else kept(call.headers), "Appendable", etag)
    finally:
        stored.path.unlink()
    return Answer(200, {"ETag": f'"{etag}"', "x-oss-hash-crc64ecma": str(whole.crc), "x-oss-next-append-position": str(whole.size)})


def received(stored):
    return {"ETag": f'"{stored.etag}"', "x-oss-hash-crc64ecma": str(stored.crc),
            "Content-MD5": base64.b64encode(bytes.fromhex(stored.md5)).decode()}


def get_object(state, call):
    found = object_at(state, call)
    headers = {"Content-Type": "application/octet-stream", "x-oss-storage-class": "Standard"} | {
        name: value for name, value in found.headers.items() if name not in ("x-oss-tagging", "x-oss-notification", "x-oss-callback")}
    headers |= {"ETag": f'"{found.etag}"', "x-oss-hash-crc64ecma": str(found.crc), "x-oss-object-type": found.kind,
                "Last-Modified": formatdate(found.changed, usegmt=True), "Accept-Ranges": "bytes"}
    headers["Content-Type"] = headers.pop("content-type", headers["Content-Type"])
    if found.kind == "Appendable":
        headers["x-oss-next-append-position"] = str(found.size)
    if found.kind == "Normal":
        headers |= {"Content-MD5": received(found)["Content-MD5"]}
    if tags := parse_qsl(found.headers.get("x-oss-tagging", "")):
        headers["x-oss-tagging-count"] = str(len(tags))
    asked = re.fullmatch(r"bytes=(\d*)-(\d*)", call.headers.get("range", ""))
    if asked and any(asked.groups()):
        first, last = (int(side) if side else None for side in asked.groups())
        first, last = (max(0, found.size - last), found.size - 1) if first is None else (first, found.size - 1 if last is None else last)
        if first <= last < found.size:
            headers["Content-Range"] = f"bytes {first}-{last}/{found.size}"
            return Answer(206, headers, file=(found.path, first, last - first + 1))
    return Answer(200, headers, file=(found.path, 0, found.size))


def delete_object(state, call):
    with state.lock:
        old = state.objects.pop((call.bucket, call.key), None)
    if old:
        old.path.unlink(missing_ok=True)
    return Answer(204)


def initiate(state, call):
    check_headers(call.headers)
    if call.length:
        raise bad("The beginning of an upload has no body.")
    check_overwrite(state, call)
    new = Upload(secrets.token_hex(16).upper(), call.bucket, call.key, state.now(), kept(call.headers))
    with state.lock:
        state.uploads[new.id] = new
    write = coded(call)
    return document("InitiateMultipartUploadResult", said_coding(call) + [
        ("Bucket", new.bucket), ("Key", write(new.key)), ("UploadId", new.id)])


def upload_part(state, call):
    upload = upload_at(state, call)
    part = number(call, "partNumber", None, 1, 10000)
    if part is None:
        raise bad("Part number must be an integer between 1 and 10000.", ArgumentName="partNumber")
    check_headers(call.headers)
    stored = call.store(state.place())
    check_digest(call, stored)
    stored.etag, stored.changed = stored.md5.upper(), state.now()
    with upload.completing:
        if upload.id not in state.uploads:
            stored.path.unlink()
        upload_at(state, call)
        old = upload.parts.get(part)
        upload.parts[part] = stored
    if old:
        old.path.unlink(missing_ok=True)
    if call.fault("drop_part"):
        drop(state, upload, part)
    return Answer(200, received(stored))


def drop(state, upload, part):
    with state.lock:
        lost = upload.parts.pop(part, None)
    if lost:
        lost.path.unlink(missing_ok=True)
    return lost is not None


def forget(state, what):
    """Of all objects, or of all unfinished uploads, the files."""
    for one in list(state.objects.values()) if what == "objects" else [p for u in state.uploads.values() for p in u.parts.values()]:
        one.path.unlink(missing_ok=True)


def listed(call, upload):
    """The parts that a Complete names, as (number, ETag)."""
    body = call.read(4 << 20)
    said = call.headers.get("content-md5")
    if call.left or said not in (None, base64.b64encode(hashlib.md5(body).digest()).decode()):
        raise wrong_digest()
    if "x-oss-complete-all" in call.headers:
        if call.headers["x-oss-complete-all"] != "yes" or body:
            raise bad("x-oss-complete-all has to be yes, without a body.", "0042-00000217")
        return [(n, part.etag) for n, part in sorted(upload.parts.items())]
    malformed = bad("The XML you provided was not well-formed or did not validate against our published schema.", "0042-00000214",
                    "MalformedXML")
    try:
        root = ElementTree.fromstring(body)
        parts = [(part.findtext("PartNumber").strip(), part.findtext("ETag").strip().strip('"')) for part in root]
    except (ElementTree.ParseError, AttributeError):
        raise malformed
    if not all(re.fullmatch("-?[0-9]{1,18}", n) for n, _ in parts):
        raise malformed
    parts = [(int(n), etag) for n, etag in parts]
    if root.tag != "CompleteMultipartUpload" or not parts or not all(etag for _, etag in parts) or {p.tag for p in root} != {"Part"}:
        raise malformed
    return parts


def complete(state, call):
    upload = upload_at(state, call)
    check_headers(call.headers)
    parts = listed(call, upload)
    with upload.completing:
        upload_at(state, call)
        check_overwrite(state, call)
        numbers = [n for n, _ in parts]
        if any(n < 1 or n > 10000 for n in numbers):
            raise bad("Part number must be an integer between 1 and 10000.", ArgumentName="PartNumber")
        if numbers != sorted(set(numbers)):
            raise bad("The list of parts was not in ascending order. Parts list must be specified in order by part number.",
                      "0042-00000209", "InvalidPartOrder")
        with state.lock:
            chosen = [upload.parts.get(n) for n in numbers]
        for (n, etag), part in zip(parts, chosen):
            if not part or part.etag != etag.upper():
                raise bad("One or more of the specified parts could not be found or the specified entity tag might not have matched "
                          "the part's entity tag.", "0042-00000210", "InvalidPart", PartNumber=n, UploadId=upload.id)
        for n, part in zip(numbers[:-1], chosen[:-1]):
            if part.size < state.settings["smallest_part"]:
                raise bad("Your proposed upload smaller than the minimum allowed size.", "0042-00000213", "EntityTooSmall",
                          ProposedSize=part.size, MinSizeAllowed=state.settings["smallest_part"], PartNumber=n)
        stored = join(state.place(), chosen)
        sums = hashlib.md5("".join(part.etag for part in chosen).encode()).hexdigest().upper()
        headers = upload.headers | kept(call.headers)
        headers.pop("content-type", None)
        if "content-type" in upload.headers:  # That of Complete is the type of the list, not of the object.
            headers["content-type"] = upload.headers["content-type"]
        keep(state, call, stored, headers, "Multipart", f"{sums}-{len(chosen)}")
        with state.lock:
            state.uploads.pop(upload.id)
        for part in upload.parts.values():
            part.path.unlink(missing_ok=True)
    answer = document("CompleteMultipartUploadResult", said_coding(call) + [
        ("Location", f"http://{call.headers.get('host', '')}{call.path}"), ("Bucket", upload.bucket), ("Key", coded(call)(upload.key)),
        ("ETag", f'"{stored.etag}"')])
    answer.headers |= {"ETag": f'"{stored.etag}"', "x-oss-hash-crc64ecma": str(stored.crc)}
    return answer_after_callback(call, answer)


def join(path, parts):
    """One file out of many. Its sums are of the bytes that are there, not of what was said when they came."""
    crc, md5, size = Crc64(), hashlib.md5(), 0
    with path.open("wb") as whole:
        for part in parts:
            with part.path.open("rb") as piece:
                while block := piece.read(BLOCK):
                    whole.write(block)
                    crc.update(block)
                    md5.update(block)
                    size += len(block)
    return Stored(path, size, md5.hexdigest(), crc.crc)


def abort(state, call):
    upload = upload_at(state, call)
    with upload.completing, state.lock:
        gone, upload.parts = upload.parts, {}
        if not call.fault("abort_leaves"):  # Parts in flight may outlive an abort.
            state.uploads.pop(upload.id, None)
    for part in gone.values():
        part.path.unlink(missing_ok=True)
    return Answer(204)


OPERATIONS = {
    "PutObject": put_object, "GetObject": get_object, "HeadObject": get_object, "DeleteObject": delete_object,
    "InitiateMultipartUpload": initiate, "UploadPart": upload_part, "ListParts": list_parts, "CompleteMultipartUpload": complete,
    "AppendObject": append_object, "AbortMultipartUpload": abort, "ListMultipartUploads": list_uploads, "ListObjects": list_objects, "ListObjectsV2": list_objects,
    "GetBucketInfo": bucket_info, "GetBucketLocation": bucket_location,
}


def operation(call):
    """The name of what is asked for, by method and query as the service tells them apart."""
    method, q = call.method, call.q
    if not call.key:
        if method != "GET":
            return "unknown"
        named = {"uploads": "ListMultipartUploads", "bucketInfo": "GetBucketInfo", "location": "GetBucketLocation"}
        return next((name for mark, name in named.items() if mark in q), "ListObjectsV2" if q.get("list-type") == "2" else "ListObjects")
    if method == "PUT" and "x-oss-copy-source" not in call.headers:
        return "UploadPart" if {"partNumber", "uploadId"} & set(q) else "unknown" if set(q) & {"acl", "tagging", "symlink"} else "PutObject"
    if method == "POST":
        named = {"uploads": "InitiateMultipartUpload", "uploadId": "CompleteMultipartUpload", "append": "AppendObject"}
        return next((name for mark, name in named.items() if mark in q), "unknown")
    if method == "GET":
        return "ListParts" if "uploadId" in q else "unknown" if set(q) & {"acl", "tagging", "symlink"} else "GetObject"
    if method == "DELETE":
        return "AbortMultipartUpload" if "uploadId" in q else "DeleteObject"
    return {"HEAD": "HeadObject"}.get(method, "unknown")


def serve(state, call):
    if not call.is_text:  # Before the signature, which nobody could make of it.
        raise bad("The specified object is not valid.", "0016-00000005", "InvalidObjectName")
    call.signer = state.authorise(call)
    if call.bucket not in state.buckets:
        raise Refusal(404, "NoSuchBucket", "The specified bucket does not exist.", "0015-00000101", BucketName=call.bucket)
    if call.operation == "unknown":
        raise Refusal(501, "NotImplemented", "A header or query you provided requires functionality that is not implemented.")
    if call.key and (len(call.key.encode()) > 1023 or call.key[0] in "/\\"):
        raise bad("The specified object is not valid.", "0016-00000005", "InvalidObjectName")
    if (call.method == "PUT" or call.operation == "AppendObject") and call.length is None:
        raise Refusal(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
    if (call.length or 0) > LARGEST_REQUEST:
        raise bad("Your proposed upload exceeds the maximum allowed object size.", code="EntityTooLarge")
    return OPERATIONS[call.operation](state, call)
