internal import Core
internal import Transport

/// Requests without bytes of the file to a server that names the addresses of its uploads. Redirects are followed to
/// allowed origins only.
struct RedirectedRequests: Sendable {
    let client: AuthorizedClient
    let allowed: AllowedOrigins
    let context: RequestContext

    private static let maxRedirects = 5

    /// Sends one request. A lost answer is an ``UploadError`` too.
    func send(_ request: Request) async throws -> AuthorizedClient.Answer {
        do { return try await client.send(request, context) } catch let error as AuthorizedClient.NoAnswerError {
            throw error.error
        }
    }

    /// Sends a request without a body, and follows permanent and temporary redirects.
    func follow(_ request: Request) async throws -> AuthorizedClient.Answer {
        var request = request
        var answer = try await send(request)
        for _ in 0..<Self.maxRedirects {
            guard answer.response.status == 307 || answer.response.status == 308 else { return answer }
            request.url = try target(of: answer, request.method)
            answer = try await send(request)
        }
        throw client.refused(request.method, answer.response, .misconfigured)
    }

    /// The address that a redirect names.
    ///
    /// - Throws: For a redirect that is not followed, because its origin is not allowed, as with portals.
    func target(of answer: AuthorizedClient.Answer, _ what: String) throws(UploadError) -> String {
        var refusal = client.refused(what, answer.response, .misconfigured)
        guard let location = answer.response.headers["Location"],
            let target = try? UploadLocation(location, base: answer.url, allowed: allowed)
        else { throw refusal }
        if target.isAllowed { return target.url }
        refusal.failure.message += client.withoutSecrets(". It leads to \(allowed.objection(to: target.url))")
        throw refusal
    }

    /// The address of the upload that a successful creation names. Its origin may not be allowed.
    ///
    /// - Parameters:
    ///   - endpoint: The address for creations.
    ///   - log: Takes a line for the log.
    func uploadAddress(
        _ answer: AuthorizedClient.Answer, of endpoint: String, log: @Sendable (String) -> Void
    ) throws(UploadError) -> String {
        let response = answer.response
        guard let location = response.headers["Location"], !location.isEmpty else {
            let isPage = response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") == true
            throw UploadError(
                client.failure(
                    .protocol, .noLocation,
                    "\(client.host(endpoint)) answered \(response.status) to the creation without saying where the upload is"
                        + (isPage ? "; it sent a web page: a login portal, or the wrong address" : ""),
                    retryable: true), remedy: .misconfigured)
        }
        do {
            let resolved = try UploadLocation(location, base: answer.url, allowed: allowed)
            if resolved.isSchemeUpgraded {
                log("\(client.host(endpoint)) names uploads with http, but was reached with https; https is used")
            }
            return resolved.url
        } catch {
            throw UploadError(
                client.failure(
                    .config, .badLocation, "the server's address for the upload is refused: \(error.reason)",
                    retryable: true),
                remedy: .misconfigured)
        }
    }
}
