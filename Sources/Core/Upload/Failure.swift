/// What went wrong, for the person who reads it in the morning. Stored before the state that shows it.
package struct Failure: Error, Hashable, Sendable, Codable, CustomStringConvertible {
    /// Open, since a stored failure may be of a class that only a newer program knows. Nothing is decided by it.
    package struct Class: RawRepresentable, Hashable, Sendable, Codable {
        package let rawValue: String

        package init(rawValue: String) { self.rawValue = rawValue }

        package static let local = Class(rawValue: "local")
        package static let config = Class(rawValue: "config")
        package static let auth = Class(rawValue: "auth")
        package static let quota = Class(rawValue: "quota")
        package static let permanent = Class(rawValue: "permanent")
        package static let transient = Class(rawValue: "transient")
        package static let `protocol` = Class(rawValue: "protocol")
        package static let cancelled = Class(rawValue: "cancelled")
        /// The classes of this program's failures.
        package static let all = [local, config, auth, quota, permanent, transient, `protocol`, cancelled]
    }

    package var kind: Class
    /// A short constant in snake_case that scripts can match: `source_missing`, `max_size_exceeded`, `http_503`.
    package var code: String
    /// One sentence: what was asked of whom, and what it said. No secret, no signed URL.
    package var message: String
    /// HTTP status, where one came.
    package var http: Int?
    /// Milliseconds since 1970, UTC.
    package var at: Int64
    /// Whether trying again may help without anybody changing anything.
    package var retryable: Bool
    /// Nothing failed: it is only too early. Absent from what failed.
    package var isWait: Bool?

    package init(_ kind: Class, code: String, message: String, http: Int? = nil, at: WallTime, retryable: Bool) {
        self.kind = kind
        self.code = code
        self.message = message
        self.http = http
        self.at = at.milliseconds
        self.retryable = retryable
    }

    package var description: String { message }

    /// The code of a wait for a quota that leaves less than the next request takes.
    package static let shortOfQuota = "short_of_quota"
    /// The code of a wait for a network that costs nothing, since so much of a file was sent in vain.
    package static let wastedOnMetered = "wasted_on_metered"
    /// The code of the failure that ends an upload whose source, read in place, is another version now.
    package static let sourceChanged = "source_changed"
    /// The code of a removal that ends without an answer to the question whether the remote still has something of the upload.
    package static let removalUnknown = "removal_unknown"
    /// The code of a failure that a file's place there is taken, perhaps by an upload of it whose answer was lost.
    package static let perhapsThere = "perhaps_there"

    /// Codes of failures after which a copy is made anew: it is not there, is another one, or cannot be read.
    package static let lossesOfCopy: Set<String> = ["copy_lost", "staged_changed", "staged_unreadable"]

    /// What arrived was not what was sent, as the destination said (tus: 460, a digest that does not fit) or as it was read back.
    package var isOfVerification: Bool { http == 460 || code == "read_back_differs" }
}

/// What a failure calls for. Decided once, at the edge that understands the remote, and carried with the error.
package enum Remedy: Hashable, Sendable {
    /// The network or the server is at fault, not this file: hold the destination, probe it with one upload at a
    /// time, use no attempt. `after` is what the server asked for (`Retry-After`), if it did.
    case holdDestination(after: Duration?)
    /// As above, and the server named a rate limit.
    case rateLimit(after: Duration?)
    /// There is no room at the destination, or its quota is used up: hold it, and probe it more and more seldom although it
    /// answers, since each probe may cost bytes that are refused. `after` is when the server says that there is some.
    case noRoom(after: Duration?)
    /// The credential is refused: hold the destination until the secret works again.
    case authenticate
    /// The endpoint is wrong or needs a person (redirect, 404 on creation): hold, probe slowly.
    case misconfigured
    /// The remote has every byte and works on them: this upload alone is looked after again. No failure, and no attempt.
    case pending(after: Duration)
    /// This upload alone waits and tries again, for what the network, a proxy or the service does to it: a lock, a body that was cut, an
    /// answer of no use. Uses no attempt.
    case again(after: Duration?)
    /// The remote refuses this file, and may take it another time: this upload alone tries again. Uses an attempt.
    case refused(after: Duration?)
    /// The staged copy is not what was recorded: stage it again from the source.
    case restage
    /// Refused for its own sake: final.
    case giveUp

    /// It ends one attempt, and not the upload; nobody else waits for it.
    package var isForOnce: Bool {
        switch self {
        case .again, .refused: true
        default: false
        }
    }
}

/// An upload step that did not work, with the remedy already decided.
package struct UploadError: Error, Sendable, CustomStringConvertible {
    package var failure: Failure
    package var remedy: Remedy

    package init(_ failure: Failure, remedy: Remedy) {
        self.failure = failure
        self.remedy = remedy
    }

    package var description: String { failure.message }
}
