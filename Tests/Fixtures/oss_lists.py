"""What the storage says of itself: parts, unfinished uploads, objects, buckets."""

import base64

from oss_state import iso, upload_at
from oss_wire import bad, coded, document, number, said_coding


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
