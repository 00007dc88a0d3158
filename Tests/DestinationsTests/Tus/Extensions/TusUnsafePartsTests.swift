import Core
import Destinations
import Synchronization
import TestKit
import Testing

/// Parts of a file that are not known to be whole, or whose address is that of something else. None of them is joined,
/// and nothing else is removed with them.
@Suite("tus: parts that are not whole", .timeLimit(.minutes(Patience.minutes(2))))
struct TusUnsafePartsTests {
    private static let size = 17 << 20
    let script = ConcatenatingServer()

    private func scenario(
        _ server: FakeServer, values: [String: SettingValue] = [:], checkpoint: Checkpoint? = nil
    ) throws -> UploadScenario {
        try UploadScenario(
            server.url + "/files", size: Self.size, values: values.merging(["parallel": .whole(2)]) { $1 },
            checkpoint: checkpoint)
    }

    private func server(_ answer: @escaping @Sendable (Exchange) -> Bool = { _ in false }) throws -> FakeServer {
        try FakeServer { [script] exchange in if !answer(exchange) { script.serve(exchange) } }
    }

    /// The content that is at the server as one upload, besides that of parts.
    private var files: [[UInt8]] { script.uploads.filter { $0.exists && $0.concat != "partial" }.map(\.held) }

    // MARK: Addresses

    @Test("parts that get one address are not joined: the file is sent as one, and only they are removed")
    func oneAddress() async throws {
        let server = try server { [script] exchange in
            guard exchange.header("upload-concat") == "partial", script.time("part") > 0 else { return false }
            exchange.reply(201, [("Location", "/u0"), ("Tus-Resumable", "1.0.0")])
            return true
        }
        let journey = try scenario(server)
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "offset" && object.warnings == [])
        #expect(script.joined.isEmpty && script.whole.map(\.held) == [journey.content])
        let left = try #require(journey.ledger.book.withLock { $0.left.first })
        #expect(try await journey.destination.discard(left))
        #expect(script.partials.map(\.exists) == [false] && files == [journey.content])
    }

    @Test("a checkpoint in which two parts have one address is not joined either")
    func storedAddress() async throws {
        let server = try server { exchange in
            guard exchange.header("upload-concat")?.hasPrefix("final") == true else { return false }
            exchange.reply(503, [("Tus-Resumable", "1.0.0")])
            return true
        }
        let first = try scenario(server)
        _ = try await first.failedAttempt()
        var fields = try #require(first.ledger.last).fields
        fields["section1.url"] = fields["section0.url"]
        let later = try scenario(server, checkpoint: Checkpoint(fields))
        _ = try await later.attempt()
        #expect(script.joined.isEmpty && files == [later.content])
    }

    @Test("a file that gets the address of a part that was given up stays when the parts are removed")
    func reusedAddress() async throws {
        let server = try server { [script] exchange in
            if exchange.header("upload-concat")?.hasPrefix("final") == true {
                exchange.reply(409)
                return true
            }
            guard exchange.method == "POST", exchange.header("upload-concat") == nil else { return false }
            let length = exchange.header("upload-length").flatMap { Int($0) } ?? -1
            script.state.withLock { $0.uploads[0] = ConcatenatingServer.Upload(length: length, metadata: "") }
            exchange.reply(201, [("Location", "/u0"), ("Tus-Resumable", "1.0.0")])
            return true
        }
        let journey = try scenario(server)
        _ = try await journey.attempt()
        let left = try #require(journey.ledger.book.withLock { $0.left.first })
        #expect(try await journey.destination.discard(left))
        #expect(script.uploads.map(\.exists) == [true, false] && files == [journey.content])
    }

    @Test(
        "a new part that has bytes already is not joined, and is not removed: they are another upload's",
        arguments: [false, true])
    func foreignBytes(_ isAnnounced: Bool) async throws {
        let server = try server { [script] exchange in
            guard exchange.header("upload-concat") == "partial", script.time("part") == 0 else { return false }
            let length = exchange.header("upload-length").flatMap { Int($0) } ?? -1
            let number = script.state.withLock { state in
                state.uploads.append(
                    ConcatenatingServer.Upload(
                        held: noise(1 << 20, seed: 7), length: length, concat: "partial", metadata: ""))
                return state.uploads.count - 1
            }
            exchange.reply(
                201,
                [("Location", "/u\(number)"), ("Tus-Resumable", "1.0.0")]
                    + (isAnnounced ? [("Upload-Offset", "\(1 << 20)")] : []))
            return true
        }
        let journey = try scenario(server)
        let (object, _) = try await journey.arrive()
        #expect(object.verifiedBy == "offset")
        #expect(script.joined.isEmpty && files == [journey.content])
        for left in journey.ledger.book.withLock({ $0.left }) {
            #expect(try await journey.destination.discard(left))
        }
        #expect(script.partials.filter(\.exists).map(\.held) == [noise(1 << 20, seed: 7)])
    }

    @Test("a file that the server joins at the address of a part stays, and the other part is removed")
    func joinedAtPart() async throws {
        let server = try server { [script] exchange in
            guard let concat = exchange.header("upload-concat"), concat.hasPrefix("final;") else { return false }
            let numbers = concat.dropFirst(6).split(separator: " ").compactMap { Int($0.dropFirst(2)) }
            script.state.withLock { state in
                let held = numbers.flatMap { state.uploads[$0].held }
                state.uploads[numbers[0]] = ConcatenatingServer.Upload(
                    held: held, length: held.count, metadata: exchange.header("upload-metadata") ?? "")
            }
            exchange.reply(201, [("Location", "/u\(numbers[0])"), ("Tus-Resumable", "1.0.0")])
            return true
        }
        let journey = try scenario(server)
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "offset" && object.warnings == [])
        #expect(files == [journey.content] && script.partials.map(\.exists) == [false])
    }

    @Test("a joined file that is gone at once is sent again as one upload, and no more than once")
    func goneAtOnce() async throws {
        let server = try server { [script] exchange in
            guard exchange.header("upload-concat")?.hasPrefix("final") == true else { return false }
            script.state.withLock { state in
                state.uploads.append(
                    ConcatenatingServer.Upload(length: Self.size, concat: "final;", metadata: "", exists: false))
            }
            exchange.reply(201, [("Location", "/u\(script.uploads.count - 1)"), ("Tus-Resumable", "1.0.0")])
            return true
        }
        let journey = try scenario(server)
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "offset" && object.warnings.contains { $0.contains("sent twice") })
        #expect(script.whole.map(\.held) == [journey.content])
        #expect(server.seen.filter { $0.hasPrefix("DELETE") }.isEmpty, "the parts are removed later")
    }

    @Test("after a crash behind the removal of the parts, `gone` decides about a file that is not found")
    func killedAfterRemoval() async throws {
        let server = try server()
        script.state.withLock { $0.keepsParts = true }
        let first = try scenario(server, values: ["gone": .text("hold")])
        #expect(try await first.failedAttempt().failure.code == .outcomeUnknown)
        // As it was on disk before the first removal.
        let entered = try #require(
            first.ledger.book.withLock { book in
                book.checkpoints.last { $0["joined_at"] != nil && $0["ended_in"] == nil }
            })
        let later = try scenario(server, values: ["gone": .text("hold")], checkpoint: entered)
        let error = try await later.failedAttempt()
        #expect(error.failure.code == .outcomeUnknown && error.remedy == .failUpload)
    }

    // MARK: The last bytes of a part

    /// Stores the bytes of the first part that is sent, and answers with `status`.
    private func refusing(_ status: Int) throws -> FakeServer {
        try server { [script] exchange in
            guard exchange.method == "PATCH", script.whole.isEmpty, script.time("PATCH") == 0 else { return false }
            let body = exchange.body()
            script.state.withLock { state in
                if let number = Int(exchange.target.dropFirst(2)) { state.uploads[number].held += body }
            }
            exchange.reply(status, [("Tus-Resumable", "1.0.0")], "virus found")
            return true
        }
    }

    private static func isRefused(_ checkpoint: Checkpoint) -> Bool {
        checkpoint.fields.keys.contains { $0.hasPrefix("section") && $0.hasSuffix(".refused_status") }
    }

    @Test(
        "a part whose last bytes are refused is not joined, though the server has them: the file is sent as one",
        arguments: [400, 403, 409, 413, 422, 500])
    func refusedEnd(_ status: Int) async throws {
        let server = try refusing(status)
        let journey = try scenario(server)
        let (object, _) = try await journey.arrive()
        #expect(object.verifiedBy == "offset" && object.warnings == [])
        #expect(script.joined.isEmpty && files == [journey.content])
        #expect(journey.ledger.book.withLock { book in book.checkpoints.contains { Self.isRefused($0) } })
    }

    @Test("a refusal of a part is obeyed after a restart")
    func refusedBeforeRestart() async throws {
        let server = try refusing(422)
        let first = try scenario(server)
        _ = try await first.arrive()
        let stored = try #require(
            first.ledger.book.withLock { book in book.checkpoints.first { Self.isRefused($0) } })
        let later = try scenario(server, checkpoint: stored)
        _ = try await later.arrive()
        #expect(script.joined.isEmpty && files == [first.content, first.content])
    }

    @Test("with `final_error: accept` such a part is joined, with a warning")
    func acceptedEnd() async throws {
        let server = try refusing(422)
        let journey = try scenario(server, values: ["final_error": .text("accept")])
        let (object, _) = try await journey.arrive()
        #expect(script.joined.map(\.held) == [journey.content] && script.whole.isEmpty)
        #expect(object.verifiedBy == "offset_unanswered" && object.warnings.count == 1)
        #expect(object.warnings.allSatisfy { $0.contains("part ") && $0.contains("virus found") }, "\(object.warnings)")
    }

    @Test("if the answer to the last bytes of a part is lost, the offset decides, and the file says so")
    func lostEnd() async throws {
        let server = try server { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return false }
            let body = exchange.body()
            script.state.withLock { state in
                if let number = Int(exchange.target.dropFirst(2)) { state.uploads[number].held += body }
            }
            exchange.cut()
            return true
        }
        let journey = try scenario(server)
        let (object, errors) = try await journey.arrive()
        #expect(errors.map(\.failure.code) == [.connectionLost])
        #expect(script.joined.map(\.held) == [journey.content])
        #expect(object.verifiedBy == "offset_unanswered" && object.warnings.count == 1)
        #expect(object.warnings.allSatisfy { $0.contains("of 2") && $0.contains("every byte") }, "\(object.warnings)")
    }

    // MARK: The request that joins

    /// Answers each request that joins with 500.
    private func unjoining() throws -> FakeServer {
        try server { exchange in
            guard exchange.header("upload-concat")?.hasPrefix("final") == true else { return false }
            exchange.reply(500, [("Tus-Resumable", "1.0.0")], "no")
            return true
        }
    }

    @Test("an error inside the server holds the destination first; after the second one the file is sent as one")
    func brokenJoin() async throws {
        let server = try unjoining()
        let journey = try scenario(server)
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .holdDestination(after: nil) && error.failure.message.contains("answered 500"))
        #expect(error.failure.message.hasSuffix(": no"), "\(error.failure.message)")
        let object = try await journey.attempt()
        #expect(files == [journey.content])
        #expect(object.warnings.contains { $0.contains("may hold the file twice") })
        #expect(script.whole.map { $0.metadata.contains("possibleDuplicate") } == [true])
    }

    @Test("where a person wants to decide, the failure names the status and the text of that answer")
    func brokenJoinHeld() async throws {
        let server = try unjoining()
        let journey = try scenario(server, values: ["gone": .text("hold")])
        _ = try await journey.failedAttempt()
        let error = try await journey.failedAttempt()
        #expect(error.failure.code == .outcomeUnknown && error.remedy == .failUpload)
        #expect(error.failure.message.contains("answered 500") && error.failure.message.contains(": no"))
    }
}
