import Core
import Destinations
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing

/// Forms of requests that not every server takes, at servers that others have written.
@Suite("tus: forms of requests at real servers", .needsPackages, .timeLimit(.minutes(Patience.minutes(2))))
struct TusRealServersTests {
    @Test("bytes travel with the creation, and after a lost answer a second upload gets them")
    func creationWithBytes() async throws {
        let values = ["create_with_bytes": SettingValue.text("true")]
        let server = try await TusProcess.faulty()
        let scenario = try UploadScenario(server.url, values: values)
        let object = try await scenario.attempt()
        #expect(try server.held == [scenario.content] && server.requests == ["POST", "HEAD"])
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
        let silent = try await TusProcess.faulty(["POST=silent"])
        let lost = try UploadScenario(silent.url, values: values)
        let (late, errors) = try await lost.arrive()
        #expect(errors.count == 1 && late.warnings.count == 2, "\(late.warnings)")
        #expect(try silent.held.allSatisfy { $0 == lost.content })
        #expect(try silent.requests == ["POST", "POST", "PATCH 0", "HEAD"])
    }

    @Test("POST stands for PATCH")
    func override() async throws {
        let server = try await TusProcess.faulty()
        let scenario = try UploadScenario(
            server.url, size: 1500, chunk: 1000, values: ["method_override": .text("always")])
        _ = try await scenario.attempt()
        #expect(try server.held == [scenario.content])
        #expect(try server.requests == ["POST", "POST 0", "HEAD", "POST 1000", "HEAD"])
    }

    @Test("also at a server that has forgotten a finished upload when it is asked")
    func forgotten() async throws {
        let server = try await TusProcess.tussi()
        let scenario = try UploadScenario(
            server.url, size: 1500, chunk: 1000, values: ["method_override": .text("always")])
        let object = try await scenario.attempt()
        #expect(object.verifiedBy == "acknowledgement" && object.warnings.isEmpty, "\(object)")
        let done = server.folder.path.appending("done")
        let files = try Files.names(in: done).filter { $0.fileExtension != "meta" }
        #expect(try files.map { try Files.read(done.appending($0), limit: 1 << 20) } == [scenario.content])
    }
}
