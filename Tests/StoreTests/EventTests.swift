import Core
import TestKit
import Testing

@testable import Store

@Suite("Stored events")
struct EventTests {
    private static let record = OverrideRecord(
        scope: .upload, name: "01A", kind: .exemption(.metered), since: WallTime(milliseconds: 0),
        until: WallTime(milliseconds: 60_000), who: "root")
    private static let reached = QuotaThresholds.Reached(
        place: .destination("nas"), quota: Quota(period: .day, bytes: 100), text: "100 B a day", counts: "bytes",
        threshold: 80, used: 85, limit: 100,
        stretch: WallTime(milliseconds: 0)..<WallTime(milliseconds: 86_400_000))

    /// One of each case.
    private static let all: [Event] = [
        .loaded(ongoing: 3), .added, .moved(from: .queued, to: .uploading, reason: "tried"),
        .moved(from: .uploading, to: .completed, reason: nil, remoteID: "7", url: "https://x.example/7"),
        .moved(from: .uploading, to: .failed, reason: nil), .moved(from: .queued, to: .cancelled, reason: "expired"),
        .rebuilt(.completed), .rebuilt(.failed), .held(true), .held(false), .takesOver("nas is failed"),
        .alsoVerified(remoteID: "7", url: "https://x.example/7", at: "nas"),
        .removed(list: "failed", reason: "flushed"), .attempt(number: 2, code: .http(503)),
        .attemptFailed(code: .http(503), message: "the server answered 503"), .recovered(attempt: 2, seconds: 9),
        .recovered(attempt: 2, seconds: nil), .credential(CredentialRenewal(reason: .refused)),
        .source(.kept, note: nil), .remoteDelete(.done), .flushed(lists: ["failed", "completed"], count: 2),
        .paused(.folder, name: "cam"), .resumed(.all, name: ""), .allowed(record),
        .allowedNoMore(.upload, name: "01A", kind: "metered"), .quotaReached(reached),
        .groupEnded(GroupSummary(name: "card", folder: "cam", files: 2, bytes: 10, verified: 1)),
        .safeToRemove(.staged, folders: ["a", "b"], path: "/media/card", medium: "0f", unverified: 1, failed: 0),
    ]

    @Test("every event is read back with its type and its fields, and with a type that readers of the stream know")
    func roundTrip() async throws {
        let scene = try await Scene()
        for event in Self.all { try await scene.store.write { try $0.events.append(event, of: "01A") } }
        let stored = try await scene.store.read { try $0.events.list(after: 0, limit: 100) }
        #expect(stored.count == Self.all.count)
        for (event, record) in zip(Self.all, stored) {
            #expect(record.type == event.type && record.upload == "01A", "\(event)")
            #expect(
                record.detail == Dictionary(uniqueKeysWithValues: event.detail.map { ($0.rawValue, $1) }), "\(event)")
            #expect(EventType.inStream.contains(record.type), "\(event)")
        }
        // All types that are stored occur.
        #expect(Set(stored.map(\.type)) == Set(EventType.forHooks + [.allowed]))
    }

    @Test("a type and fields of a newer program are kept as they are")
    func newer() async throws {
        let scene = try await Scene()
        try await scene.store.write { tx in
            try tx.events.append(.added)
            try tx.connection.run("UPDATE event SET type = 'teleported', detail = '{\"to\":\"mars\"}'", [])
            try tx.events.append(.added, of: "01A")
        }
        let stored = try await scene.store.read { try $0.events.list(after: 0, limit: 100) }
        #expect(stored.map(\.type.rawValue) == ["teleported", "added"])
        #expect(stored.first?.detail == ["to": "mars"])
        #expect(stored.first?.detail[.to] == "mars")
    }
}
