internal import Core
internal import Transport

/// A server that speaks tus 1.0, and the facts that all uploads to it have learned.
struct TusServer: Sendable {
    private(set) var endpoint: String
    let client: AuthorizedClient
    let settings: TusSettings
    private(set) var capabilities: TusCapabilities
    let log: @Sendable (String) -> Void
    let creations = CreationBackoff()
    let bodies = BodyRefusal()
    let concatenations = ConcatenationRefusal()
    /// The same for creations.
    let creationBodies = BodyRefusal()
    let override = MethodOverride()
    let addresses = UploadAddresses()

    /// The same server at another of its addresses, about which nothing is known yet.
    func elsewhere(_ url: String) -> TusServer {
        var other = self
        (other.endpoint, other.capabilities) = (url, TusCapabilities(settings))
        return other
    }

    /// Allowed origins of addresses in answers.
    var allowed: AllowedOrigins { client.allowed ?? AllowedOrigins(homes: [endpoint]) }
}
