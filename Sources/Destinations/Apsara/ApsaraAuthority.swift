internal import Core
internal import Transport

/// Who gives a file its place at VOD: VOD itself, or somebody of the person's who asks there.
protocol ApsaraAuthority: Sendable {
    /// Asks for the medium of a reference: a new one, or the one that there is.
    ///
    /// - Parameter again: It was asked for before, and the answer did not come.
    /// - Throws: ``UploadError``; `CancellationError`.
    func begin(_ wish: ApsaraWish, again: Bool) async throws -> ApsaraBeginning
    /// Asks for a new right to a medium that is there.
    ///
    /// - Throws: ``UploadError``, with ``ApsaraVerdict/isGone(_:)`` when it is there no more; `CancellationError`.
    func renew(_ medium: ApsaraMedium, _ wish: ApsaraWish) async throws -> ApsaraGift
    /// Whether a new right to this medium can be asked for. If not, only that to another one is given.
    func renews(_ medium: ApsaraMedium) -> Bool
    /// Whether anybody can be asked for that.
    var tellsWhole: Bool { get }
    /// Whether the service has all bytes of it; `nil` where nobody tells.
    func isWhole(_ medium: ApsaraMedium, size: Int64) async throws -> Bool?
    /// What the service makes of a medium whose bytes it has; `nil` where that is not told.
    ///
    /// - Parameter size: Of the file: what it says of another size it does not say of this file.
    /// - Throws: ``UploadError``; `CancellationError`.
    func state(of medium: ApsaraMedium, size: Int64) async throws -> ApsaraState?
    /// Without side effects.
    func check() async -> CheckResult
    /// The keys of the configuration that give the right to ask, for a person.
    var rights: String { get }
}

/// What VOD makes of a medium (VOD API reference, "GetVideoInfo" and "GetImageInfo", `Status`).
enum ApsaraState: Hashable, Sendable {
    /// It can be used.
    case ready
    /// It is at work, or says a word that is not known.
    case working(String)
    /// It can make nothing of it, or lets nobody use it.
    case failed(String)
    /// It is not there any more.
    case gone
    /// The key lacks this right to ask.
    case untold(String)

    init(_ status: String) {
        switch status {
        case "Normal": self = .ready
        case "UploadFail", "TranscodeFail", "ProduceFail", "Blocked": self = .failed(status)
        default: self = .working(status)
        }
    }
}

enum ApsaraBeginning: Sendable {
    /// - `isNew`: nobody was ever given it before, as far as is known.
    case given(ApsaraGift, isNew: Bool)
    /// The medium has all bytes of the file already.
    case whole(ApsaraMedium)
    /// There was one under this reference, which is of no use: another reference is needed.
    case useless
}

/// What is asked for.
struct ApsaraWish: Sendable {
    var sort: ApsaraSort
    /// The last part of its name, with the ending.
    var name: String
    /// Bytes.
    var size: Int64
    var sha256: [UInt8]
    /// Ours, and another one for each medium: 6 to 64 letters, digits, `-` and `_`.
    var reference: String
    var said: ApsaraFields.Said
}

/// What VOD says no to, and what that calls for (VOD API reference, "Error codes", and those that are common to all services).
struct ApsaraVerdict: Sendable {
    let code: String?
    let words: String
    let remedy: Remedy

    init(_ response: Response, now: WallTime) {
        let json = JSONValue.read(response.body)
        self.init(json, status: response.status, wait: retryAfter(response.headers, now: now))
    }

    /// - Parameter json: An answer, or what a program says.
    init(_ json: JSONValue?, status: Int?, wait: Duration?) {
        let error = json?["error"]
        // A code may stand alone.
        code = (json?["Code"] ?? error?["code"] ?? error?["Code"])?.string
        let said = (json?["Message"] ?? error?["message"] ?? error?["Message"])?.string ?? error?.string
        words = [code, said].compactMap { $0 }.joined(separator: ": ")
        let isFinal = json?["final"]?.flag ?? error?["final"]?.flag
        switch (code.flatMap { Self.remedy($0, wait) }, isFinal) {
        case (_, true?): remedy = .giveUp
        case (let known?, _): remedy = known
        default: remedy = Self.remedy(status, wait)
        }
    }

    private static func remedy(_ status: Int?, _ wait: Duration?) -> Remedy {
        switch status {
        case nil, 200?: .authenticate
        case 401?, 403?: .authenticate
        case 429?: .rateLimit(after: wait)
        case 408?: .holdDestination(after: wait)
        case let status? where StatusOfPath.all.contains(status): .holdDestination(after: wait)
        case let status? where status >= 500 || (201..<300).contains(status): .holdDestination(after: wait)
        case let status? where (300..<400).contains(status) || status == 404 || status == 405: .misconfigured
        default: .giveUp
        }
    }

    private static func remedy(_ code: String, _ wait: Duration?) -> Remedy? {
        for (beginning, remedy) in remedies where code == beginning || code.hasPrefix(beginning + ".") {
            return switch remedy {
            case .rateLimit: .rateLimit(after: wait)
            case .holdDestination: .holdDestination(after: wait)
            default: remedy
            }
        }
        return nil
    }

    /// By the code or what stands before a full stop in it; the first that fits.
    private static let remedies: [(String, Remedy)] = [
        ("Forbidden.InitFailed", .holdDestination(after: nil)),
        ("OperationDenied", .holdDestination(after: nil)),
        ("InvalidAccessKeyId", .authenticate), ("InvalidSecurityToken", .authenticate),
        ("SignatureDoesNotMatch", .authenticate), ("IncompleteSignature", .authenticate),
        ("Forbidden", .authenticate), ("NoPermission", .authenticate),
        ("InvalidTimeStamp", .holdDestination(after: nil)), ("IllegalTimestamp", .holdDestination(after: nil)),
        ("SignatureNonceUsed", .again(after: nil)),
        ("Throttling", .rateLimit(after: nil)),
        ("MissingParameter", .giveUp), ("InvalidParameter", .giveUp),
        ("InvalidVideo", .again(after: nil)),
        ("AddVideoFailed", .holdDestination(after: nil)), ("InternalError", .holdDestination(after: nil)),
        ("ServiceUnAvailable", .holdDestination(after: nil)), ("ServiceUnavailable", .holdDestination(after: nil)),
        ("InvalidAction", .misconfigured), ("InvalidVersion", .misconfigured), ("InvalidRegionId", .misconfigured),
    ]

    /// The medium is not there, or is spoiled: only a new one helps.
    static func isGone(_ error: UploadError) -> Bool {
        has("InvalidVideo", error) || has("InvalidImage.NotFound", error)
    }

    /// Whether the code of an error is this one, or one of its kind: codes are told by their documented beginning, and more words may
    /// stand behind a full stop.
    static func has(_ beginning: String, _ error: UploadError) -> Bool {
        let code = error.failure.code
        return code == beginning || code.hasPrefix(beginning + ".")
    }
}

extension Asking {
    /// What VOD, or somebody who asks there, says no to.
    func refused(_ what: String, _ response: Response) -> UploadError {
        let verdict = ApsaraVerdict(response, now: clocks.wall())
        return refused(
            what, response, verdict.remedy, words: verdict.words.isEmpty ? nil : withoutSecrets(verdict.words),
            code: verdict.code.map { withoutSecrets($0) })
    }
}
