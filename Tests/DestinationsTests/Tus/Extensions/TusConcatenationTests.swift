import Core
import Destinations
import Digests
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport

/// One file as several partial uploads (tus 1.0, "Concatenation").
@Suite("tus in sections", .timeLimit(.minutes(Patience.minutes(2))))
struct TusConcatenationTests {
    private static let size = 17 << 20
    let script = ConcatenatingServer()

    private func scenario(
        _ server: FakeServer, size: Int = size, parallel: Int = 2, chunk: Int64? = nil,
        values: [String: SettingValue] = [:], ledger: CountingReporter = CountingReporter(),
        clocks: any Clocks = SystemClocks()
    ) throws -> UploadScenario {
        try UploadScenario(
            server.url + "/files", size: size, chunk: chunk,
            values: values.merging(["parallel": .whole(parallel)]) { $1 }, ledger: ledger, clocks: clocks)
    }

    private func server(_ answer: @escaping @Sendable (Exchange) -> Bool = { _ in false }) throws -> FakeServer {
        try FakeServer { [script] exchange in if !answer(exchange) { script.serve(exchange) } }
    }

    @Test("sections are sent at the same time and joined; the parts are removed once the file was verified")
    func joins() async throws {
        // Each section waits for the other one.
        let both = MeetingPoint(2)
        let server = try server { [script] exchange in
            guard exchange.method == "PATCH" else { return false }
            both.arrive()
            script.patch(exchange)
            return true
        }
        let journey = try scenario(server)
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "offset")
        #expect(object.warnings == [])
        #expect(script.joined.map(\.held) == [journey.content])
        #expect(script.joined.map(\.exists) == [true])
        #expect(script.joined.allSatisfy { $0.metadata.contains("sha256") && !$0.metadata.contains("possible") })
        #expect(script.partials.map(\.length) == [Self.size / 2, Self.size / 2])
        let removed = script.partials.filter { !$0.exists && $0.metadata.contains("sluiceId") }
        #expect(Set(removed.map(\.metadata)).count == 2, "no server takes one for the other")
        #expect(script.whole.isEmpty)
        #expect(verbs(server).suffix(7) == ["POST", "HEAD", "HEAD", "DELETE", "HEAD", "DELETE", "HEAD"])
        #expect(journey.ledger.book.withLock { $0.sending } == Int64(Self.size))
        #expect(journey.ledger.book.withLock { $0.accepted.last } == Int64(Self.size))
    }

    @Test("a small file, and any file at a server that does not offer it, is one upload")
    func single() async throws {
        let server = try server()
        let small = try scenario(server, size: (16 << 20) - 1)
        _ = try await small.attempt()
        script.state.withLock { $0.extensions = "creation" }
        let plain = try self.server()
        let other = try scenario(plain)
        _ = try await other.attempt()
        #expect(script.whole.map(\.held) == [small.content, other.content])
        #expect(script.partials.isEmpty)
    }

    @Test("where partial uploads are refused, this file and the next are sent as one", arguments: [400, 403, 412, 501])
    func refusedPartials(_ status: Int) async throws {
        let server = try server { exchange in
            guard exchange.header("upload-concat") != nil else { return false }
            exchange.reply(status)
            return true
        }
        let journey = try scenario(server)
        let object = try await journey.attempt()
        #expect(object.warnings == [])
        let refused = verbs(server).filter { $0 == "POST" }.count
        // The same destination, for another file.
        let next = CountingReporter()
        _ = try await journey.destination.upload(journey.order, reporter: next, context: .open)
        #expect(verbs(server).filter { $0 == "POST" }.count == refused + 1)
        #expect(script.whole.map(\.held) == [journey.content, journey.content])
    }

    @Test("where joining is refused twice, the file is sent as one, and its parts are removed later")
    func refusedJoin() async throws {
        let server = try server { exchange in
            guard exchange.header("upload-concat")?.hasPrefix("final") == true else { return false }
            exchange.reply(409)
            return true
        }
        let journey = try scenario(server)
        _ = try await journey.attempt()
        #expect(script.whole.map(\.held) == [journey.content])
        #expect(script.partials.map(\.exists) == [true, true])
        let left = try #require(journey.ledger.book.withLock { $0.left.first })
        #expect(try await journey.destination.discard(left, context: .open))
        #expect(script.partials.map(\.exists) == [false, false])
    }

    @Test("the parts are joined once more when the answer is lost, with a warning; after that a person decides")
    func lostJoin() async throws {
        let server = try server { [script] exchange in
            guard exchange.header("upload-concat")?.hasPrefix("final") == true, script.time("join") < 1 else {
                return false
            }
            exchange.cut()
            return true
        }
        let journey = try scenario(server)
        let (object, errors) = try await journey.arrive()
        #expect(errors.map(\.failure.code) == [.connectionLost])
        #expect(object.warnings.contains { $0.contains("may hold the file twice") })
        #expect(script.joined.map { $0.metadata.contains("possibleDuplicate") } == [true])
        #expect(script.partials.count == 2, "no byte is sent again")
    }

    @Test("two lost answers, or one where a person wants to decide, end the upload", arguments: ["reupload", "hold"])
    func unknownJoin(_ gone: String) async throws {
        let server = try server { [script] exchange in
            guard exchange.header("upload-concat")?.hasPrefix("final") == true, script.time("join") < 2 else {
                return false
            }
            exchange.cut()
            return true
        }
        var journey = try scenario(server, values: ["gone": .text(gone)])
        let losses = gone == "hold" ? 1 : 2
        for _ in 0..<losses { #expect(try await journey.failedAttempt().failure.code == .connectionLost) }
        let error = try await journey.failedAttempt()
        #expect(error.failure.code == .outcomeUnknown)
        #expect(error.remedy == .failUpload)
        // A person wants it joined again. The bytes are there.
        journey.order.generation = 2
        _ = script.time("join")
        let object = try await journey.attempt()
        #expect(object.warnings.contains { $0.contains("may hold the file twice") })
        #expect(script.joined.map(\.held) == [journey.content])
        #expect(script.partials.count == 2)
    }

    @Test("a joined upload without an offset is asked for again, without another request to join it")
    func unfinishedJoin() async throws {
        let server = try server()
        script.state.withLock { $0.unfinishedLooks = 2 }
        let journey = try scenario(server)
        for _ in 0..<2 {
            let error = try await journey.failedAttempt()
            #expect(error.failure.code == .remoteWorks)
            #expect(error.remedy == .pending(after: .seconds(2)))
        }
        _ = try await journey.attempt()
        #expect(script.joined.map(\.held) == [journey.content])
    }

    @Test("a cut section continues at its own offset, and the others stay")
    func cut() async throws {
        let server = try server { [script] exchange in
            guard exchange.method == "PATCH", exchange.target == "/u0", script.time("cut") == 0 else { return false }
            script.patch(exchange, taking: 1 << 20)
            return true
        }
        let journey = try scenario(server)
        let (_, errors) = try await journey.arrive()
        #expect(errors.map(\.failure.code) == [.connectionLost])
        #expect(script.joined.map(\.held) == [journey.content])
        #expect(script.partials.count == 2)
        #expect(server.seen.filter { $0 == "PATCH /u1" }.count == 1)
    }

    @Test("a process that dies at any record continues every section", arguments: 1...8)
    func dies(_ deadline: Int) async throws {
        struct Death: Error {}
        let server = try server()
        let ledger = CountingReporter { [script] _ in
            if script.time("record") == deadline - 1 { throw Death() }
        }
        let journey = try scenario(server, chunk: 4 << 20, ledger: ledger)
        do { _ = try await journey.attempt() } catch is Death {}
        let object = try await journey.arrive().object
        #expect(object.verifiedBy == "offset" || object.verifiedBy == "offset_unanswered")
        // Killed in the request to join, it may have been joined.
        #expect(script.joined.last?.held == journey.content)
        #expect(script.joined.count == 1 || object.warnings.contains { $0.contains("twice") })
        let lost = script.partials.count - 2
        #expect(lost == 0 || object.warnings.contains { $0.contains("creation(s) got no answer") })
    }

    @Test("a section that the server has lost is sent again alone")
    func lostSection() async throws {
        let server = try server { [script] exchange in
            guard exchange.header("upload-concat")?.hasPrefix("final") == true, script.time("join") == 0 else {
                return false
            }
            script.state.withLock { $0.uploads[1].exists = false }
            exchange.reply(400)
            return true
        }
        let journey = try scenario(server)
        let object = try await journey.attempt()
        #expect(object.warnings == [])
        #expect(script.joined.map(\.held) == [journey.content])
        #expect(script.partials.count == 3)
        #expect(script.whole.isEmpty)
    }

    @Test("a server that loses the file with its parts gets it as one upload")
    func keepsParts() async throws {
        let server = try server()
        script.state.withLock { $0.keepsParts = true }
        let journey = try scenario(server)
        let (_, errors) = try await journey.arrive()
        #expect(errors.map(\.failure.code) == [.uploadLost])
        #expect(script.whole.map(\.held) == [journey.content])
        // Or it has moved the file away.
        #expect(script.whole.allSatisfy { $0.metadata.contains("possibleDuplicate") })
    }

    @Test("where the joined file is not found after its parts were removed, `gone` decides")
    func movedAway() async throws {
        let assuming = try server()
        script.state.withLock { $0.keepsParts = true }
        let journey = try scenario(assuming, values: ["gone": .text("assume_complete")])
        let object = try await journey.attempt()
        #expect(object.warnings.count == 1 && object.warnings[0].contains("not found there any more"))
        #expect(object.verifiedBy == "assumption")
        #expect(script.whole.isEmpty)
        let holding = try server()
        let other = try scenario(holding, values: ["gone": .text("hold")])
        let error = try await other.failedAttempt()
        #expect(error.failure.code == .outcomeUnknown && error.remedy == .failUpload)
        #expect(script.whole.isEmpty)
    }

    @Test("sections that move to another server are joined there, and the file is sent once")
    func otherServer() async throws {
        let first = try server { exchange in
            guard exchange.header("upload-concat")?.hasPrefix("final") == true else { return false }
            exchange.reply(503)
            return true
        }
        let journey = try scenario(first)
        _ = try await journey.failedAttempt()
        let second = ConcatenatingServer()
        let home = try FakeServer { second.serve($0) }
        let moved = try UploadScenario(
            home.url + "/files", size: Self.size, values: ["parallel": .whole(2)], checkpoint: journey.ledger.last)
        _ = try await moved.attempt()
        #expect(second.joined.map(\.held) == [moved.content])
        #expect(second.whole.isEmpty)
    }

    @Test(
        "503 to the request that joins is repeated; without a header of tus it may have arrived, and a warning says so")
    func unavailable() async throws {
        for headers in [[("Tus-Resumable", "1.0.0")], []] {
            let script = ConcatenatingServer()
            let server = try FakeServer { exchange in
                guard exchange.header("upload-concat")?.hasPrefix("final") == true, script.time("join") == 0 else {
                    return script.serve(exchange)
                }
                exchange.reply(503, headers)
            }
            let journey = try scenario(server)
            _ = try await journey.failedAttempt()
            let object = try await journey.attempt()
            #expect(object.warnings.contains { $0.contains("twice") } == headers.isEmpty, "\(object.warnings)")
            #expect(script.joined.map { $0.metadata.contains("possibleDuplicate") } == [headers.isEmpty])
        }
    }

    @Test("each request of a section has its quota reserved, and a shortage holds the file")
    func quota() async throws {
        let server = try server()
        let journey = try scenario(server, chunk: 4 << 20)
        let permit = NarrowPermit(most: 9 << 20)
        await #expect(throws: UploadError.self) { try await journey.attempt(with: permit) }
        #expect(permit.reserved.withLock { $0 } == 0)
        let arrived = script.partials.reduce(0) { $0 + $1.held.count }
        #expect(arrived <= 9 << 20)
        _ = try await journey.attempt()
        #expect(script.joined.map(\.held) == [journey.content])
    }

    @Test("a section for which the quota has no room waits for another one to end")
    func narrowQuota() async throws {
        let server = try server()
        let journey = try scenario(server, parallel: 3, chunk: 4 << 20)
        // Reservations are given back: there is room for one whole request at a time. Without the wait the attempt would
        // end.
        let permit = NarrowPermit(most: 4 << 20, isSpent: false)
        _ = try await journey.attempt(with: permit)
        #expect(script.joined.map(\.held) == [journey.content])
    }

    @Test("sections of other content are removed, and the file is sent from its beginning")
    func otherContent() async throws {
        let server = try server { exchange in
            guard exchange.header("upload-concat")?.hasPrefix("final") == true else { return false }
            exchange.reply(503)
            return true
        }
        var journey = try scenario(server)
        _ = try await journey.failedAttempt()
        let other = noise(Self.size, seed: 2)
        _ = try journey.folder.write("staged", other)
        journey.order.file.sha256 = Hasher.digest(.sha256, of: other)
        _ = try await journey.failedAttempt()
        #expect(journey.ledger.book.withLock { $0.left.count } == 1)
        #expect(script.partials.count == 4)
        let (one, two) = (script.partials[2].held, script.partials[3].held)
        #expect(one + two == other || two + one == other)
    }

    @Test("a staged copy that has changed is not joined, and is staged again")
    func rotten() async throws {
        let server = try server()
        let journey = try scenario(server)
        var content = journey.content
        content[content.count - 1] ^= 1
        _ = try journey.folder.write("staged", content)
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .restage(.changed))
        #expect(script.joined.isEmpty)
        let last = try #require(journey.ledger.last)
        #expect(try await journey.destination.discard(last, context: .open))
        #expect(script.partials.map(\.exists) == [false, false])
    }

    @Test("a cancelled upload leaves no part behind")
    func discard() async throws {
        let server = try server { exchange in
            guard exchange.header("upload-concat")?.hasPrefix("final") == true else { return false }
            exchange.reply(503)
            return true
        }
        let journey = try scenario(server)
        _ = try await journey.failedAttempt()
        let last = try #require(journey.ledger.last)
        #expect(try await journey.destination.discard(last, context: .open))
        #expect(script.partials.map(\.exists) == [false, false])
    }
}

/// Lets requests pass once a number of them has come, or after a while.
private final class MeetingPoint: Sendable {
    private let count: Int
    private let come = Mutex(0)

    init(_ count: Int) { self.count = count }

    func arrive() {
        come.withLock { $0 += 1 }
        while come.withLock({ $0 }) < count { usleep(1000) }
    }
}

extension UploadScenario {
    fileprivate func attempt(with permit: any RequestPermit) async throws -> RemoteObject {
        try await destination.upload(order, reporter: ledger, context: RequestContext(permit: permit, headers: [:]))
    }
}

/// A quota of so many bytes.
private final class NarrowPermit: RequestPermit {
    private let left: Mutex<Int64>
    let reserved = Mutex<Int64>(0)

    private let isSpent: Bool

    /// - Parameter isSpent: Bytes that were sent count; otherwise only reservations do.
    init(most: Int64, isSpent: Bool = true) {
        left = Mutex(most)
        self.isSpent = isSpent
    }

    func send(_ request: Request, over transport: any Transporting) async throws(TransportError) -> Response {
        try await transport.send(request)
    }
    func charging(upload id: String) -> any RequestPermit { self }
    func allowance(for count: Int64) -> Int64 { count }
    func reserve(for count: Int64) -> Shortage? {
        let isEnough = left.withLock { left in
            guard left >= count else { return false }
            left -= count
            return true
        }
        if !isEnough { return Shortage(text: "the quota is used up", after: .seconds(60)) }
        reserved.withLock { $0 += count }
        return nil
    }
    func returnReservation(for count: Int64, sent: Int64) {
        left.withLock { $0 += isSpent ? count - sent : count }
        reserved.withLock { $0 -= count }
    }
    var rate: Int64? { nil }
}
