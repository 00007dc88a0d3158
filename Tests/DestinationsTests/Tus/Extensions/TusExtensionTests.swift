import Core
import Destinations
import Synchronization
import TestKit
import Testing

@Suite("Extensions of tus", .timeLimit(.minutes(Patience.minutes(2))))
struct TusExtensionTests {
    let script = ScriptedTusServer()

    /// A server that announces these extensions.
    private func server(_ extensions: String) throws -> FakeServer {
        try FakeServer { [script] exchange in
            guard exchange.method == "OPTIONS" else { return script.serve(exchange) }
            exchange.reply(204, [("Tus-Version", "1.0.0"), ("Tus-Extension", extensions), ("Tus-Max-Size", "10")])
        }
    }

    @Test("listed extensions count in place of the server's answer, which is not asked for")
    func listed() async throws {
        let server = try server("creation,termination,unknown")
        let journey = try UploadScenario(server.url + "/files", values: ["extensions": .texts(["creation"])])
        _ = try await journey.attempt()
        let checkpoint = try #require(journey.ledger.last)
        #expect(try await !journey.destination.discard(checkpoint))
        #expect(server.seen == ["POST /files", "PATCH /u", "HEAD /u"])
        let check = await journey.destination.check()
        #expect(check.verdict == .ok && check.detail.contains("with creation, as `extensions` lists"), "\(check)")
    }

    @Test("a listed checksum is sent")
    func checksum() async throws {
        let digests = DigestNotes()
        let server = try FakeServer { [script] exchange in
            if exchange.method == "PATCH" { digests.note(exchange.header("upload-checksum")) }
            script.serve(exchange)
        }
        let journey = try UploadScenario(
            server.url + "/files",
            values: ["extensions": .texts(["creation", "checksum"]), "checksum": .text("sha256")])
        _ = try await journey.attempt()
        #expect(digests.all.count == 1 && digests.all.allSatisfy { $0.hasPrefix("sha256 ") })
    }

    @Test("a server that announces no termination gets no DELETE; one that announces nothing at all may get it")
    func termination() async throws {
        script.state.withLock { $0.exists = true }
        for (announced, sent) in [("creation", false), ("creation,termination", true), ("", true)] {
            let server = try server(announced)
            let journey = try UploadScenario(server.url + "/files")
            let isRemoved = try await journey.destination.discard(
                Checkpoint(["url": server.url + "/u"]))
            #expect(isRemoved == sent && verbs(server) == (sent ? ["DELETE"] : []), "\(announced)")
        }
    }

    @Test("without creation no upload is created, the message says what to do, and `check` warns")
    func creation() async throws {
        let server = try server("termination")
        let journey = try UploadScenario(server.url + "/files")
        let error = try await journey.failedAttempt()
        #expect(error.failure.code == .creationUnsupported && error.remedy == .failUpload)
        #expect(error.failure.message.contains("--upload-url"))
        #expect(verbs(server).isEmpty)
        let check = await journey.destination.check()
        #expect(check.verdict == .warning && check.detail.contains("--upload-url"), "\(check)")
    }
}

private final class DigestNotes: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func note(_ digest: String?) { if let digest { lines.withLock { $0.append(digest) } } }
}
