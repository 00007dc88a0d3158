internal import Core

/// What an answer's status calls for, by the request that it answers (tus 1.0; the recoveries are ours).
///
/// The table is `TusVerdictTests.table`; no other place in the house looks at a status of tus.
enum TusVerdict: Hashable, Sendable {
    case success
    /// 307, 308: the same request elsewhere.
    case moved
    /// The upload is not there.
    case gone
    /// Ask where the upload stands; when it has not moved, sending again is worth so many tries before `remedy`.
    case look(Remedy, again: Int)
    /// Perhaps a fault of the moment; counts as gone after some times.
    case doubtful
    /// The body was too much for one request.
    case tooMuch
    /// The checksum did not fit.
    case damaged
    /// Once more with the least metadata, and then this file is refused.
    case lessMetadata
    /// The server does not do this.
    case unsupported
    case stop(Remedy)

    enum Verb: String, Hashable, Sendable, CaseIterable { case POST, HEAD, PATCH, DELETE }

    /// - Parameters:
    ///   - code: `ERR_…`, the beginning of the answer's body as tusd writes it; `nil` for any other.
    ///   - wait: `Retry-After`.
    ///   - isFull: The answer's text speaks of a quota or of storage that is full.
    init(_ verb: Verb, status: Int, code: String?, wait: Duration?, isFull: Bool = false) {
        switch status {
        case 200...299: self = .success
        case 307, 308: self = .moved
        // A login page, or http in front of an https endpoint. Never success.
        case 300...399: self = .stop(.misconfigured)
        default: self = Self.byCode(verb, code) ?? Self.byStatus(verb, status, wait, isFull)
        }
    }

    /// Where the text says more than the status: one status for a temporary fault and a final refusal.
    /// Codes that are about an upload's place, its lock or a connection, and never about the file.
    static let codesOfState: Set = [
        "ERR_MISMATCHED_OFFSET", "ERR_UPLOAD_LOCKED", "ERR_LOCK_TIMEOUT", "ERR_UPLOAD_INTERRUPTED",
        "ERR_UNEXPECTED_EOF",
        "ERR_READ_TIMEOUT", "ERR_CONNECTION_RESET", "ERR_SERVER_SHUTDOWN",
    ]

    private static func byCode(_ verb: Verb, _ code: String?) -> TusVerdict? {
        switch code {
        case "ERR_UPLOAD_REJECTED", "ERR_UPLOAD_STOPPED": verb == .DELETE ? nil : .stop(.giveUp)
        case "ERR_MAX_SIZE_EXCEEDED": verb == .POST ? .stop(.giveUp) : nil
        case "ERR_UPLOAD_INTERRUPTED", "ERR_UNEXPECTED_EOF", "ERR_READ_TIMEOUT", "ERR_CONNECTION_RESET",
            "ERR_LOCK_TIMEOUT":
            .stop(.again(after: .seconds(1)))
        case "ERR_UPLOAD_NOT_FOUND":
            switch verb {
            case .POST: nil
            case .PATCH: .look(.again(after: nil), again: 0)
            case .HEAD: .gone
            // What was to be removed is not there.
            case .DELETE: .success
            }
        case "ERR_UPLOAD_TERMINATION_REJECTED": .unsupported
        default: nil
        }
    }

    private static func byStatus(_ verb: Verb, _ status: Int, _ wait: Duration?, _ isFull: Bool) -> TusVerdict {
        switch status {
        // What means the same whatever was asked.
        case 412: return .stop(.misconfigured)
        // A proxy speaks, and the server has heard nothing.
        case 407: return .stop(.holdDestination(after: nil))
        case 408, 421, 425:
            return verb == .PATCH ? .stop(.again(after: .seconds(1))) : .stop(.holdDestination(after: nil))
        case 423: return .stop(.again(after: wait ?? .seconds(2)))
        case 429: return .stop(.rateLimit(after: wait))
        case 507: return .stop(.noRoom(after: wait))
        // The offset tells whether the bytes were taken all the same.
        case let status where StatusOfPath.all.contains(status) && verb != .DELETE:
            return verb == .PATCH
                ? .look(.holdDestination(after: wait), again: 0) : .stop(.holdDestination(after: wait))
        // Not that this body or this file is too large, but that there is no room for it now.
        case 413 where isFull && (verb == .POST || verb == .PATCH): return .stop(.noRoom(after: wait))
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
            default: return .stop(.giveUp)
            }
        case .HEAD:
            switch status {
            case 404, 410: return .gone
            case 400: return .doubtful
            case 401, 403: return .stop(.authenticate)
            case 405, 431: return .stop(.misconfigured)
            case 409: return .stop(.again(after: wait ?? .seconds(2)))
            default: return .stop(.again(after: nil))
            }
        case .PATCH:
            switch status {
            case 400: return .look(.giveUp, again: 2)
            // Servers say 403 to bytes for a finished upload, so the offset decides.
            case 401, 403: return .look(.authenticate, again: 1)
            case 404, 410: return .look(.again(after: nil), again: 0)
            // At another offset: go on there. At ours: a lock in disguise.
            case 409: return .look(.again(after: wait ?? .seconds(2)), again: 0)
            case 413: return .tooMuch
            case 460: return .damaged
            case 405, 411, 415, 431: return .stop(.misconfigured)
            default: return .look(.giveUp, again: 0)
            }
        case .DELETE:
            switch status {
            case 404, 410: return .success
            case 401: return .stop(.authenticate)
            case 409: return .stop(.again(after: wait ?? .seconds(2)))
            default: return .unsupported
            }
        }
    }
}
