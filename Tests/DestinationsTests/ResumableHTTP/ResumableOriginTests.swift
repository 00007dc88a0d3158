import Core
import Destinations
import TestKit
import Testing

/// The server names the addresses of uploads, and only those at allowed origins are used.
@Suite("Origins of resumable uploads", .timeLimit(.minutes(Patience.minutes(1))))
struct ResumableOriginTests {
    private let token = "a-token-of-the-home-server"

    @Test("an upload at another origin waits, and continues there when a person allows it")
    func elsewhere() async throws {
        let storage = try ResumableServer()
        var upload = ResumableServer.Upload()
        upload.length = ResumableScene.size
        storage.set("/u/1", upload)
        let home = try ResumableServer()
        home.plan("POST", .answer(201, [("Location", "http://127.0.0.1:\(storage.port)/u/1?key=secret-of-the-upload")]))
        let values: [String: SettingValue] = ["token": .secret(.literal(token))]
        let journey = try ResumableScene.journey(home, values: values)
        for _ in 0..<2 {
            let error = try await journey.failedAttempt()
            #expect(error.failure.code == .otherOrigin && error.remedy == .misconfigured)
            #expect(error.failure.message.contains("allow_origins: [http://127.0.0.1:\(storage.port)]"))
            #expect(!error.failure.message.contains("secret-of-the-upload"))
        }
        #expect(home.requests == ["POST ?0"] && storage.all.isEmpty)
        storage.set("/u/1?key=secret-of-the-upload", upload)
        var allowing = values
        allowing["allow_origins"] = .texts(["http://127.0.0.1:\(storage.port)"])
        let second = try ResumableScene.journey(home, values: allowing, checkpoint: journey.ledger.last)
        _ = try await second.attempt()
        #expect(storage.finished == [journey.content] && home.requests == ["POST ?0"])
    }

    @Test(
        "an address that is no address is refused, and a further creation waits",
        arguments: ["", "ftp://h/u", "http://a:b@h/u"])
    func refused(_ location: String) async throws {
        let server = try ResumableServer()
        let answer = ResumableServer.Fault.answer(201, [("Location", location), ("Upload-Limit", "min-size=0")])
        server.plan("POST", answer, answer, answer)
        let journey = try ResumableScene.journey(server)
        for _ in 0..<3 { _ = try await journey.failedAttempt() }
        #expect(server.requests == ["POST ?0", "POST ?0"], "the third creation waits")
    }
}
