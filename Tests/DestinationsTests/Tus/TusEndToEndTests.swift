import Core
import Destinations
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing
import Transport

/// Against a third-party server that follows the protocol, and breaks it on request.
@Suite("tus with a real server", .needsPackages, .timeLimit(.minutes(Patience.minutes(2))))
struct TusEndToEndTests {
    @Test(
        "every size arrives, in pieces within the limit and without an empty one at the end",
        arguments: [0, 1, 999, 1000, 1001, 3000, 3001])
    func sizes(_ size: Int) async throws {
        let server = try await TusProcess.faulty()
        let journey = try UploadScenario(server.url, size: size, chunk: 1000)
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "offset")
        #expect(object.warnings.isEmpty)
        #expect(object.url == nil, "the address of an upload is a capability")
        #expect(try server.held == [journey.content])
        let patches = stride(from: 0, to: size, by: 1000).map { "PATCH \($0)" }
        #expect(try server.requests == ["POST"] + patches + ["HEAD"])
    }

    @Test("a larger file is sent in one request by default, with progress")
    func large() async throws {
        let server = try await TusProcess.faulty()
        let journey = try UploadScenario(server.url, size: 20 << 20)
        _ = try await journey.attempt()
        #expect(try server.held == [journey.content])
        #expect(try server.requests == ["POST", "PATCH 0", "HEAD"])
        #expect(journey.ledger.book.withLock { $0.sending } == 20 << 20)
        #expect(journey.ledger.book.withLock { $0.phases } == [.opening, .uploading, .finishing])
    }

    @Test("parts that are sent at the same time survive cuts and lost answers, and are joined in order")
    func sections() async throws {
        let server = try await TusProcess.faulty(["PATCH=pass,cut:300000,silent,drop"])
        let journey = try UploadScenario(
            server.url, size: (16 << 20) + 1, chunk: 4 << 20, values: ["parallel": .whole(2)])
        let (object, errors) = try await journey.arrive()
        // The answer that is lost may be the one to a part's last bytes.
        let isUnanswered = object.verifiedBy == "offset_unanswered"
        #expect(isUnanswered || object.verifiedBy == "offset")
        #expect(object.warnings.isEmpty != isUnanswered)
        #expect(
            object.warnings.allSatisfy { $0.contains("asked again, the server has every byte") }, "\(object.warnings)")
        #expect((1...3).contains(errors.count))
        #expect(try server.held == [journey.content], "the parts are removed")
        #expect(try server.requests.filter { $0 == "POST" }.count == 3)
    }

    @Test("interrupted connections lose only the bytes in flight, and never cause a second creation")
    func cuts() async throws {
        let size = 100_000
        let server = try await TusProcess.faulty(["PATCH=cut:7000,cut:1,drop,cut:20000,cut:30000"])
        let journey = try UploadScenario(server.url, size: size)
        let (object, errors) = try await journey.arrive()
        #expect(object.verifiedBy == "offset")
        #expect(try server.held == [journey.content])
        #expect(errors.count == 5)
        #expect(errors.allSatisfy { $0.remedy == .holdDestination(after: nil) })
        #expect(
            try server.requests == [
                "POST", "PATCH 0", "HEAD", "PATCH 7000", "HEAD", "PATCH 7001", "HEAD", "PATCH 7001", "HEAD",
                "PATCH 27001", "HEAD", "PATCH 57001", "HEAD",
            ])
    }

    @Test("a lost acknowledgement in the middle or at the end sends no byte twice")
    func lostAcknowledgements() async throws {
        let server = try await TusProcess.faulty(["PATCH=silent,pass,silent"])
        let journey = try UploadScenario(server.url, size: 3000, chunk: 1000)
        let (object, errors) = try await journey.arrive()
        #expect(object.verifiedBy == "offset_unanswered")
        #expect(errors.count == 2)
        #expect(try server.held == [journey.content])
        #expect(
            try server.requests == ["POST", "PATCH 0", "HEAD", "PATCH 1000", "PATCH 2000", "HEAD"])
    }

    @Test("a creation with a lost answer is repeated, and the possible orphan is reported")
    func lostCreation() async throws {
        let server = try await TusProcess.faulty(["POST=silent"])
        let journey = try UploadScenario(server.url)
        let (object, errors) = try await journey.arrive()
        #expect(errors.count == 1)
        #expect(object.warnings.count == 1)
        #expect(object.warnings.first?.contains("1 creation") == true)
        #expect(try server.requests.filter { $0 == "POST" }.count == 2)
        #expect(try server.held.contains(journey.content))
    }

    @Test("a creation that was not received leaves no orphan")
    func unheardCreation() async throws {
        let gone = try FakeServer { $0.reply(200) }
        let journey = try UploadScenario(gone.url)
        gone.stop()
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .holdDestination(after: nil))
        #expect(error.failure.kind == .transient)
        #expect(journey.ledger.last?["creating"] == nil)
    }

    struct Refusal: CustomTestStringConvertible, Sendable {
        let verb: String
        let step: String
        let remedy: Remedy
        var testDescription: String { "\(verb) \(step)" }
    }

    @Test(
        "a server in trouble gets the delay it asks for, and the upload resumes where it was",
        arguments: [
            Refusal(verb: "POST", step: "503:7", remedy: .holdDestination(after: .seconds(7))),
            Refusal(verb: "POST", step: "429:99999", remedy: .rateLimit(after: .seconds(3600))),
            Refusal(verb: "PATCH", step: "500", remedy: .holdDestination(after: nil)),
            Refusal(verb: "PATCH", step: "502", remedy: .holdDestination(after: nil)),
            Refusal(verb: "PATCH", step: "503:0", remedy: .holdDestination(after: .seconds(1))),
            Refusal(verb: "PATCH", step: "429:3", remedy: .rateLimit(after: .seconds(3))),
            Refusal(verb: "PATCH", step: "423", remedy: .retry(after: .seconds(2))),
            Refusal(verb: "HEAD", step: "500", remedy: .holdDestination(after: nil)),
            Refusal(verb: "HEAD", step: "502", remedy: .holdDestination(after: nil)),
            Refusal(verb: "HEAD", step: "503:2", remedy: .holdDestination(after: .seconds(2))),
            Refusal(verb: "HEAD", step: "423:5", remedy: .retry(after: .seconds(5))),
            Refusal(verb: "HEAD", step: "429", remedy: .rateLimit(after: nil)),
        ])
    func trouble(_ refusal: Refusal) async throws {
        let three = [refusal.step, refusal.step, refusal.step].joined(separator: ",")
        let server = try await TusProcess.faulty(["\(refusal.verb)=\(three)"])
        let journey = try UploadScenario(server.url, size: 2000, chunk: 1000)
        let (_, errors) = try await journey.arrive()
        #expect(errors.count == 3)
        for error in errors {
            #expect(error.remedy == refusal.remedy)
            #expect(error.failure.code.rawValue == "http_\(refusal.step.prefix(3))")
            #expect(error.failure.http == Int(refusal.step.prefix(3)))
            #expect(error.failure.message.hasPrefix("archive: 127.0.0.1"))
            #expect(!error.failure.message.contains("/files/"))
        }
        #expect(try server.held == [journey.content])
        #expect(try server.requests.filter { $0 == "POST" }.count == (refusal.verb == "POST" ? 4 : 1))
    }

    @Test("too large a request is halved until it fits, and the next file starts with that size")
    func shrinks() async throws {
        let server = try await TusProcess.faulty(["--max-chunk=600000"])
        let journey = try UploadScenario(server.url, size: 4 << 20)
        _ = try await journey.attempt()
        #expect(try server.held == [journey.content])
        let requests = try server.requests
        let again = try await journey.destination.upload(journey.order, reporter: CountingReporter())
        #expect(again.verifiedBy == "offset")
        let second = try server.requests.dropFirst(requests.count)
        #expect(second.filter { $0.hasPrefix("PATCH") }.count < requests.filter { $0.hasPrefix("PATCH") }.count)
        #expect(second.filter { $0 == "PATCH 0" }.count == 1)
    }

    @Test("a file above the server's announced limit is refused before any creation")
    func tooLarge() async throws {
        let server = try await TusProcess.faulty(["--max-size=5000"])
        let journey = try UploadScenario(server.url, size: 5001)
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .failUpload)
        #expect(error.failure.code == .maxSizeExceeded)
        #expect(error.failure.message.contains("5001") && error.failure.message.contains("5000"))
        #expect(try server.requests.isEmpty)
    }

    @Test("checksums are sent if the server checks them, and match", arguments: ["sha1", "sha256"])
    func checksums(_ algorithm: String) async throws {
        let server = try await TusProcess.faulty()
        let journey = try UploadScenario(server.url, size: 2500, chunk: 1000, values: ["checksum": .text(algorithm)])
        _ = try await journey.attempt()
        #expect(try server.held == [journey.content])
    }

    @Test("the test server refuses violations of the protocol")
    func faultyServer() async throws {
        let (ending, words) = try await TusProcess.proveFaulty()
        #expect(ending == .status(0), "\(words.suffix(3000))")
    }

    @Test("the relay follows each upload and its end, whatever the form of the answers")
    func relay() async throws {
        let (ending, words) = try await ScriptedRelay.runOwnTests()
        #expect(ending == .status(0), "\(words.suffix(3000))")
    }

    @Test("a checksum mismatch is sent again, and the third one is an alarm")
    func damage() async throws {
        let once = try await TusProcess.faulty(["PATCH=460"])
        let first = try UploadScenario(once.url)
        _ = try await first.attempt()
        #expect(try once.held == [first.content])
        let always = try await TusProcess.faulty(["PATCH=460,460,460,460,460"])
        let error = try await UploadScenario(always.url).failedAttempt()
        #expect(error.remedy == .failUpload)
        #expect(try always.requests == ["POST", "PATCH 0", "HEAD", "PATCH 0", "HEAD", "PATCH 0"])
    }

    @Test("an upload lost half-way is created again")
    func goneHalfWay() async throws {
        let server = try await TusProcess.faulty(["PATCH=pass,503", "HEAD=404"])
        let journey = try UploadScenario(server.url, size: 3000, chunk: 1000)
        let (object, errors) = try await journey.arrive()
        #expect(errors.count == 1)
        #expect(object.warnings.isEmpty)
        #expect(try server.held.contains(journey.content))
        #expect(try server.requests.filter { $0 == "POST" }.count == 2)
    }

    @Test("after a kill the upload resumes at the server's offset, whatever was recorded last")
    func killed() async throws {
        let server = try await TusProcess.faulty()
        struct Killed: Error {}
        // Dies at each record in turn; the next process knows the earlier records.
        let count = Mutex(0)
        let journey = try UploadScenario(server.url, size: 5000, chunk: 1000)
        var durable: Checkpoint?
        var isDone = false
        var round = 0
        while !isDone {
            round += 1
            try #require(round < 50)
            let limit = round
            count.withLock { $0 = 0 }
            let ledger = CountingReporter(onRecord: { _ in
                let now = count.withLock { count in
                    count += 1
                    return count
                }
                if now > limit { throw Killed() }
            })
            var order = journey.order
            order.checkpoint = durable
            do {
                _ = try await journey.destination.upload(order, reporter: ledger)
                isDone = true
            } catch is Killed {}
            durable = ledger.last ?? durable
        }
        #expect(try server.held.contains(journey.content))
        #expect(try server.requests.filter { $0 == "POST" }.count <= 2)
    }

    @Test("discarding removes the started upload completely")
    func removes() async throws {
        let server = try await TusProcess.faulty(["PATCH=cut:400"])
        let journey = try UploadScenario(server.url)
        _ = try await journey.failedAttempt()
        let checkpoint = try #require(journey.ledger.last)
        #expect(try await journey.destination.discard(checkpoint))
        #expect(try await journey.destination.discard(checkpoint), "a missing upload counts as discarded")
        #expect(try server.held.isEmpty)
        #expect(try server.requests.suffix(2) == ["DELETE", "DELETE"])
        #expect(try await journey.destination.discard(Checkpoint()))
    }

    @Test(
        "names and metadata arrive unchanged",
        arguments: [
            "plain.mp4", "with \"quotes\", commas and\nlines.mp4", "Ünïcødé 🎥.mp4", String(repeating: "n", count: 255),
        ])
    func metadata(_ name: String) async throws {
        let server = try await TusProcess.faulty()
        let journey = try UploadScenario(server.url, name: FilePath("cam/" + name), metadata: ["title": "Ä, b\n\"c\""])
        _ = try await journey.attempt()
        let url = try #require(journey.ledger.last?["url"])
        let head = try await Transport().send(Request("HEAD", url, headers: [("Tus-Resumable", "1.0.0")]))
        let echoed = TusEcho(head.headers["Upload-Metadata"] ?? "")
        #expect(echoed["filename"] == name)
        #expect(echoed["filetype"] == "video/mp4")
        #expect(echoed["relativePath"] == "cam/" + name)
        #expect(echoed["title"] == "Ä, b\n\"c\"")
        #expect(echoed["sluiceId"] == "01JQ.1")
        #expect(echoed["mtime"] == "1700000000123456789")
    }

    @Test("check reports whether uploads would work, without remains at the server")
    func check() async throws {
        let server = try await TusProcess.faulty(["--max-size=5000"])
        let good = await (try UploadScenario(server.url)).destination.check()
        #expect(good.verdict == .ok)
        #expect(good.detail.contains("creation") && good.detail.contains("5000"))
        #expect(try server.requests.isEmpty)
        server.kill()
        let bad = await (try UploadScenario(server.url)).destination.check()
        #expect(bad.verdict == .failed)
    }
}

/// The metadata that a server returns, decoded in another way than ours.
struct TusEcho {
    private var values: [String: String] = [:]

    init(_ header: String) {
        for pair in header.split(separator: ",") {
            let words = pair.split(separator: " ")
            guard words.count == 2, let bytes = decodeBase64(String(words[1])) else { continue }
            values[String(words[0])] = String(decoding: bytes, as: UTF8.self)
        }
    }

    subscript(key: String) -> String? { values[key] }
}
