internal import Transport

/// The address of the finished file, if the final answer of the target names one.
struct FinalAddress: Sendable {
    /// `nil` where there is none, and where it may be a secret: the address of the upload, or one with a query.
    let url: String?

    private static let limit = 2048

    /// - Parameter upload: The address of the upload.
    init(_ answer: AuthorizedClient.Answer, upload: String, _ allowed: AllowedOrigins) {
        guard let location = answer.response.headers["Location"], !location.isEmpty,
            let target = try? UploadLocation(location, base: answer.url, allowed: allowed), target.url != upload,
            target.url.utf8.count <= Self.limit, !target.url.contains("?")
        else {
            url = nil
            return
        }
        url = target.url
    }
}
