internal import Core
internal import Transport

/// A server that speaks the draft, and the facts that all uploads to it have learned.
struct ResumableHTTPServer: Sendable {
    private(set) var endpoint: String
    let client: AuthorizedClient
    let settings: ResumableHTTPSettings
    private(set) var interop: InteropMemory
    private(set) var discovery = UploadDiscovery()
    let log: @Sendable (String) -> Void
    let creations = CreationBackoff()
    let bodies = BodyRefusal()
    let addresses = UploadAddresses()

    init(
        endpoint: String, client: AuthorizedClient, settings: ResumableHTTPSettings,
        log: @escaping @Sendable (String) -> Void
    ) {
        self.endpoint = endpoint
        self.client = client
        self.settings = settings
        self.log = log
        interop = InteropMemory(settings.interop)
    }

    /// The same server at another of its addresses, about which nothing is known yet.
    func elsewhere(_ url: String) -> ResumableHTTPServer {
        var other = self
        (other.endpoint, other.discovery, other.interop) = (url, UploadDiscovery(), InteropMemory(settings.interop))
        return other
    }

    /// Allowed origins of addresses in answers.
    var allowed: AllowedOrigins { client.allowed ?? AllowedOrigins(homes: [endpoint]) }

    /// The meaning of an answer.
    ///
    /// - Parameter version: That of the request.
    func verdict(
        _ verb: ResumableHTTPVerdict.Verb, _ response: Response, to version: InteropVersion
    ) -> ResumableHTTPVerdict {
        let isFull = response.isOfFullStorage
        let isOfVersion =
            interop.isAutomatic && (interop.learn(from: response.headers, to: version) || mentionsVersion(response))
        return ResumableHTTPVerdict(
            verb, status: response.status,
            ResumableHTTPVerdict.Reason(
                problem: UploadProblem(response), code: response.leadingErrorCode,
                isOfVersion: isOfVersion, isFull: isFull,
                wait: retryAfter(
                    response.headers, now: client.clocks.wall(), most: isFull ? Response.longestFullWait : 3600)))
    }

    /// Whether the text of a refusal is about the version of the draft, as in `unsupported draft interop version`.
    private func mentionsVersion(_ response: Response) -> Bool {
        if response.isWebPage { return false }
        let text = String(decoding: response.body.prefix(1024), as: UTF8.self).lowercased()
        return text.contains("interop") || text.contains("draft") && text.contains("version")
    }
}
