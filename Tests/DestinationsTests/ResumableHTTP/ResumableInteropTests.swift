import Core
import Destinations
import TestKit
import Testing
import Transport

@testable import Destinations

/// Versions of the draft: the one that the server speaks is found without leftovers there.
@Suite("Versions of the draft", .timeLimit(.minutes(Patience.minutes(2))))
struct ResumableInteropTests {
    static let refusals: [(Int, String)] = [
        (412, ""), (400, "unsupported draft interop version"), (400, "ERR_UNSUPPORTED_VERSION: no"),
        (412, "<html>precondition failed</html>"),
    ]

    @Test("a refused version leads to the other one, in the same attempt and without a leftover", arguments: refusals)
    func refused(_ status: Int, _ words: String) async throws {
        let scene = try ResumableScene {
            $0.versions = ["6"]
            $0.mismatch = .refuse(status, words)
            $0.isAnnounced = false
        }
        let object = try await scene.journey.attempt()
        #expect(object.warnings.isEmpty)
        #expect(scene.server.requests == ["POST ?0", "POST ?0", "PATCH 0 ?1 1000", "HEAD"])
        #expect(scene.journey.ledger.last?["interop"] == "6" && scene.journey.ledger.last?["orphans"] == nil)
        scene.expectArrived()
    }

    @Test("what OPTIONS shows, and what worked before, spares the attempt")
    func remembered() async throws {
        let scene = try ResumableScene {
            $0.versions = ["6"]
            $0.isAnnounced = false
        }
        _ = try await scene.journey.attempt()
        scene.server.forgetRequests()
        // Another file of the same destination.
        var next = scene.journey
        next.order.id = "01JR"
        _ = try await next.destination.upload(next.order, reporter: CountingReporter())
        #expect(scene.server.requests == ["POST ?0", "PATCH 0 ?1 1000", "HEAD"])
        // Announced with the other version only, as the answer to OPTIONS shows.
        let announced = try ResumableScene { $0.versions = ["6"] }
        _ = try await announced.journey.attempt()
        #expect(announced.server.all.prefix(2) == ["OPTIONS", "OPTIONS"])
        #expect(announced.server.requests.first == "POST ?0" && announced.server.violations.isEmpty)
    }

    @Test("an upload continues in its version after a restart, and in another one when the server was replaced")
    func restarted() async throws {
        let scene = try ResumableScene(chunk: 400) { $0.versions = ["6"] }
        scene.server.plan("PATCH", .none, .answer(503))
        _ = try await scene.journey.failedAttempt()
        let checkpoint = try #require(scene.journey.ledger.last)
        #expect(checkpoint["interop"] == "6")
        scene.server.forgetRequests()
        let second = try ResumableScene.journey(scene.server, checkpoint: checkpoint)
        scene.server.plan("PATCH", .answer(503))
        _ = try await second.failedAttempt()
        #expect(scene.server.requests == ["HEAD", "PATCH 400 ?1 600"])
        scene.server.change { $0.versions = ["9"] }
        scene.server.forgetRequests()
        _ = try await second.attempt()
        #expect(scene.server.requests == ["HEAD", "HEAD", "PATCH 400 ?1 600", "HEAD"])
        #expect(second.ledger.last?["interop"] == "9")
        scene.expectArrived()
    }

    @Test("if the address in an answer without any sign of the draft cannot be asked, the upload there is counted")
    func unheard() async throws {
        let other = "http://127.0.0.1:\(try Loopback.freePort())"
        let server = try FakeServer { exchange in
            exchange.reply(
                exchange.method == "POST" ? 201 : 404, exchange.method == "POST" ? [("Location", other + "/u/1")] : [])
        }
        let values: [String: SettingValue] = ["allow_origins": .texts([other])]
        let first = try UploadScenario(server.url, values: values, type: "resumable-http")
        let error = try await first.failedAttempt()
        #expect(error.failure.code == .creationUnclear && error.remedy == .holdDestination(after: nil), "\(error)")
        let second = try UploadScenario(
            server.url, values: values, checkpoint: first.ledger.last, type: "resumable-http")
        _ = try await second.failedAttempt()
        #expect(second.ledger.last?["orphans"] == "1", "\(String(describing: second.ledger.last))")
        #expect(server.seen.filter { $0.hasPrefix("POST") }.count == 2, "\(server.seen)")
    }

    @Test("a server without any sign of the draft gets one creation in an attempt, and another version in the next")
    func ordinary() async throws {
        let scene = try ResumableScene {
            $0.versions = ["6"]
            $0.mismatch = .ordinary
            $0.isAnnounced = false
        }
        let error = try await scene.journey.failedAttempt()
        #expect(error.failure.code == .unusableAnswer && error.remedy == .misconfigured)
        #expect(error.failure.message.contains("without any sign of resumable uploads"))
        #expect(scene.server.requests == ["POST ?0", "HEAD"] && scene.server.ordinary == 1)
        let object = try await scene.journey.attempt()
        #expect(object.warnings.contains { $0.contains("1 creation(s)") })
        #expect(scene.server.ordinary == 1 && scene.server.finished.last == scene.journey.content)
        // With the answer to OPTIONS there is no such file.
        let announced = try ResumableScene {
            $0.versions = ["6"]
            $0.mismatch = .ordinary
        }
        _ = try await announced.journey.attempt()
        #expect(announced.server.ordinary == 0)
    }

    @Test("a server that never speaks the draft gets fewer and fewer creations")
    func never() async throws {
        let scene = try ResumableScene {
            $0.versions = ["7"]
            $0.mismatch = .ordinary
        }
        for _ in 0..<6 { _ = try await scene.journey.failedAttempt() }
        #expect(scene.server.ordinary == 2)
    }

    @Test("an answer to the creation without a header of the draft is looked into once")
    func terse() async throws {
        let scene = try ResumableScene { $0.style = .terse }
        _ = try await scene.journey.attempt()
        #expect(scene.server.requests.prefix(2) == ["POST ?0", "HEAD"])
        scene.server.forgetRequests()
        var next = scene.journey
        next.order.id = "01JR"
        _ = try await next.destination.upload(next.order, reporter: CountingReporter())
        #expect(scene.server.requests.first == "POST ?0" && scene.server.requests[1].hasPrefix("PATCH"))
    }

    @Test("a version that a person has chosen is the only one", arguments: ["6", "8", "9", "none"])
    func chosen(_ version: String) async throws {
        let scene = try ResumableScene(values: ["interop": .text(version)]) {
            $0.versions = [version == "none" ? "" : version]
        }
        _ = try await scene.journey.attempt()
        scene.expectArrived()
        #expect(await scene.journey.destination.check().detail.contains("as configured"))
        scene.server.change { $0.versions = ["5"] }
        scene.server.forgetRequests()
        let error = try await ResumableScene.journey(scene.server, values: ["interop": .text(version)]).failedAttempt()
        #expect(error.remedy == .misconfigured && scene.server.requests == ["POST ?0"])
    }

    @Test("the order of the versions")
    func order() {
        let memory = InteropMemory(.auto)
        #expect(memory.candidates() == [.nine, .six])
        memory.recordSilent(.nine)
        #expect(memory.candidates() == [.six, .nine])
        memory.recordSilent(.six)
        #expect(memory.candidates() == [.nine, .six])
        memory.recordSpoken(.six)
        #expect(memory.candidates() == [.six, .nine])
        #expect(memory.candidates(first: .eight) == [.eight, .six, .nine])
        let tusd = InteropMemory(.auto)
        tusd.suggest(.six)
        #expect(tusd.candidates() == [.six, .nine])
        let older = InteropMemory(.auto)
        #expect(older.next(after: []) == .nine)
        #expect(older.learn(from: ["Upload-Draft-Interop-Version": "8"], to: .nine))
        #expect(older.next(after: [.nine]) == .eight && older.next(after: [.nine, .eight]) == .six)
        #expect(older.next(after: [.nine, .eight, .six]) == nil)
        for text in ["9", "3", "none", "8 ", "", "8, 8"] {
            #expect(!older.learn(from: ["Upload-Draft-Interop-Version": text], to: .nine))
        }
        #expect(InteropMemory(.none).candidates(first: .six) == [.none])
        #expect(InteropVersion.none.headers.isEmpty)
    }
}
