internal import Core

/// What an answer means in tus 1.0 and in the draft that follows it alike, whatever the version of either: the statuses
/// that mean the same for every request, and the codes of tusd, which serves both.
enum OffsetVerdict: Hashable, Sendable {
    case success
    /// The upload does not exist.
    case gone
    /// Ask where the upload stands. If the offset has not changed, sending again is worth this many tries before
    /// `remedy`.
    case status(Remedy, again: Int)
    /// The server does not support this.
    case unsupported
    case stop(Remedy)

    enum Verb: String, Hashable, Sendable, CaseIterable { case POST, HEAD, PATCH, DELETE }

    /// - Parameter code: `ERR_…`, the beginning of the answer's body in tusd's form.
    init?(_ verb: Verb, code: String?) {
        switch (code, verb) {
        case ("ERR_UPLOAD_REJECTED", .POST), ("ERR_UPLOAD_REJECTED", .HEAD), ("ERR_UPLOAD_REJECTED", .PATCH),
            ("ERR_UPLOAD_STOPPED", .POST), ("ERR_UPLOAD_STOPPED", .HEAD), ("ERR_UPLOAD_STOPPED", .PATCH),
            ("ERR_MAX_SIZE_EXCEEDED", .POST):
            self = .stop(.failUpload)
        case ("ERR_UPLOAD_INTERRUPTED", _), ("ERR_UNEXPECTED_EOF", _), ("ERR_READ_TIMEOUT", _),
            ("ERR_CONNECTION_RESET", _), ("ERR_LOCK_TIMEOUT", _):
            self = .stop(.retry(after: .seconds(1)))
        case ("ERR_UPLOAD_NOT_FOUND", .PATCH): self = .status(.retry(after: nil), again: 0)
        case ("ERR_UPLOAD_NOT_FOUND", .HEAD): self = .gone
        // The upload that was to be removed does not exist.
        case ("ERR_UPLOAD_NOT_FOUND", .DELETE): self = .success
        case ("ERR_UPLOAD_TERMINATION_REJECTED", _): self = .unsupported
        default: return nil
        }
    }

    /// - Parameters:
    ///   - wait: `Retry-After`.
    ///   - isFull: The answer's text mentions a quota or full storage.
    init?(_ verb: Verb, status: Int, wait: Duration?, isFull: Bool) {
        switch status {
        // A proxy answered, and the server has not received the request.
        case 407: self = .stop(.holdDestination(after: nil))
        case 408, 421, 425:
            self = verb == .PATCH ? .stop(.retry(after: .seconds(1))) : .stop(.holdDestination(after: nil))
        case 423: self = .stop(.retry(after: wait ?? .seconds(2)))
        case 429: self = .stop(.rateLimit(after: wait))
        case 507: self = .stop(.outOfSpace(after: wait))
        // The offset shows whether the bytes were accepted nevertheless.
        case let status where IntermediaryStatus.all.contains(status) && verb != .DELETE:
            self =
                verb == .PATCH ? .status(.holdDestination(after: wait), again: 0) : .stop(.holdDestination(after: wait))
        // The body or the file is not too large; there is no space for it now.
        case 413 where isFull && (verb == .POST || verb == .PATCH): self = .stop(.outOfSpace(after: wait))
        case 501: self = verb == .DELETE ? .unsupported : .stop(.misconfigured)
        case 500...: self = .stop(.holdDestination(after: wait))
        default: return nil
        }
    }
}
