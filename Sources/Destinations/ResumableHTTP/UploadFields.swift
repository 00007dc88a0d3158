internal import Core
internal import Transport

/// The draft's header fields of an answer. A field with a value of the wrong type is ignored.
struct UploadFields: Hashable, Sendable {
    /// `Upload-Offset`.
    let offset: Int64?
    /// `Upload-Complete`, or the opposite of `Upload-Incomplete`, which some libraries still send.
    let isComplete: Bool?
    /// `Upload-Length`.
    let length: Int64?
    let limits: UploadLimits?
    /// The answer has a field of the draft, usable or not. No intermediary adds one.
    let isOfDraft: Bool

    init(_ headers: Headers) {
        func number(_ name: String) -> Int64? {
            guard case .integer(let number)? = StructuredField.item(name, in: headers), number >= 0 else { return nil }
            return number
        }
        func flag(_ name: String) -> Bool? {
            if case .boolean(let flag)? = StructuredField.item(name, in: headers) { flag } else { nil }
        }
        offset = number("Upload-Offset")
        length = number("Upload-Length")
        isComplete = flag("Upload-Complete") ?? flag("Upload-Incomplete").map { !$0 }
        limits = UploadLimits(headers)
        isOfDraft = headers.lines.contains { $0.name.lowercased().hasPrefix("upload-") }
    }
}

/// A problem document (RFC 9457) of one of the draft's types.
enum UploadProblem: Hashable, Sendable {
    /// The upload stands at another offset than the request named.
    case mismatchingOffset(expected: Int64?)
    case inconsistentLength
    /// Drafts -04 to -11: the upload is complete.
    case completedUpload

    private static let base = "https://iana.org/assignments/http-problem-types#"

    /// - Returns: `nil` for any other answer.
    init?(_ response: Response) {
        let type = response.headers["Content-Type"]?.prefix { $0 != ";" }.lowercased().trimmed
        guard type == "application/problem+json", let body = JSONValue.read(response.body),
            let name = body["type"]?.string, name.hasPrefix(Self.base)
        else { return nil }
        switch name.dropFirst(Self.base.count) {
        case "mismatching-upload-offset":
            if case .whole(let offset)? = body["expected-offset"], offset >= 0 {
                self = .mismatchingOffset(expected: offset)
            } else {
                self = .mismatchingOffset(expected: nil)
            }
        case "inconsistent-upload-length": self = .inconsistentLength
        case "completed-upload": self = .completedUpload
        default: return nil
        }
    }
}
