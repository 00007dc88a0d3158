internal import Core

/// The meaning of an answer's status, by the request that it answers (draft "Resumable Uploads for HTTP", the client's
/// behaviour in its sections 4.2 to 4.5; the recoveries are ours).
///
/// A final answer of the target (`Upload-Complete: ?1`) is judged before, by ``AppendAnswer``. The table is
/// `ResumableHTTPVerdictTests.table`. No other code evaluates a status of the draft.
enum ResumableHTTPVerdict: Hashable, Sendable {
    case success
    /// 307, 308: the same request elsewhere.
    case moved
    /// The upload does not exist.
    case gone
    /// The server does not speak this version of the draft.
    case otherVersion
    /// Ask where the upload stands. If the offset has not changed, sending again is worth this many tries before
    /// `remedy`.
    case status(Remedy, again: Int)
    /// Perhaps temporary; after several times the upload counts as gone.
    case doubtful
    /// The body was too large for one request.
    case tooMuch
    /// The server does not support this.
    case unsupported
    case stop(Remedy)

    typealias Verb = OffsetVerdict.Verb

    /// What an answer says besides its status.
    struct Reason: Hashable, Sendable {
        var problem: UploadProblem?
        /// `ERR_…`, the beginning of the answer's body in tusd's form, which it keeps for the draft.
        var code: String?
        /// The text is about the version of the draft.
        var isOfVersion = false
        /// The text mentions a quota or full storage.
        var isFull = false
        /// `Retry-After`.
        var wait: Duration?
    }

    init(_ verb: Verb, status: Int, _ reason: Reason = Reason()) {
        switch status {
        case 200...299: self = .success
        case 307, 308: self = .moved
        // A login page, or http in front of an https endpoint. Never success.
        case 300...399: self = .stop(.misconfigured)
        default:
            self =
                Self.byProblem(verb, reason.problem) ?? Self.common(verb, status, reason).map(Self.init)
                ?? Self.byStatus(verb, status, reason)
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

    private static func common(_ verb: Verb, _ status: Int, _ reason: Reason) -> OffsetVerdict? {
        guard reason.code != versionCode else { return nil }
        return OffsetVerdict(verb, code: reason.code)
            ?? OffsetVerdict(verb, status: status, wait: reason.wait, isFull: reason.isFull)
    }

    private static let versionCode = "ERR_UNSUPPORTED_VERSION"

    private static func byProblem(_ verb: Verb, _ problem: UploadProblem?) -> ResumableHTTPVerdict? {
        guard verb == .PATCH else { return nil }
        return switch problem {
        // The offset shows where to continue, or that nothing is to be sent any more.
        case .mismatchingOffset?, .completedUpload?: .status(.retry(after: .seconds(2)), again: 0)
        case .inconsistentLength?: .status(.failUpload, again: 0)
        case nil: nil
        }
    }

    private static func byStatus(_ verb: Verb, _ status: Int, _ reason: Reason) -> ResumableHTTPVerdict {
        if status == 412 || reason.code == versionCode {
            return verb == .DELETE ? .stop(.misconfigured) : .otherVersion
        }
        return switch verb {
        case .POST: ofCreation(status, reason)
        case .HEAD: ofLookup(status, reason)
        case .PATCH: ofAppend(status, reason)
        case .DELETE: ofRemoval(status, reason)
        }
    }

    /// The headers of a creation describe the file, so any other refusal (400, 409, 413, 415, 422 …) is about it.
    private static func ofCreation(_ status: Int, _ reason: Reason) -> ResumableHTTPVerdict {
        switch status {
        case 400 where reason.isOfVersion: .otherVersion
        case 401, 403: .stop(.authenticate)
        case 404, 405, 410, 411: .stop(.misconfigured)
        default: .stop(.failUpload)
        }
    }

    private static func ofLookup(_ status: Int, _ reason: Reason) -> ResumableHTTPVerdict {
        switch status {
        case 400 where reason.isOfVersion: .otherVersion
        case 404, 410: .gone
        case 400: .doubtful
        case 401, 403: .stop(.authenticate)
        case 405, 431: .stop(.misconfigured)
        case 409: .stop(.retry(after: reason.wait ?? .seconds(2)))
        default: .stop(.retry(after: nil))
        }
    }

    private static func ofAppend(_ status: Int, _ reason: Reason) -> ResumableHTTPVerdict {
        switch status {
        case 400 where reason.isOfVersion: .otherVersion
        // Servers refuse bytes for a finished upload with several statuses, so the offset decides.
        case 401, 403: .status(.authenticate, again: 1)
        case 404, 410: .status(.retry(after: nil), again: 0)
        // At another offset, continue there. At ours, it is a lock.
        case 409: .status(.retry(after: reason.wait ?? .seconds(2)), again: 0)
        case 413: .tooMuch
        case 405, 411, 415, 431: .stop(.misconfigured)
        default: .status(.failUpload, again: 0)
        }
    }

    private static func ofRemoval(_ status: Int, _ reason: Reason) -> ResumableHTTPVerdict {
        switch status {
        case 404, 410: .success
        case 401: .stop(.authenticate)
        case 409: .stop(.retry(after: reason.wait ?? .seconds(2)))
        default: .unsupported
        }
    }
}
