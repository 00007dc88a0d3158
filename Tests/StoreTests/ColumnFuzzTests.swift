import Core
import FoundationEssentials
import TestKit
import Testing

@testable import Store

/// Columns that a disk has damaged: the row is still shown, without the unreadable values.
@Suite("Fuzz: columns of the database", .timeLimit(.minutes(Fuzz.minutes)))
struct ColumnFuzzTests {
    private static let words = [
        "\"", "\\", "\\\"", "\\u0000", "\\ud83c", "\\u0041", "{", "}", "{}", "[", "]", ":", ",", "null", "true",
        "1e400",
        "-1", "\0", "é", "\u{1F}", "\n", " ", "\"a\":\"b\",", "\"a\":1,", "\"code\":\"\",",
        "\"at\":-9223372036854775808,",
        "\"kind\":\"none\",", String(repeating: "[", count: 600), String(repeating: "{\"a\":", count: 600),
    ]

    @Test("a map reads like any other JSON parser reads it, or as absent, and is written unchanged")
    func maps() throws {
        let seeds = [
            #"{"camera":"front-door","day":"2026-11-20"}"#, "{}", #"{"a\"b":"c\\d","lines":"1\n2\t3"}"#,
            #"{"Tür":"Ü🎥","offset":"400","url":"http://h/u"}"#, #"{ "a" : "b" }"#,
        ]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: Self.words, limit: 4000)
        try Fuzz("maps", rounds: 2000).each(mutator) { round in
            let text = String(decoding: round.input, as: UTF8.self)
            let map = TextMap.map(text)
            // Foundation's decoder ends the process for some of the other texts.
            let isSafe = (try? checkJSON(text.utf8)) != nil
            if isSafe, let other = try? JSONDecoder().decode([String: String].self, from: Data(text.utf8)) {
                // A name that occurs twice may have either of its values.
                let isOnce = text.utf8.count { $0 == UInt8(ascii: "\"") } == 4 * other.count
                try round.expect(
                    isOnce ? map == other : map.map { Set($0.keys) } == Set(other.keys),
                    "another parser reads \(other), and not \(map as Any)")
            }
            if let map { try round.expect(TextMap.map(TextMap.text(map)) == map, "the map changes when written again") }
        }
    }

    @Test("a row with damaged text keeps its other columns, and lists continue")
    func texts() async throws {
        let scene = try await Scene()
        let id = try await Self.fill(scene)
        let disk = try Connection(path: scene.folder.path.appending("state/sluice.db"))
        defer { disk.close() }
        try disk.execute("PRAGMA synchronous = OFF; PRAGMA busy_timeout = 10000")
        let before = try #require(try await scene.store.read { try $0.uploads.row(id) })
        let seeds = [
            TextMap.text(["camera": "door"]), TextMap.text(["url": "http://h/u", "offset": "400"]),
            try StoredJSON.encode(
                Failure(
                    .transient, code: .http(503), message: "busy", http: 503, at: .init(milliseconds: 9),
                    retryable: true)),
            try StoredJSON.encode(RemoteObject(id: "x", url: "http://h/x", verifiedBy: "digest", warnings: ["late"])),
        ]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: Self.words, limit: 4000)
        let columns = [
            "upload SET context", "upload SET metadata", "upload SET remote", "failure SET body", "checkpoint SET body",
            "event SET detail", "remote_delete SET checkpoint", "history SET remote",
        ]
        try await Fuzz("texts of the store", rounds: 300, share: 4).each(mutator) { round in
            let column = columns.randomElement(using: &round.dice) ?? ""
            // In the form of the bytes on the disk: the text need not be UTF-8, and may contain a NUL.
            try disk.run("UPDATE \(column) = CAST(?1 AS TEXT)", [.blob(round.input)])
            guard let row = try await scene.store.read({ try $0.uploads.row(id) }) else {
                throw round.flaw("\(column): the row is gone")
            }
            var upload = row.upload
            (upload.context, upload.metadata) = (before.upload.context, before.upload.metadata)
            upload.remote = before.upload.remote
            try round.expect(upload == before.upload && row.asset == before.asset, "\(column) changes other columns")
            let list = try await scene.store.rows(UploadFilter()).map(\.upload.id)
            try round.expect(list.contains(id), "\(column): the upload is not in the list")
            try round.expect(
                try await scene.store.read { try $0.failures.of(id) }.count <= 1,
                "the upload has more failures than before")
            try round.expect(
                try await !scene.store.read { try $0.events.list(after: 0, limit: 100) }.isEmpty, "\(column): no events"
            )
            try round.expect(
                try await scene.store.read { try $0.remoteDeletions.all() }.count == 1, "\(column): no removals")
            _ = try await scene.store.read { try $0.checkpoints.find(id) }
        }
        await scene.store.close()
    }

    @Test("a number at the end of its range does not trap: the row is shown and continues")
    func numbers() async throws {
        let scene = try await Scene()
        let id = try await Self.fill(scene)
        let disk = try Connection(path: scene.folder.path.appending("state/sluice.db"))
        defer { disk.close() }
        try disk.execute("PRAGMA synchronous = OFF; PRAGMA busy_timeout = 10000")
        let failure = Failure(.transient, code: .noReply, message: "m", at: .init(milliseconds: 0), retryable: true)
        let columns = [
            "rank", "sort", "attempt", "generation", "acked", "size", "modified", "created_at", "backoff_until",
            "paused_at",
        ]
        for column in columns {
            for value in [Int64.min, -1, 0, Int64.max] {
                let old =
                    try disk.first("SELECT \(column) FROM upload WHERE id = ?1", [.text(id)]) {
                        $0.optionalInteger(0)
                    } ?? nil
                try disk.run("UPDATE upload SET \(column) = ?2 WHERE id = ?1", [.text(id), .integer(value)])
                #expect(try await scene.store.read { try $0.uploads.row(id) }?.upload.id == id, "\(column) = \(value)")
                #expect(
                    try await scene.store.rows(UploadFilter()).contains { $0.upload.id == id }, "\(column) = \(value)")
                // The column is part of the key of a stored failure, so an attempt is ended with it.
                if column == "attempt" || column == "generation" {
                    _ = try await scene.store.write {
                        try $0.attempts.finish(id, .held(failure, until: .init(nanoseconds: 0)))
                    }
                }
                try disk.run("UPDATE upload SET \(column) = ?2 WHERE id = ?1", [.text(id), .init(old)])
                try disk.run("UPDATE upload SET state = 'uploading' WHERE id = ?1", [.text(id)])
            }
        }
        await scene.store.close()
    }

    /// An upload under way with a value in each of its columns, and the remains of a cancelled one.
    private static func fill(_ scene: Scene) async throws -> String {
        let store = scene.store
        let gone = try await scene.stage(Scene.arrival(Scene.file("gone.mp4"))).uploads[0]
        _ = try await store.claim("nas", passingOver: [])
        try await store.writeHeld {
            try $0.checkpoints.record(Checkpoint(["url": "http://h/gone"]), for: gone, acked: 1)
        }
        _ = try await store.write { try $0.transitions.cancel([gone]) }
        let id = try await scene.stage(Scene.arrival(Scene.file("a.mp4"), key: "k")).uploads[0]
        _ = try await store.claim("nas", passingOver: [])
        let failure = Failure(
            .transient, code: .http(503), message: "busy", at: .init(milliseconds: 9), retryable: true)
        _ = try await store.write { try $0.attempts.finish(id, .held(failure, until: .init(nanoseconds: 0))) }
        _ = try await store.claim("nas", passingOver: [])
        try await store.writeHeld {
            try $0.checkpoints.record(Checkpoint(["url": "http://h/u", "offset": "400"]), for: id, acked: 40)
        }
        return id
    }
}
