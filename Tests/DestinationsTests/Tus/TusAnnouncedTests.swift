import Core
import Destinations
import Synchronization
import TestKit
import Testing

@Suite("tus: what a server announces", .timeLimit(.minutes(Patience.minutes(2))))
struct TusAnnouncedTests {
    private static let all =
        "creation,creation-with-upload,creation-defer-length,checksum,checksum-trailer,concatenation,"
        + "concatenation-unfinished,termination,expiration,what-else"

    @Test("only announced extensions are used, and unknown names are ignored", arguments: [nil, "creation", all])
    func onlyAnnounced(_ extensions: String?) async throws {
        let script = ConcatenatingServer()
        let used = Mutex<Set<String>>([])
        let server = try FakeServer { exchange in
            used.withLock { $0.formUnion(exchange.headerNames.filter { $0.hasPrefix("upload-") }) }
            if exchange.method == "DELETE" { used.withLock { _ = $0.insert("DELETE") } }
            guard exchange.method == "OPTIONS" else { return script.serve(exchange) }
            guard let extensions else { return exchange.reply(404) }
            exchange.reply(
                204,
                [("Tus-Version", "1.0.0"), ("Tus-Extension", extensions), ("Tus-Checksum-Algorithm", "sha1,md5")])
        }
        let journey = try UploadScenario(
            server.url + "/files", size: 16 << 20, values: ["parallel": .whole(2), "checksum": .text("sha1")])
        _ = try await journey.attempt()
        let core: Set = ["upload-length", "upload-metadata", "upload-offset"]
        let more: Set = ["upload-checksum", "upload-concat", "DELETE"]
        #expect(used.withLock { $0 } == (extensions == Self.all ? core.union(more) : core))
    }
}
