internal import Core
internal import Credentials
internal import Transport

/// The protocol of a server that names the address of each upload: tus, and the draft that follows it.
protocol AddressedDialect: OffsetDialect {
    /// The configured address, where uploads are created.
    var endpoint: String { get }
    var client: AuthorizedClient { get }
    /// The context of its requests.
    var context: RequestContext { get }
}

extension AddressedDialect {
    /// The server is the origin of the configured address; the upload's own address may have another, which the server
    /// chooses.
    func isOurs(_ checkpoint: OffsetCheckpoint) -> Bool {
        checkpoint.server.map { WebAddress($0).origin == WebAddress(endpoint).origin } ?? true
    }

    func objection(to checkpoint: OffsetCheckpoint) -> UploadError? {
        checkpoint.url.flatMap { client.objection(to: $0) }
    }

    func reserve(for count: Int64) async -> Shortage? { await context.permit.reserve(for: count) }
    func returnReservation(for count: Int64, sent: Int64) {
        context.permit.returnReservation(for: count, sent: sent)
    }

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        client.failure(kind, code, message, retryable: retryable)
    }
}

extension DestinationTools {
    /// The client of such a server.
    ///
    /// - Parameters:
    ///   - url: The configured address.
    ///   - named: `allow_origins`.
    func client(token: SecretSource?, url: String, named: [String]) -> AuthorizedClient {
        let headers = token.map {
            [CredentialProvider.Header("Authorization", prefix: "Bearer ", $0, key: "token")]
        }
        let allowed = AllowedOrigins(homes: [url], named: named)
        return AuthorizedClient(
            self, headers: headers ?? [], origins: allowed.origins, allowed: allowed, hidesAddresses: true)
    }
}
