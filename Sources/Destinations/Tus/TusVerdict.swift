internal import Core

/// The meaning of an answer's status, by the request that it answers (tus 1.0; the recoveries are ours).
///
/// The table is `TusVerdictTests.table`. No other code evaluates a status of tus.
enum TusVerdict: Hashable, Sendable {
    case success
    /// 307, 308: the same request elsewhere.
    case moved
    /// The upload does not exist.
    case gone
    /// Ask where the upload stands. If the offset has not changed, sending again is worth this many tries before
    /// `remedy`.
    case status(Remedy, again: Int)
    /// Perhaps temporary; after several times the upload counts as gone.
    case doubtful
    /// The body was too large for one request.
    case tooMuch
    /// The checksum did not match.
    case damaged
    /// Try once more with the least metadata; after that this file is refused.
    case lessMetadata
    /// The server does not support this.
    case unsupported
    case stop(Remedy)

    enum Verb: String, Hashable, Sendable, CaseIterable { case POST, HEAD, PATCH, DELETE }

    /// - Parameters:
    ///   - code: `ERR_…`, the beginning of the answer's body in tusd's form; `nil` for any other.
    ///   - wait: `Retry-After`.
    ///   - isFull: The answer's text mentions a quota or full storage.
    init(_ verb: Verb, status: Int, code: String?, wait: Duration?, isFull: Bool = false) {
        switch status {
        case 200...299: self = .success
        case 307, 308: self = .moved
        // A login page, or http in front of an https endpoint. Never success.
        case 300...399: self = .stop(.misconfigured)
        default: self = Self.byCode(verb, code) ?? Self.byStatus(verb, status, wait, isFull)
        }
    }

    /// Codes with which tusd distinguishes a temporary fault from a final refusal that has the same status. These codes
    /// are about an upload's offset, its lock or a connection, and never about the file.
    static let codesOfState: Set = [
        "ERR_MISMATCHED_OFFSET", "ERR_UPLOAD_LOCKED", "ERR_LOCK_TIMEOUT", "ERR_UPLOAD_INTERRUPTED",
        "ERR_UNEXPECTED_EOF",
        "ERR_READ_TIMEOUT", "ERR_CONNECTION_RESET", "ERR_SERVER_SHUTDOWN",
    ]

    private static func byCode(_ verb: Verb, _ code: String?) -> TusVerdict? {
        switch code {
        case "ERR_UPLOAD_REJECTED", "ERR_UPLOAD_STOPPED": verb == .DELETE ? nil : .stop(.failUpload)
        case "ERR_MAX_SIZE_EXCEEDED": verb == .POST ? .stop(.failUpload) : nil
        case "ERR_UPLOAD_INTERRUPTED", "ERR_UNEXPECTED_EOF", "ERR_READ_TIMEOUT", "ERR_CONNECTION_RESET",
            "ERR_LOCK_TIMEOUT":
            .stop(.retry(after: .seconds(1)))
        case "ERR_UPLOAD_NOT_FOUND":
            switch verb {
            case .POST: nil
            case .PATCH: .status(.retry(after: nil), again: 0)
            case .HEAD: .gone
            // The upload that was to be removed does not exist.
            case .DELETE: .success
            }
        case "ERR_UPLOAD_TERMINATION_REJECTED": .unsupported
        default: nil
        }
    }

    private static func byStatus(_ verb: Verb, _ status: Int, _ wait: Duration?, _ isFull: Bool) -> TusVerdict {
        switch status {
        // Statuses with the same meaning for every request.
        case 412: return .stop(.misconfigured)
        // A proxy answered, and the server has not received the request.
        case 407: return .stop(.holdDestination(after: nil))
        case 408, 421, 425:
            return verb == .PATCH ? .stop(.retry(after: .seconds(1))) : .stop(.holdDestination(after: nil))
        case 423: return .stop(.retry(after: wait ?? .seconds(2)))
        case 429: return .stop(.rateLimit(after: wait))
        case 507: return .stop(.outOfSpace(after: wait))
        // The offset shows whether the bytes were accepted nevertheless.
        case let status where IntermediaryStatus.all.contains(status) && verb != .DELETE:
            return verb == .PATCH
                ? .status(.holdDestination(after: wait), again: 0) : .stop(.holdDestination(after: wait))
        // The body or the file is not too large; there is no space for it now.
        case 413 where isFull && (verb == .POST || verb == .PATCH): return .stop(.outOfSpace(after: wait))
        case 501: return verb == .DELETE ? .unsupported : .stop(.misconfigured)
        case 500...: return .stop(.holdDestination(after: wait))
        default: break
        }
        switch verb {
        case .POST:
            switch status {
            case 400, 431: return .lessMetadata
            case 401, 403: return .stop(.authenticate)
            case 404, 405, 410, 411, 415: return .stop(.misconfigured)
            default: return .stop(.failUpload)
            }
        case .HEAD:
            switch status {
            case 404, 410: return .gone
            case 400: return .doubtful
            case 401, 403: return .stop(.authenticate)
            case 405, 431: return .stop(.misconfigured)
            case 409: return .stop(.retry(after: wait ?? .seconds(2)))
            default: return .stop(.retry(after: nil))
            }
        case .PATCH:
            switch status {
            case 400: return .status(.failUpload, again: 2)
            // Servers answer 403 to bytes for a finished upload, so the offset decides.
            case 401, 403: return .status(.authenticate, again: 1)
            case 404, 410: return .status(.retry(after: nil), again: 0)
            // At another offset, continue there. At ours, it is a lock.
            case 409: return .status(.retry(after: wait ?? .seconds(2)), again: 0)
            case 413: return .tooMuch
            case 460: return .damaged
            case 405, 411, 415, 431: return .stop(.misconfigured)
            default: return .status(.failUpload, again: 0)
            }
        case .DELETE:
            switch status {
            case 404, 410: return .success
            case 401: return .stop(.authenticate)
            case 409: return .stop(.retry(after: wait ?? .seconds(2)))
            default: return .unsupported
            }
        }
    }
}
