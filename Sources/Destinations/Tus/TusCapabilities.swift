internal import Core
internal import Synchronization
internal import Transport

/// A server's description of itself in its answer to OPTIONS (tus 1.0, "Protocol Discovery").
struct TusAnnounced: Hashable, Sendable {
    let versions: [String]
    let extensions: Set<String>
    /// Maximum bytes of one upload.
    let maxSize: Int64?
    let checksums: Set<String>
    /// The server answers whether it holds a content: our own extension, which `sluice receive` implements.
    let canLookUp: Bool
    /// Free space in bytes: our own extension too.
    let free: Int64?
    /// A creation with the same `sluiceId` is answered with the same upload, so that it may carry bytes and be repeated:
    /// our own extension too.
    var repeatsCreations = false

    var space: RemoteSpace? { free.map { RemoteSpace(free: $0) } }
}

extension TusAnnounced {
    /// `nil` without `Tus-Version`: another server or proxy answered.
    init?(_ headers: Headers) {
        func list(_ name: String) -> [String] {
            (headers[name] ?? "").split(separator: ",").map { String($0.filter { $0 != " " }) }.filter { !$0.isEmpty }
        }
        let versions = list("Tus-Version")
        if versions.isEmpty { return nil }
        let extensions = Set(list("Tus-Extension"))
        self.init(
            versions: versions, extensions: extensions,
            maxSize: headers["Tus-Max-Size"].flatMap { plainInteger($0) },
            checksums: extensions.contains("checksum") ? Set(list("Tus-Checksum-Algorithm")) : [],
            canLookUp: headers["Sluice-Lookup"] == "1",
            free: headers["Sluice-Space-Free"].flatMap { plainInteger($0) },
            repeatsCreations: headers["Sluice-Idempotent-Creation"] == "1")
    }
}

/// The last answer to OPTIONS, kept for an hour and shared by all uploads of a destination.
///
/// A missing answer is no failure: proxies answer OPTIONS themselves, and some servers fail on it. Then tus core with
/// creation is assumed.
final class TusCapabilities: Sendable {
    private let kept = Mutex<(announced: TusAnnounced?, until: MonotonicTime)?>(nil)
    /// The configured extensions, with which the server is not asked.
    private let listed: TusAnnounced?

    init(_ settings: TusSettings = TusSettings()) { listed = settings.extensions.map { TusAnnounced(listed: $0) } }

    /// Whether the server's answer to OPTIONS counts.
    var isAsked: Bool { listed == nil }

    func current(_ dialect: TusDialect) async throws -> TusAnnounced? {
        if let listed { return listed }
        if let kept = kept.withLock({ $0 }), dialect.client.clocks.monotonic() < kept.until { return kept.announced }
        return try await query(dialect)
    }

    /// Like ``current(_:)``, but queries again if the stored answer contains values that change.
    func latest(
        _ dialect: TusDialect, where changes: (TusAnnounced) -> Bool
    ) async throws -> TusAnnounced? {
        if isAsked, let known = kept.withLock({ $0 })?.announced, changes(known) { return try await query(dialect) }
        return try await current(dialect)
    }

    /// The last answer, however old.
    var last: TusAnnounced? { listed ?? kept.withLock { $0 }?.announced }

    func query(_ dialect: TusDialect) async throws -> TusAnnounced? {
        let clocks = dialect.client.clocks
        let announced: TusAnnounced?
        do { announced = try await dialect.options(dialect.endpoint)?.announced } catch let error as UploadError {
            // A server that closes on OPTIONS may still accept uploads; an unreachable one does not.
            guard error.failure.code == .connectionLost else { throw error }
            announced = nil
        }
        let until = clocks.monotonic().advanced(by: announced == nil ? .seconds(300) : .seconds(3600))
        kept.withLock { $0 = (announced, until) }
        return announced
    }
}
