internal import Core

// Lists of the bucket's contents.

extension S3Emulator {
    static func parts(_ question: Question, _ state: State) -> Reply {
        guard let upload = state.uploads[question.query["uploadId"] ?? ""] else { return error(404, "NoSuchUpload") }
        let marker = question.query["part-number-marker"].flatMap { Int($0) } ?? 0
        let rest = upload.parts.filter { $0.key > marker }.sorted { $0.key < $1.key }
        let shown = rest.prefix(state.page)
        let lines = shown.map {
            "<Part><PartNumber>\($0.key)</PartNumber><ETag>\($0.value.etag.replacing("\"", with: "&quot;"))</ETag>"
                + "<Size>\($0.value.bytes.count)</Size></Part>"
        }
        return Reply(
            status: 200,
            body: "<ListPartsResult><UploadId>x</UploadId><IsTruncated>\(rest.count > shown.count)</IsTruncated>"
                + "<NextPartNumberMarker>\(shown.last?.key ?? 0)</NextPartNumberMarker>\(lines.joined())</ListPartsResult>"
        )
    }

    static func head(_ question: Question, _ state: State) -> Reply {
        guard let object = state.objects[question.key] else { return Reply(status: 404) }
        return Reply(
            status: 200,
            headers: object.headers.map { ($0.key, $0.value) } + state.encrypted + [
                ("ETag", object.etag), ("Content-Length", "\(object.bytes.count)"),
            ])
    }

    /// Some keys contain characters that XML cannot express.
    private static func coded(_ key: String, _ question: Question) -> String {
        question.query["encoding-type"] == "url"
            ? PercentCoding.encode(key.utf8, keeping: "/ ").replacing(" ", with: "+") : key
    }

    private static func coding(_ question: Question) -> String {
        question.query["encoding-type"].map { "<EncodingType>\($0)</EncodingType>" } ?? ""
    }

    static func list(_ question: Question, _ state: State) -> Reply {
        Reply(
            status: 200,
            body: "<ListBucketResult>\(coding(question))"
                + state.objects.sorted { $0.key < $1.key }.map {
                    "<Contents><Key>\(coded($0.key, question))</Key><Size>\($0.value.bytes.count)</Size></Contents>"
                }.joined() + "<IsTruncated>false</IsTruncated></ListBucketResult>")
    }

    static func uploads(_ question: Question, _ state: State) -> Reply {
        let prefix = question.query["prefix"] ?? ""
        let found = state.uploads.filter { $0.value.key.hasPrefix(prefix) }
        return Reply(
            status: 200,
            body: "<ListMultipartUploadsResult>\(coding(question))"
                + found.map {
                    "<Upload><Key>\(coded($0.value.key, question))</Key><UploadId>\($0.key)</UploadId>"
                        + "<Initiated>\($0.value.begunAt)</Initiated></Upload>"
                }.joined()
                + "<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>")
    }
}
