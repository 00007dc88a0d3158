internal import Core

/// The meaning of an answer's status, by the request that it answers (tus 1.0; the recoveries are ours).
///
/// The table is `TusVerdictTests.table`. Only ``OffsetVerdict``, which this uses, evaluates a status of tus beside it.
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

    typealias Verb = OffsetVerdict.Verb

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
        default:
            let common =
                OffsetVerdict(verb, code: code) ?? OffsetVerdict(verb, status: status, wait: wait, isFull: isFull)
            self = common.map(Self.init) ?? Self.byStatus(verb, status, wait)
        }
    }

    private init(_ common: OffsetVerdict) {
        self =
            switch common {
            case .success: .success
            case .gone: .gone
            case .status(let remedy, let again): .status(remedy, again: again)
            case .unsupported: .unsupported
            case .stop(let remedy): .stop(remedy)
            }
    }

    /// Codes with which tusd distinguishes a temporary fault from a final refusal that has the same status. These codes
    /// are about an upload's offset, its lock or a connection, and never about the file.
    static let codesOfState: Set = [
        "ERR_MISMATCHED_OFFSET", "ERR_UPLOAD_LOCKED", "ERR_LOCK_TIMEOUT", "ERR_UPLOAD_INTERRUPTED",
        "ERR_UNEXPECTED_EOF",
        "ERR_READ_TIMEOUT", "ERR_CONNECTION_RESET", "ERR_SERVER_SHUTDOWN",
    ]

    private static func byStatus(_ verb: Verb, _ status: Int, _ wait: Duration?) -> TusVerdict {
        // The server speaks another version (tus 1.0, "Tus-Version").
        if status == 412 { return .stop(.misconfigured) }
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
