"""Object storage as its manual says it: the operations. They know nothing of sockets."""

import base64
import binascii
import hashlib
import json
import re
import secrets
import xml.etree.ElementTree as ElementTree
from email.utils import formatdate
from urllib.parse import parse_qsl, quote
from xml.sax.saxutils import escape

from oss_signatures import Crc64
from oss_state import Answer, Refusal, Stored, Upload, iso

BLOCK = 1 << 18
SMALLEST_PART, LARGEST_REQUEST = 102400, 5 << 30
KEPT = ("content-type", "cache-control", "content-disposition", "content-encoding", "expires", "x-oss-storage-class",
        "x-oss-server-side-encryption", "x-oss-object-acl", "x-oss-tagging", "x-oss-notification", "x-oss-callback")
CHOICES = {
    "x-oss-storage-class": ("Standard", "IA", "Archive", "ColdArchive", "DeepColdArchive"),
    "x-oss-server-side-encryption": ("AES256", "KMS", "SM4"),
    "x-oss-object-acl": ("default", "private", "public-read", "public-read-write"),
    "x-oss-forbid-overwrite": ("true", "false"),
}


# ------------------------------------------------------------------------------------------------ small tools


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
    if not re.fullmatch(r"\d+", value) or not low <= int(value) <= high:
        raise bad(f"{name} has to be from {low} to {high}.", ArgumentName=name, ArgumentValue=value)
    return int(value)


def coded(call):
    """How names are written in lists: as they are, or encoded when that is asked for."""
    return (lambda name: quote(name, safe="/")) if call.q.get("encoding-type") == "url" else lambda name: name


def page(call, entries, cap):
    """One page out of (name, field) entries, and the entry that the next one begins after."""
    return entries[:cap], len(entries) > cap


def grouped(names, prefix, delimiter):
    """Names below a prefix in order, as (name, None) or once as (None, common prefix)."""
    seen = set()
    for name, value in names:
        if not name.startswith(prefix):
            continue
        head, found, _ = name[len(prefix):].partition(delimiter) if delimiter else ("", "", "")
        if not found:
            yield name, value
        elif (group := prefix + head + delimiter) not in seen:
            seen.add(group)
            yield group, None


def check_headers(headers):
    for name, allowed in CHOICES.items():
        if headers.get(name, allowed[0]) not in allowed:
            raise bad(f"{name} is not one of {', '.join(allowed)}.", ArgumentName=name, ArgumentValue=headers[name])
    limit = headers.get("x-oss-traffic-limit")
    if limit is not None and not (re.fullmatch(r"\d+", limit) and 819200 <= int(limit) <= 838860800):
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


def check_digest(call, stored):
    said = call.headers.get("content-md5")
    if said is None:
        return
    if said != base64.b64encode(bytes.fromhex(stored.md5)).decode():
        stored.path.unlink()
        raise bad("The Content-MD5 you specified was invalid.", code="InvalidDigest")


def object_at(state, call):
    found = state.objects.get((call.bucket, call.key))
    if not found:
        raise Refusal(404, "NoSuchKey", "The specified key does not exist.", "0026-00000001", Key=call.key)
    return found


def upload_at(state, call):
    found = state.uploads.get(call.q.get("uploadId"))
    if not found or (found.bucket, found.key) != (call.bucket, call.key):
        raise Refusal(404, "NoSuchUpload", "The specified upload does not exist. The upload ID may be invalid, or the "
                      "upload may have been aborted or completed.", "0017-00000244", UploadId=call.q.get("uploadId", ""))
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
    check_overwrite(state, call)
    new = Upload(secrets.token_hex(16).upper(), call.bucket, call.key, state.now(), kept(call.headers))
    with state.lock:
        state.uploads[new.id] = new
    write = coded(call)
    return document("InitiateMultipartUploadResult", said_coding(call) + [
        ("Bucket", new.bucket), ("Key", write(new.key)), ("UploadId", new.id)])


def said_coding(call):
    return [("EncodingType", "url")] if call.q.get("encoding-type") == "url" else []


def upload_part(state, call):
    upload = upload_at(state, call)
    part = number(call, "partNumber", None, 1, 10000)
    if part is None:
        raise bad("Part number must be an integer between 1 and 10000.", ArgumentName="partNumber")
    check_headers(call.headers)
    stored = call.store(state.place())
    check_digest(call, stored)
    stored.etag, stored.changed = stored.md5.upper(), state.now()
    with state.lock:
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


def list_parts(state, call):
    upload = upload_at(state, call)
    cap = min(number(call, "max-parts", 1000, 1, 1000), state.settings["page_size"])
    marker = number(call, "part-number-marker", 0, 0, 10000)
    with state.lock:
        later = sorted((n, part) for n, part in upload.parts.items() if n > marker)
    shown, more = page(call, later, cap)
    fields = [("Bucket", upload.bucket), ("Key", coded(call)(upload.key)), ("UploadId", upload.id), ("StorageClass", "Standard"),
              ("PartNumberMarker", marker), ("NextPartNumberMarker", shown[-1][0] if shown else 0), ("MaxParts", cap),
              ("IsTruncated", str(more).lower())]
    for n, part in shown:
        crc = [] if call.fault("no_crc") else [("HashCrc64ecma", part.crc ^ bool(call.fault("wrong_crc")))]
        fields.append(("Part", [("PartNumber", n), ("LastModified", iso(part.changed)), ("ETag", f'"{part.etag}"'), *crc, ("Size", part.size)]))
    return document("ListPartsResult", said_coding(call) + fields)


def forget(state, what):
    """Of all objects, or of all unfinished uploads, the files."""
    for one in list(state.objects.values()) if what == "objects" else [p for u in state.uploads.values() for p in u.parts.values()]:
        one.path.unlink(missing_ok=True)


def listed(call, upload):
    """The parts that a Complete names, as (number, ETag)."""
    body = call.read(4 << 20)
    if "x-oss-complete-all" in call.headers:
        if call.headers["x-oss-complete-all"] != "yes" or body:
            raise bad("x-oss-complete-all has to be yes, without a body.", "0042-00000217")
        return [(n, part.etag) for n, part in sorted(upload.parts.items())]
    malformed = bad("The XML you provided was not well-formed or did not validate against our published schema.", "0042-00000214",
                    "MalformedXML")
    try:
        root = ElementTree.fromstring(body)
        parts = [(int(part.findtext("PartNumber")), part.findtext("ETag").strip().strip('"')) for part in root]
    except (ElementTree.ParseError, TypeError, ValueError, AttributeError):
        raise malformed
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
            if part.size < SMALLEST_PART:
                raise bad("Your proposed upload smaller than the minimum allowed size.", "0042-00000213", "EntityTooSmall",
                          ProposedSize=part.size, MinSizeAllowed=SMALLEST_PART, PartNumber=n)
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
    with state.lock:
        gone, upload.parts = upload.parts, {}
        if not call.fault("abort_leaves"):  # Parts in flight may outlive an abort.
            state.uploads.pop(upload.id, None)
    for part in gone.values():
        part.path.unlink(missing_ok=True)
    return Answer(204)


def list_uploads(state, call):
    cap = min(number(call, "max-uploads", 1000, 1, 1000), state.settings["page_size"])
    q, write = call.q, coded(call)
    prefix, delimiter, after, after_id = (q.get(n, "") for n in ("prefix", "delimiter", "key-marker", "upload-id-marker"))
    with state.lock:
        all_of = sorted(((u.key, u) for u in state.uploads.values() if u.bucket == call.bucket), key=lambda e: (e[0], e[1].id))
    later = [(name, u) for name, u in grouped(all_of, prefix, delimiter)
             if name > after or u and after_id and name == after and u.id > after_id]
    shown, more = page(call, later, cap)
    fields = [("Bucket", call.bucket), ("KeyMarker", write(after)), ("UploadIdMarker", after_id), ("Prefix", write(prefix)),
              ("Delimiter", write(delimiter)), ("MaxUploads", cap), ("IsTruncated", str(more).lower())]
    last, last_upload = shown[-1] if shown else ("", None)
    fields += [("NextKeyMarker", write(last)), ("NextUploadIdMarker", last_upload.id if last_upload else "")]
    for name, upload in shown:
        fields.append(("Upload", [("Key", write(name)), ("UploadId", upload.id), ("StorageClass", "Standard"), ("Initiated", iso(upload.begun))])
                      if upload else ("CommonPrefixes", [("Prefix", write(name))]))
    return document("ListMultipartUploadsResult", said_coding(call) + fields)


def list_objects(state, call):
    q, write, second = call.q, coded(call), call.q.get("list-type") == "2"
    cap = min(number(call, "max-keys", 100, 1, 1000), state.settings["page_size"])
    prefix, delimiter, token = q.get("prefix", ""), q.get("delimiter", ""), q.get("continuation-token", "")
    after = q.get("start-after", "") if second else q.get("marker", "")
    if second and token:
        try:
            after = base64.urlsafe_b64decode(token).decode()
        except ValueError:
            raise bad("The continuation token is not valid.", ArgumentName="continuation-token")
    with state.lock:
        all_of = sorted((key, found) for (bucket, key), found in state.objects.items() if bucket == call.bucket)
    shown, more = page(call, [(n, o) for n, o in grouped(all_of, prefix, delimiter) if n > after], cap)
    fields = [("Name", call.bucket), ("Prefix", write(prefix)), ("MaxKeys", cap), ("Delimiter", write(delimiter)), ("IsTruncated", str(more).lower())]
    fields += [("KeyCount", len(shown)), ("StartAfter", write(q.get("start-after", "")))] if second else [("Marker", write(after))]
    if more:
        fields.append(("NextContinuationToken", base64.urlsafe_b64encode(shown[-1][0].encode()).decode()) if second
                      else ("NextMarker", write(shown[-1][0])))
    for name, found in shown:
        fields.append(("Contents", [("Key", write(name)), ("LastModified", iso(found.changed)), ("ETag", f'"{found.etag}"'), ("Type", found.kind),
                                    ("Size", found.size), ("StorageClass", found.headers.get("x-oss-storage-class", "Standard"))])
                      if found else ("CommonPrefixes", [("Prefix", write(name))]))
    return document("ListBucketResult", said_coding(call) + fields)


def bucket_info(state, call):
    return document("BucketInfo", [("Bucket", [
        ("Name", call.bucket), ("Location", "oss-" + state.region), ("CreationDate", iso(0)), ("StorageClass", "Standard"),
        ("ExtranetEndpoint", f"oss-{state.region}.aliyuncs.com"), ("IntranetEndpoint", f"oss-{state.region}-internal.aliyuncs.com"),
        ("Owner", [("ID", "1"), ("DisplayName", "1")]), ("AccessControlList", [("Grant", "private")])])])


def bucket_location(state, call):
    answer = bucket_info(state, call)
    answer.body = f'<?xml version="1.0" encoding="UTF-8"?>\n<LocationConstraint>oss-{state.region}</LocationConstraint>'.encode()
    return answer


OPERATIONS = {
    "PutObject": put_object, "GetObject": get_object, "HeadObject": get_object, "DeleteObject": delete_object,
    "InitiateMultipartUpload": initiate, "UploadPart": upload_part, "ListParts": list_parts, "CompleteMultipartUpload": complete,
    "AbortMultipartUpload": abort, "ListMultipartUploads": list_uploads, "ListObjects": list_objects, "ListObjectsV2": list_objects,
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
        return "InitiateMultipartUpload" if "uploads" in q else "CompleteMultipartUpload" if "uploadId" in q else "unknown"
    if method == "GET":
        return "ListParts" if "uploadId" in q else "unknown" if set(q) & {"acl", "tagging", "symlink"} else "GetObject"
    if method == "DELETE":
        return "AbortMultipartUpload" if "uploadId" in q else "DeleteObject"
    return {"HEAD": "HeadObject"}.get(method, "unknown")


def serve(state, call):
    call.signer = state.authorise(call)
    if call.bucket not in state.buckets:
        raise Refusal(404, "NoSuchBucket", "The specified bucket does not exist.", "0015-00000101", BucketName=call.bucket)
    if call.operation == "unknown":
        raise Refusal(501, "NotImplemented", "A header or query you provided requires functionality that is not implemented.")
    if call.key and (len(call.key.encode()) > 1023 or call.key[0] in "/\\"):
        raise bad("The specified object is not valid.", "0016-00000005", "InvalidObjectName")
    if call.method == "PUT" and call.length is None:
        raise Refusal(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
    if (call.length or 0) > LARGEST_REQUEST:
        raise bad("Your proposed upload exceeds the maximum allowed object size.", code="EntityTooLarge")
    return OPERATIONS[call.operation](state, call)
