internal import Core
internal import Transport

/// What a service says no to, and what that calls for (Amazon S3 API reference, "Error responses"; what other servers were seen
/// to say).
struct S3Verdict: Sendable {
    /// The service's own word; `nil` where it says none, as to HEAD.
    let code: String?
    let words: String
    private let status: Int
    let remedy: Remedy
    /// No words come with its no. To HEAD that is so in any case, and it is about the key, its region or its date.
    let isMute: Bool
    /// The region that requests to this bucket are to be signed for.
    let region: String?
    /// The key may have ended, or is none.
    let isOfKey: Bool
    /// It is about the key, the secret that it signs with, or what they may do.
    let isOfRights: Bool

    /// - Parameter isLent: The request carried the token of a temporary key.
    init(_ response: Response, isLent: Bool, now: WallTime) {
        // To a question that has no body OSS answers with its words in a header.
        let document =
            response.body.isEmpty
            ? response.headers["x-oss-err"].flatMap { bytes(base64: $0) } ?? [] : response.body
        let body = document.isEmpty ? nil : XMLValue.read(document)
        let error = body?.name == "Error" ? body : body?["Error"]
        code = error?["Code"]?.text
        words = [code, error?["Message"]?.text].compactMap { $0 }.joined(separator: ": ")
        isMute = document.isEmpty && (response.status == 400 || response.status == 403)
        region = Self.region(response.headers["x-amz-bucket-region"] ?? error?["Region"]?.text)
        // Ceph says no more than `InvalidArgument` to a token that it cannot read. To `HEAD` there are no words at all: Amazon answers
        // 400 to a token that has ended, Ceph 403 (seen at 16.2).
        let isOfToken = isLent && response.status == 400 && (code == nil || words == "InvalidArgument")
        status = response.status
        isStored = response.status == 203 && code == "CallbackFailed"
        isOfKey = isOfToken || Self.codesOfKeys.contains(code) || code == nil && response.status == 403
        remedy = isOfToken ? .authenticate : Self.remedy(code, response, now)
        // Amazon says the latter of an id with a slash in it, too.
        isOfRights = isOfKey || remedy == .authenticate || code == "AuthorizationHeaderMalformed"
    }

    /// It may stand in the service's host (`s3.REGION.amazonaws.com`), and can lead nowhere else than below the rest of that.
    ///
    /// - Returns: `nil` for what is no name of a region.
    static func region(_ name: String?) -> String? {
        guard let name, (1...63).contains(name.utf8.count), !name.hasPrefix("."), !name.hasSuffix("."),
            name.utf8.allSatisfy({ $0.isLetterOrDigit(or: "-_.") })
        else { return nil }
        return name
    }

    /// What OSS says of a credential that has ended.
    static let endsAtOSS: Set<String> = [
        "SecurityTokenExpired", "InvalidSecurityToken", "AccessKeyIdAndSecurityTokenNotMatch", "InvalidAccessKeyId",
    ]
    private static let codesOfKeys: Set<String?> = endsAtOSS.union([
        "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "AccessDenied",
    ])

    private static func remedy(_ code: String?, _ response: Response, _ now: WallTime) -> Remedy {
        let wait = retryAfter(response.headers, now: now)
        if let code, let known = remedies[code] {
            if case .rateLimit = known { return .rateLimit(after: wait) }
            if case .holdDestination = known { return .holdDestination(after: wait) }
            return known
        }
        if code?.hasPrefix("Throttling") == true { return .rateLimit(after: wait) }
        return switch response.status {
        case 401, 403: .authenticate
        case 408, 409, 425: .again(after: wait)
        case 429: .rateLimit(after: wait)
        case 507: .noRoom(after: wait)
        // An answer inside a 200 that nobody knows is one of the server's own troubles.
        case 200..<300, 500...: .holdDestination(after: wait)
        case 300..<400, 404, 405: .misconfigured
        case let status where StatusOfPath.all.contains(status): .holdDestination(after: wait)
        default: .giveUp
        }
    }

    private static let remedies: [String: Remedy] = {
        var table: [String: Remedy] = [:]
        func put(_ remedy: Remedy, _ codes: String...) { for code in codes { table[code] = remedy } }
        put(.rateLimit(after: nil), "SlowDown", "TooManyRequests", "RequestLimitExceeded", "BandwidthLimitExceeded")
        put(.holdDestination(after: nil), "InternalError", "ServiceUnavailable", "NotImplemented")
        put(.again(after: nil), "RequestTimeout", "OperationAborted", "ConditionalRequestConflict", "IncompleteBody")
        put(.refused(after: nil), "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch")
        put(.authenticate, "AccessDenied", "AllAccessDisabled", "AccountProblem", "InvalidAccessKeyId")
        put(
            .authenticate, "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired",
            "InvalidSecurity")
        put(.authenticate, "SecurityTokenExpired", "InvalidSecurityToken", "AccessKeyIdAndSecurityTokenNotMatch")
        put(
            .rateLimit(after: nil), "UploadTrafficRateLimitExceeded", "TotalQpsLimitExceeded",
            "MetaOperationQpsLimitExceeded")
        put(
            .holdDestination(after: nil), "InDebt", "InDebtOverdue", "UserDisable", "BucketDisable",
            "AbnormalBucketOwnerStatus")
        put(.misconfigured, "SecondLevelDomainForbidden", "InvalidBucketStatus")
        put(.authenticate, "RequestTimeTooSkewed", "NotSignedUp", "UnauthorizedAccess")
        put(.misconfigured, "NoSuchBucket", "InvalidBucketName", "PermanentRedirect", "TemporaryRedirect")
        put(.misconfigured, "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "InvalidRegionName")
        put(.misconfigured, "InvalidStorageClass", "InvalidEncryptionAlgorithmError")
        put(
            .noRoom(after: nil), "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "InsufficientStorageSpace"
        )
        return table
    }()

    var isOfRegion: Bool {
        [
            "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
            "IllegalLocationConstraintException", "InvalidRegionName", nil,
        ].contains(code)
    }
    /// The object is there, and what the service was to tell of it failed (OSS, "Callback": 203).
    let isStored: Bool
    /// There is an object of that key.
    var isOfTaken: Bool { code == "PreconditionFailed" || code == "FileAlreadyExists" || status == 412 }
    var isDamage: Bool { ["BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch"].contains(code) }
    /// The request is none that this server knows.
    var isUnknownHere: Bool { code == "NotImplemented" || code == "MethodNotAllowed" }
}
