internal import Core
internal import Transport

/// A refusal of a service and its remedy (Amazon S3 API reference, "Error responses"; observed answers of other
/// servers).
struct S3Verdict: Sendable {
    /// The service's code; `nil` where there is none, as with HEAD.
    let code: String?
    let message: String
    private let status: Int
    let remedy: Remedy
    /// The refusal has no body. With HEAD that is always so, and the cause is the key, its region or its date.
    let hasNoBody: Bool
    /// The refusal has a body that is no error document: a proxy's, or that of another server.
    let isFromOtherServer: Bool
    /// The region for which requests to this bucket have to be signed.
    let region: String?
    /// The key may have ended, or is invalid.
    let concernsKey: Bool
    /// The cause is the key, its secret, or its rights.
    let concernsRights: Bool

    /// - Parameter isTemporary: The request carried the token of a temporary key.
    init(_ response: Response, isTemporary: Bool, now: WallTime) {
        // OSS answers a request without a body with its error document in a header.
        let document =
            response.body.isEmpty
            ? response.headers["x-oss-err"].flatMap { bytes(base64: $0) } ?? [] : response.body
        let body = document.isEmpty ? nil : XMLValue.read(document)
        let error = body?.name == "Error" ? body : body?["Error"]
        code = error?["Code"]?.text
        message = [code, error?["Message"]?.text].compactMap { $0 }.joined(separator: ": ")
        isFromOtherServer = code == nil && !document.isEmpty
        hasNoBody = document.isEmpty && (response.status == 400 || response.status == 403)
        region = Self.region(response.headers["x-amz-bucket-region"] ?? error?["Region"]?.text)
        // Ceph answers only `InvalidArgument` to a token that it cannot read. `HEAD` has no error document at all:
        // Amazon answers 400 to a token that has ended, Ceph 403 (seen at 16.2).
        let concernsToken = isTemporary && response.status == 400 && (code == nil || message == "InvalidArgument")
        status = response.status
        isStored = response.status == 203 && code == "CallbackFailed"
        concernsKey = concernsToken || Self.codesOfKeys.contains(code) || code == nil && response.status == 403
        remedy = concernsToken ? .authenticate : Self.remedy(code, response, now)
        // Amazon uses the latter also for an id with a slash in it.
        concernsRights = concernsKey || remedy == .authenticate || code == "AuthorizationHeaderMalformed"
    }

    /// The region may be inserted into the service's host (`s3.REGION.amazonaws.com`), and must not lead outside the
    /// rest of that host.
    ///
    /// - Returns: `nil` for a text that is no region name.
    static func region(_ name: String?) -> String? {
        guard let name, (1...63).contains(name.utf8.count), !name.hasPrefix("."), !name.hasSuffix("."),
            name.utf8.allSatisfy({ $0.isLetterOrDigit(or: "-_.") })
        else { return nil }
        return name
    }

    /// OSS's codes for a credential that has ended.
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
        case 408, 409, 425: .retry(after: wait)
        case 429: .rateLimit(after: wait)
        case 507: .outOfSpace(after: wait)
        // An unknown error inside a 200 is a fault of the server.
        case 200..<300, 500...: .holdDestination(after: wait)
        case 300..<400, 404, 405: .misconfigured
        // A service says why.
        case 410 where code == nil, 412 where code == nil: .misconfigured
        case let status where IntermediaryStatus.all.contains(status): .holdDestination(after: wait)
        default: .failUpload
        }
    }

    private static let remedies: [String: Remedy] = {
        var table: [String: Remedy] = [:]
        func put(_ remedy: Remedy, _ codes: String...) { for code in codes { table[code] = remedy } }
        put(.rateLimit(after: nil), "SlowDown", "TooManyRequests", "RequestLimitExceeded", "BandwidthLimitExceeded")
        put(.holdDestination(after: nil), "InternalError", "ServiceUnavailable", "NotImplemented")
        put(.retry(after: nil), "RequestTimeout", "OperationAborted", "ConditionalRequestConflict", "IncompleteBody")
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
            .outOfSpace(after: nil), "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull",
            "InsufficientStorageSpace"
        )
        return table
    }()

    var concernsRegion: Bool {
        [
            "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
            "IllegalLocationConstraintException", "InvalidRegionName", nil,
        ].contains(code)
    }
    /// The object is stored, and the callback that the service was to send for it failed (OSS, "Callback": 203).
    let isStored: Bool
    /// There is an object with that key.
    var isNameConflict: Bool {
        code == "PreconditionFailed" || code == "FileAlreadyExists" || status == 412 && code != nil
    }
    var isDamage: Bool { ["BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch"].contains(code) }
    /// The server does not support the request.
    var isUnknownHere: Bool { code == "NotImplemented" || code == "MethodNotAllowed" }
}

extension UploadError {
    /// The same error, where an earlier request may have created the object.
    var ofDoubt: UploadError {
        var error = self
        error.failure.code = .perhapsThere
        return error
    }
}
