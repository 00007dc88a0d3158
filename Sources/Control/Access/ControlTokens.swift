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
        var reading: Task<Void, Never>?
        /// Its source has had its time: no further request waits for this reading.
        var isLate = false
        var isBroken = false
    }
    private let entries: Mutex<[Entry]>

    /// A token that was changed or revoked stays valid for at most this long, if its source answers.
    static let freshness: Duration = .seconds(30)
    private let patience: Duration

    /// - Parameters:
    ///   - patience: A request waits this long for a source.
    ///   - say: Writes a line to the log.
    init(
        _ sources: [ControlServer.Token], clocks: any Clocks, patience: Duration = .seconds(5),
        say: @escaping @Sendable (String) -> Void
    ) async throws {
        self.sources = sources
        self.clocks = clocks
        self.patience = patience
        logMessage = say
        var entries: [Entry] = []
        for source in sources {
            let token = Array(try await source.read().utf8)
            entries.append(Entry(bytes: token, readAt: clocks.monotonic()))
            if let complaint = Self.complaint(about: token, source) { say(complaint) }
        }
        self.entries = Mutex(entries)
    }

    /// Waits until each token that is older than ``freshness`` was read again. A source that does not answer is waited
    /// for once; its token stays as it was until it answers.
    func refresh() async {
        let running = renewIfOld()
        if running.isEmpty { return }
        await AsyncSignal.wait(for: running.map(\.task), atMost: patience)
        // The server stops, and nothing is known about the sources.
        if Task.isCancelled { return }
        let late = entries.withLock { entries in
            running.map(\.index).filter { index in
                guard entries[index].reading != nil, !entries[index].isLate else { return false }
                entries[index].isLate = true
                return true
            }
        }
        for index in late {
            logMessage("the token `\(sources[index].client.name)` stays as it was: its source has not answered yet")
        }
    }

    /// The client that has this token, as far as is known without waiting.
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

    /// Begins to read the tokens that are too old.
    ///
    /// - Returns: The readings that are running and worth waiting for.
    @discardableResult
    private func renewIfOld() -> [(index: Int, task: Task<Void, Never>)] {
        let now = clocks.monotonic()
        return entries.withLock { entries in
            for index in entries.indices
            where entries[index].reading == nil && now.since(entries[index].readAt) >= Self.freshness {
                // It stores its result with this lock, so not before the entry has the task.
                entries[index].reading = Task { await renew(index) }
            }
            return entries.indices.compactMap { index in
                entries[index].isLate ? nil : entries[index].reading.map { (index: index, task: $0) }
            }
        }
    }

    private func renew(_ index: Int) async {
        let source = sources[index]
        let result: Result<String, any Error>
        do { result = .success(try await source.read()) } catch { result = .failure(error) }
        let message = entries.withLock { entries -> String? in
            (entries[index].reading, entries[index].isLate) = (nil, false)
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
