internal import Core
internal import Digests
internal import Linux
internal import Synchronization

/// The configured tokens. Each is read again from its source, so that a changed one applies and a revoked one ends.
final class ControlTokens: Sendable {
    private let sources: [ControlServer.Token]
    private let clocks: any Clocks
    private let logMessage: @Sendable (String) -> Void

    private struct Entry {
        var bytes: [UInt8]
        var readAt: MonotonicTime
        var isReading = false
        var isBroken = false
    }
    private let entries: Mutex<[Entry]>

    /// A token that was changed or revoked stays valid for at most this long.
    static let freshness: Duration = .seconds(30)

    /// - Parameter say: Writes a line to the log.
    init(_ sources: [ControlServer.Token], clocks: any Clocks, say: @escaping @Sendable (String) -> Void) async throws {
        self.sources = sources
        self.clocks = clocks
        logMessage = say
        var entries: [Entry] = []
        for source in sources {
            let token = Array(try await source.read().utf8)
            entries.append(Entry(bytes: token, readAt: clocks.monotonic()))
            if let complaint = Self.complaint(about: token, source) { say(complaint) }
        }
        self.entries = Mutex(entries)
    }

    /// The client that has this token.
    func client(_ given: [UInt8]) -> ControlClientIdentity? {
        renewIfOld()
        return entries.withLock { entries in
            // All are compared, so that the time says nothing about which one it is.
            zip(sources, entries).reduce(nil) { found, one in
                isSameSecret(given, one.1.bytes) ? found ?? one.0.client : found
            }
        }
    }

    /// The present secret of a client's token; `nil` for one that is no longer configured.
    func secret(of client: ControlClientIdentity) -> [UInt8]? {
        renewIfOld()
        guard let index = sources.firstIndex(where: { $0.client == client }) else { return nil }
        return entries.withLock { $0[index].bytes }
    }

    private func renewIfOld() {
        let now = clocks.monotonic()
        let due = entries.withLock { entries in
            entries.indices.filter { index in
                guard !entries[index].isReading, now.since(entries[index].readAt) >= Self.freshness else {
                    return false
                }
                entries[index].isReading = true
                return true
            }
        }
        for index in due { Task { await renew(index) } }
    }

    private func renew(_ index: Int) async {
        let source = sources[index]
        let result: Result<String, any Error>
        do { result = .success(try await source.read()) } catch { result = .failure(error) }
        let message = entries.withLock { entries -> String? in
            entries[index].isReading = false
            entries[index].readAt = clocks.monotonic()
            let wasBroken = entries[index].isBroken
            switch result {
            case .success(let token):
                let (old, new) = (entries[index].bytes, Array(token.utf8))
                entries[index].bytes = new
                entries[index].isBroken = false
                if new != old, let complaint = Self.complaint(about: new, source) { return complaint }
                return wasBroken ? "the token `\(source.client.name)` can be read again" : nil
            case .failure(let error):
                entries[index].isBroken = true
                return wasBroken ? nil : "the token `\(source.client.name)` stays as it was: \(error)"
            }
        }
        if let message { logMessage(message) }
    }

    private static func complaint(about token: [UInt8], _ source: ControlServer.Token) -> String? {
        Core.complaint(aboutToken: token).map { "token `\(source.client.name)`: \($0)" }
    }
}
