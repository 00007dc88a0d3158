internal import Core
internal import Synchronization
internal import Transport

/// What a server says about resumable uploads in its answer to OPTIONS (the draft's section on limits).
struct UploadAnnouncement: Hashable, Sendable {
    /// It creates resumable uploads: it takes `application/partial-upload` (`Accept-Patch`), or names limits.
    let isOfDraft: Bool
    let limits: UploadLimits
    /// `Tus-Version`: it speaks tus 1.0, alone or besides the draft.
    let isOfTus: Bool

    init(_ headers: Headers) {
        let limits = UploadLimits(headers)
        let types = headers.lines.filter { $0.name.lowercased() == "accept-patch" }.flatMap {
            $0.value.lowercased().split(separator: ",").map { String($0.prefix { $0 != ";" }.trimmed) }
        }
        isOfDraft = limits != nil || types.contains("application/partial-upload")
        self.limits = limits ?? UploadLimits()
        isOfTus = headers["Tus-Version"] != nil
    }
}

/// The last answer to OPTIONS, kept for an hour and shared by all uploads of a destination.
///
/// A missing answer is no failure: proxies answer OPTIONS themselves, and servers of older drafts announce nothing.
final class UploadDiscovery: Sendable {
    private let kept = Mutex<(announced: UploadAnnouncement?, until: MonotonicTime)?>(nil)

    /// - Parameter query: Asks the server; `nil` for an answer that is not the server's.
    func current(
        _ clocks: any Clocks, _ query: () async throws -> UploadAnnouncement?
    ) async throws -> UploadAnnouncement? {
        if let kept = kept.withLock({ $0 }), clocks.monotonic() < kept.until { return kept.announced }
        return try await refresh(clocks, query)
    }

    func refresh(
        _ clocks: any Clocks, _ query: () async throws -> UploadAnnouncement?
    ) async throws -> UploadAnnouncement? {
        let announced: UploadAnnouncement?
        do { announced = try await query() } catch let error as UploadError {
            // A server that closes on OPTIONS may still accept uploads; an unreachable one does not.
            guard error.failure.code == .connectionLost else { throw error }
            announced = nil
        }
        let until = clocks.monotonic().advanced(by: announced == nil ? .seconds(300) : .seconds(3600))
        kept.withLock { $0 = (announced, until) }
        return announced
    }
}
