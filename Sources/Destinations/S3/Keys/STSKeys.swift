internal import Core
internal import Linux
internal import Transport

/// Temporary keys that a service or program of the person hands out. They are requested again before they end, and when
/// one is refused.
actor STSKeys: S3KeySource {
    private let service: CredentialHelper
    private let client: AuthorizedClient
    private var held: (key: S3Key, end: WallTime?)?
    /// One request for all waiting tasks.
    private let question = SingleFlight()
    private var reading = 0
    private var isRefused = false
    private var askedAt: WallTime?

    /// A service that gives the same key until its end is not queried again for each part. (ms)
    private static let pause: Int64 = 60_000

    init(_ service: CredentialHelper, _ client: AuthorizedClient) {
        self.service = service
        self.client = client
    }

    static func make(
        _ source: CredentialHelper.Source, _ client: AuthorizedClient, _ tools: DestinationTools, reply: Duration?
    ) -> STSKeys {
        let service = CredentialHelper(
            source, role: "the service for temporary keys", code: .stsUnusable, client: client, reader: tools.secrets,
            reply: reply)
        return STSKeys(service, client)
    }

    func current(_ context: RequestContext) async throws -> (key: S3Key, reading: Int) {
        if let held, !isRefused, !isDue(held.end) { return (held.key, reading) }
        do { try await question.join { try await self.requestKey(context) } } catch {
            // A key that is still valid is used although its renewal failed.
            if let held, !isRefused, let end = held.end, end > client.clocks.wall() { return (held.key, reading) }
            throw error
        }
        guard let held else { throw service.problem("gives no key", .authenticate) }
        return (held.key, reading)
    }

    func refused(_ reading: Int) { if reading == self.reading { isRefused = true } }

    private func isDue(_ end: WallTime?) -> Bool {
        let now = client.clocks.wall()
        guard let end, end < now.advanced(by: S3Keys.margin) else { return false }
        return askedAt.map { abs(now.milliseconds - $0.milliseconds) >= Self.pause } ?? true
    }

    private func requestKey(_ context: RequestContext) async throws {
        askedAt = client.clocks.wall()
        let bytes = try await service.answer(
            to: .object(["version": .whole(1), "operation": .text("keys"), "destination": .text(client.name)]),
            "the request for temporary keys", context)
        guard let json = JSONValue.read(bytes), case .object = json else {
            throw service.problem("gives something other than a JSON object", .holdDestination(after: nil))
        }
        if let words = (json["error"]?["message"] ?? json["error"] ?? json["Message"])?.string {
            throw service.problem("gives no key: \(service.shown(words))", .authenticate)
        }
        do {
            // Also in the form of the security token service itself.
            let document = try (json["Credentials"] ?? json).bytes
            held = try S3KeyDocument.read(String(decoding: document, as: UTF8.self), profile: "", from: "its answer")
        } catch let error as S3Keys.UnusableKeyError {
            throw service.problem("gives no key: \(error)", .authenticate)
        }
        isRefused = false
        reading += 1
    }
}
