/// An error for the person who reads it later. Stored before the state that shows it.
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
    package var code: Code
    /// A sentence with the request, its target, and the answer. It contains no secret and no signed URL.
    package var message: String
    /// HTTP status, if there was one.
    package var http: Int?
    /// Milliseconds since 1970, UTC.
    package var at: Int64
    /// Whether trying again may help without a change by a person.
    package var retryable: Bool
    /// The upload has not failed: it only waits. Absent for real failures.
    package var isWait: Bool?
    /// The time of the next attempt was not set by the destination, and the message says why it is that late. Absent for
    /// other failures.
    package var explainsWait: Bool?

    package init(_ kind: Class, code: Code, message: String, http: Int? = nil, at: WallTime, retryable: Bool) {
        self.kind = kind
        self.code = code
        self.message = message
        self.http = http
        self.at = at.milliseconds
        self.retryable = retryable
    }

    package var description: String { message }

    /// Whether a copy is made again after it: the copy is missing, has changed, or cannot be read.
    package var isLossOfCopy: Bool { [.copyLost, .stagedChanged, .stagedUnreadable].contains(code) }

    /// Whether the arrived bytes differ from the sent ones, by the destination's answer (tus: 460, a digest that does
    /// not match) or by reading them back.
    package var isOfVerification: Bool { http == 460 || code == .readBackDiffers }
}

/// The action after a failure. Decided once, in the code that understands the remote, and carried with the error.
package enum Remedy: Hashable, Sendable {
    /// The network or the server is at fault, not this file: hold the destination, probe it with one upload at a time,
    /// use no attempt. `after` is the server's `Retry-After`, if there is one.
    case holdDestination(after: Duration?)
    /// Like ``holdDestination(after:)``, and the server named a rate limit.
    case rateLimit(after: Duration?)
    /// The destination has no space, or its quota is used up: hold it, and probe it less and less often although it
    /// answers, since each probe may cost bytes that are refused. `after` is the time until there is space, if the
    /// server names it.
    case outOfSpace(after: Duration?)
    /// The credential is refused: hold the destination until the secret works again.
    case authenticate
    /// The endpoint is wrong or needs a person (redirect, 404 on creation): hold, probe slowly.
    case misconfigured
    /// The remote has every byte and is processing them: only this upload is checked again. This is no failure, and
    /// uses no attempt.
    case pending(after: Duration)
    /// Only this upload waits and tries again, because of the network, a proxy or the service: a lock, an interrupted
    /// body, an unusable answer. Uses no attempt. With `.zero` it is tried at once, a few times in a row.
    case retry(after: Duration?)
    /// The remote refuses this file, and may accept it another time: only this upload tries again. Uses an attempt.
    case refused(after: Duration?)
    /// Quotas of this machine leave too little for the next piece: only this upload waits. The remote was not asked, and
    /// no attempt is used.
    case lackQuota(after: Duration)
    /// The staged copy is not as recorded: stage it again from the source.
    case restage(CopyDefect)
    /// This file is refused: final.
    case failUpload

    /// Whether it ends one attempt, and not the upload; no other upload waits for it.
    package var endsOnlyAttempt: Bool {
        switch self {
        case .retry, .refused: true
        default: false
        }
    }

    /// Whether the copy is staged again.
    package var restages: Bool { if case .restage = self { true } else { false } }
}

/// Why a staged copy, or a source that is uploaded in place, cannot be sent.
package enum CopyDefect: Hashable, Sendable {
    case missing
    case unreadable
    /// It has other content than was recorded: bytes of it that were sent may be wrong.
    case changed
}

/// How far a request got that the remote did not answer.
package enum RemoteContact: Hashable, Sendable {
    /// No connection to its host could be made.
    case none
    /// Its host does not speak the protocol of its address, or shows no certificate that is trusted.
    case unusable
    /// It may have received the request.
    case made
}

/// An error of an upload step, with its remedy.
package struct UploadError: Error, Sendable, CustomStringConvertible {
    package var failure: Failure
    package var remedy: Remedy
    /// An intermediary may have answered in place of the remote, so the answer says nothing about the file.
    package var isOfPath = false
    package var contact = RemoteContact.made
    /// Whether a repetition would find out no more.
    package var isConclusive = false
    /// The status of an answer whose rest did not come or cannot be read.
    package var statusOfBrokenAnswer: Int?

    package init(_ failure: Failure, remedy: Remedy) {
        self.failure = failure
        self.remedy = remedy
    }

    package var description: String { failure.message }
}
