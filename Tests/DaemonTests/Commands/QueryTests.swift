import API
import Core
import Credentials
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Queries, without a daemon")
struct QueryTests {
    private static func queries(_ scene: ComponentScene) -> UploadQueries {
        UploadQueries(
            context: scene.context, finder: scene.finder, views: scene.views,
            sources: scene.parts.sources, mediaReading: scene.parts.mediaReading, troubles: scene.parts.troubles,
            stagingHolds: scene.parts.stagingHolds)
    }

    @Test("a list is returned in pages, newest first")
    func pages() async throws {
        let scene = try await ComponentScene()
        var ids: [String] = []
        for name in ["a", "b", "c"] as [FilePath] { ids.append(try await scene.record(name)) }
        var query = ListQuery()
        query.limit = 2
        let first = try await Self.queries(scene).list(query)
        #expect(first.uploads.map(\.id) == Array(ids.reversed().prefix(2)))
        #expect(first.counts.ongoing == 3)
        query.after = first.next
        let second = try await Self.queries(scene).list(query)
        #expect(second.uploads.map(\.id) == [ids[0]])
        #expect(second.next == nil)
    }

    @Test("what a list shows of a name finds it again, in any case, also where its bytes are no text")
    func text() async throws {
        let scene = try await ComponentScene()
        let names = ["Front DOOR.mp4", FilePath(bytes: Array("caf".utf8) + [0xE9] + Array("\u{202E} \\x41.mp4".utf8))]
        for name in names { _ = try await scene.record(name) }
        let shown = try await Self.queries(scene).list(ListQuery()).uploads
        #expect(shown.count == 2)
        for upload in shown {
            for text in [upload.name, upload.name.replacing(".mp4", with: ".MP4"), upload.relative ?? ""] {
                var query = ListQuery()
                query.text = text
                #expect(try await Self.queries(scene).list(query).uploads.map(\.id) == [upload.id], "\(text)")
            }
        }
    }

    @Test("an unknown name in an empty list is refused")
    func unknownName() async throws {
        let scene = try await ComponentScene()
        var query = ListQuery()
        query.folder = "camm"
        await #expect { _ = try await Self.queries(scene).list(query) } throws: {
            ($0 as? Refusal)?.code == .notFound
        }
    }

    @Test("uploads whose copies wait for staging space are listed as waiting")
    func waiting() async throws {
        let scene = try await ComponentScene()
        let id = try await scene.record("a.mp4")
        var query = ListQuery()
        query.state = "waiting"
        #expect(try await Self.queries(scene).list(query).uploads.isEmpty)
        _ = scene.parts.troubles.set("staging", Hold(.disk, since: scene.clocks.wall(), text: "full"))
        #expect(try await Self.queries(scene).list(query).uploads.map(\.id) == [id])
    }

    @Test("usage takes days and months within limits, and known names", arguments: [(-1, 0), (0, 99), (401, 0)])
    func usage(_ days: Int, _ months: Int) async throws {
        let scene = try await ComponentScene()
        let usage = UsageQueries(context: scene.context, scheduler: scene.scheduler, ledger: scene.parts.limits.ledger)
        await #expect {
            var query = UsageQuery()
            (query.days, query.months) = (days, months)
            _ = try await usage.usage(query)
        } throws: { ($0 as? Refusal)?.code == .badRequest }
        #expect(try await usage.usage(UsageQuery()).days.count == 7)
    }
}
