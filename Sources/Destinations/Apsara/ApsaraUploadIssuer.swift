internal import Core
internal import Transport

/// Gives a file its place at VOD. Either VOD itself, or the person's own service or program that calls VOD.
protocol ApsaraUploadIssuer: Sendable {
    /// Requests the medium of a reference: a new one, or the existing one.
    ///
    /// - Parameter again: The medium was requested before, and the answer was lost.
    /// - Throws: ``UploadError``; `CancellationError`.
    func begin(
        _ request: ApsaraUploadRequest, again: Bool, _ context: RequestContext
    ) async throws -> ApsaraTicketAnswer
    /// Asks for a new right to an existing medium.
    ///
    /// - Throws: ``UploadError``, with ``ApsaraVerdict/isGone(_:)`` when the medium no longer exists;
    ///   `CancellationError`.
    func renew(
        _ medium: ApsaraMedium, _ request: ApsaraUploadRequest, _ context: RequestContext
    ) async throws -> ApsaraUploadTicket
    /// Whether a new right to this medium can be asked for. If not, a new right comes only with another medium.
    func renews(_ medium: ApsaraMedium) -> Bool
    /// Whether ``isWhole(_:size:_:)`` can be answered.
    var reportsCompletion: Bool { get }
    /// Whether the service has all bytes of the medium; `nil` where that cannot be found out.
    func isWhole(_ medium: ApsaraMedium, size: Int64, _ context: RequestContext) async throws -> Bool?
    /// The service's state of a medium whose bytes it has; `nil` where the service does not tell it.
    ///
    /// - Parameter size: Size of the file. A state that names another size is about another file.
    /// - Throws: ``UploadError``; `CancellationError`.
    func state(of medium: ApsaraMedium, size: Int64, _ context: RequestContext) async throws -> ApsaraState?
    /// Checks the access without side effects.
    func check(_ context: RequestContext) async -> CheckResult
    /// The configuration keys that give the right to ask, named in messages.
    var rights: String { get }
}

/// VOD's state of a medium (VOD API reference, "GetVideoInfo" and "GetImageInfo", `Status`).
enum ApsaraState: Hashable, Sendable {
    /// The medium can be used.
    case ready
    /// VOD is still working, or answered with an unknown word.
    case working(String)
    /// VOD cannot process the medium, or blocks it.
    case failed(String)
    /// The medium no longer exists.
    case gone
    /// The key has no right to ask for the state.
    case notAllowed(String)

    init(_ status: String) {
        switch status {
        case "Normal": self = .ready
        case "UploadFail", "TranscodeFail", "ProduceFail", "Blocked": self = .failed(status)
        default: self = .working(status)
        }
    }
}

enum ApsaraTicketAnswer: Sendable {
    /// - `isNew`: no file was given this medium before, as far as is known.
    case given(ApsaraUploadTicket, isNew: Bool)
    /// The medium already has all bytes of the file.
    case whole(ApsaraMedium)
    /// A medium with this reference existed and cannot be used: another reference is needed.
    case useless
}

/// A request for a medium.
struct ApsaraUploadRequest: Sendable {
    var sort: ApsaraMediaKind
    /// The last component of the file's name, with the ending.
    var name: String
    /// Size in bytes.
    var size: Int64
    var sha256: [UInt8]
    /// Our reference, different for each medium: 6 to 64 letters, digits, `-` and `_`.
    var reference: String
    var metadata: ApsaraFields.MetadataFields
}

/// An error of VOD and its remedy (VOD API reference, "Error codes", and the codes that are common to all services).
struct ApsaraVerdict: Sendable {
    let code: String?
    let words: String
    let remedy: Remedy

    init(_ response: Response, now: WallTime) {
        let json = JSONValue.read(response.body)
        self.init(json, status: response.status, wait: retryAfter(response.headers, now: now))
    }

    /// - Parameter json: An answer of VOD, or the output of a program. Names may begin with a small letter.
    init(_ json: JSONValue?, status: Int?, wait: Duration?) {
        let json = json.map { ApsaraUploadTicket.withNamesOfService($0) }
        let error = json?["Error"].map { ApsaraUploadTicket.withNamesOfService($0) }
        // Some answers contain a code without an error object; some have a code of their own around it.
        code = error?["Code"]?.string ?? json?["Code"]?.string
        let message = error?["Message"]?.string ?? json?["Message"]?.string ?? error?.string
        words = [code, message].compactMap { $0 }.joined(separator: ": ")
        let isFinal = json?["Final"]?.flag ?? error?["Final"]?.flag
        switch (code.flatMap { Self.remedy($0, wait) }, isFinal) {
        case (_, true?): remedy = .failUpload
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
        case let status? where IntermediaryStatus.all.contains(status): .holdDestination(after: wait)
        case let status? where status >= 500 || (201..<300).contains(status): .holdDestination(after: wait)
        case let status? where (300..<400).contains(status) || status == 404 || status == 405: .misconfigured
        default: .failUpload
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

    /// Remedies by error code, or by its part before a full stop; the first match counts.
    private static let remedies: [(String, Remedy)] = [
        ("Forbidden.InitFailed", .holdDestination(after: nil)),
        ("OperationDenied", .holdDestination(after: nil)),
        ("InvalidAccessKeyId", .authenticate), ("InvalidSecurityToken", .authenticate),
        ("SignatureDoesNotMatch", .authenticate), ("IncompleteSignature", .authenticate),
        ("Forbidden", .authenticate), ("NoPermission", .authenticate),
        ("InvalidTimeStamp", .holdDestination(after: nil)), ("IllegalTimestamp", .holdDestination(after: nil)),
        ("SignatureNonceUsed", .retry(after: nil)),
        ("Throttling", .rateLimit(after: nil)),
        ("MissingParameter", .failUpload), ("InvalidParameter", .failUpload),
        ("InvalidVideo", .retry(after: nil)),
        ("AddVideoFailed", .holdDestination(after: nil)), ("InternalError", .holdDestination(after: nil)),
        ("ServiceUnAvailable", .holdDestination(after: nil)), ("ServiceUnavailable", .holdDestination(after: nil)),
        ("InvalidAction", .misconfigured), ("InvalidVersion", .misconfigured), ("InvalidRegionId", .misconfigured),
    ]

    /// Whether the medium is missing or unusable, so that only a new one helps.
    static func isGone(_ error: UploadError) -> Bool {
        has("InvalidVideo", error) || has("InvalidImage.NotFound", error)
    }

    /// Whether an error has this code or one of its kind. Codes are compared by their documented beginning; more words
    /// may follow after a full stop.
    static func has(_ beginning: String, _ error: UploadError) -> Bool {
        let code = error.failure.code.rawValue
        return code == beginning || code.hasPrefix(beginning + ".")
    }
}

extension AuthorizedClient {
    /// The error for a refusal by VOD, or by the service that calls it.
    func refused(_ what: String, _ response: Response) -> UploadError {
        let verdict = ApsaraVerdict(response, now: clocks.wall())
        return refused(
            what, response, verdict.remedy, words: verdict.words.isEmpty ? nil : withoutSecrets(verdict.words),
            code: verdict.code.map { .service(withoutSecrets($0)) })
    }
}
