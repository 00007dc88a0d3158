internal import Synchronization

/// A bucket that keeps only the sizes of its objects: it answers the requests that S3 clients make while they upload.
final class SinkBucket: Sendable {
    private struct State {
        /// By key, the bytes of the parts so far, and of whole objects.
        var parts: [String: Int64] = [:]
        var objects: [String: Int64] = [:]
    }

    private let state = Mutex(State())

    var objects: [String: Int64] { state.withLock { $0.objects } }

    func forget() { state.withLock { $0 = State() } }

    func answer(_ method: String, _ target: String, _ length: Int64) -> String {
        let pieces = target.split(separator: "?", maxSplits: 1)
        let key = String(pieces[0])
        let query = pieces.count > 1 ? pieces[1] : ""
        let isPart = query.contains("partNumber="), isOfUpload = query.contains("uploadId=")
        switch method {
        case "PUT" where isPart:
            state.withLock { $0.parts[key, default: 0] += length }
            return Self.reply("200 OK", tag: "part")
        case "PUT":
            // A request for the bucket itself has no key.
            if key.split(separator: "/").count > 1 { state.withLock { $0.objects[key] = length } }
            return Self.reply("200 OK", tag: "whole")
        case "POST" where isOfUpload:
            state.withLock { $0.objects[key] = $0.parts.removeValue(forKey: key) ?? 0 }
            return Self.reply(
                "200 OK",
                "<CompleteMultipartUploadResult><Key>k</Key><ETag>&quot;whole-1&quot;</ETag></CompleteMultipartUploadResult>"
            )
        case "POST":
            return Self.reply(
                "200 OK",
                "<InitiateMultipartUploadResult><Key>k</Key><UploadId>one</UploadId></InitiateMultipartUploadResult>")
        case "HEAD":
            guard let size = objects[key] else { return Self.reply("404 Not Found") }
            return "HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\nETag: \"whole-1\"\r\n"
                + "Last-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\n\r\n"
        case "GET":
            return Self.reply(
                "200 OK",
                "<ListBucketResult><Name>b</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>"
            )
        default: return Self.reply("204 No Content")
        }
    }

    /// The tags are no MD5s, so that clients do not compare them with the dropped bytes.
    private static func reply(_ status: String, _ body: String = "", tag: String? = nil) -> String {
        "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n"
            + (tag.map { "ETag: \"\($0)-1\"\r\n" } ?? "") + "\r\n" + body
    }
}
