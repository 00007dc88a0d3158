import Core
import Linux
import TestKit
import Testing

@testable import Store

/// Words that a newer program may have written into the database: they are kept and shown unchanged, and nothing is
/// lost because of them.
@Suite("Unknown words in a state", .timeLimit(.minutes(Patience.minutes(1))))
struct UnknownValuesTests {
    private let upload = "01M8ASXH4472EQFRTPZFH45M9A"
    private let other = "01M8ASXH4472EQFRTPZFH45M9B"

    /// A column, the word in it, and the row that has it.
    private struct Word {
        let table, column, word, condition: String

        init(_ table: String, _ column: String, _ word: String, _ condition: String) {
            (self.table, self.column, self.word, self.condition) = (table, column, word, condition)
        }
    }

    private var words: [Word] {
        [
            Word("asset", "settled_by", "telepathy", "id = 19"), Word("asset", "state", "folded", "id = 11"),
            Word("asset", "source_state", "dissolving", "id = 102"), Word("asset", "keeping", "hologram", "id = 4"),
            Word("asset", "action", "compost", "id = 19"), Word("upload", "state", "levitating", "id = '\(other)'"),
            Word("upload", "remote_delete", "beamed", "id = '\(upload)'"),
            Word("upload", "ended", "vanished", "state = 'removed'"),
            Word("event", "type", "teleported", "seq = 115"), Word("history", "outcome", "vanished", "id = 1"),
            Word("usage", "network", "satellite", "destination = 'refused'"),
        ]
    }

    @Test("unknown words are kept and shown, and such uploads do not run")
    func kept() async throws {
        let scene = try GoldenScene()
        try await scene.load()
        try scene.withDatabase { database in
            for word in words {
                try database.execute("UPDATE \(word.table) SET \(word.column) = '\(word.word)' WHERE \(word.condition)")
            }
            try database.execute(
                """
                UPDATE failure SET body = json_set(body, '$.kind', 'cosmic', '$.code', 'moon_phase', '$.later', 'x')
                    WHERE upload = '\(upload)' AND generation = 1;
                DELETE FROM failure WHERE upload = '\(upload)' AND generation = 2;
                UPDATE upload SET remote = '{"id":"r","later":"x","verifiedBy":"oracle","warnings":[]}'
                    WHERE id = '01M8ASXH4472EQFRTPZFH45M9E';
                UPDATE checkpoint SET body = json_set(body, '$.type', 'teleporter', '$.rule', 'spiral')
                    WHERE upload = '\(upload)';
                INSERT INTO pause (scope, name, since) VALUES ('camera', 'door', 1795659061000);
                INSERT INTO exception (scope, name, kind, since, until, who)
                    VALUES ('orbit', 'moon', 'gravity', 1795659061000, 1895659061000, 'somebody');
                INSERT INTO exception (scope, name, kind, since, until, who)
                    VALUES ('all', '', 'gravity', 1795659061000, 1895659061000, 'somebody');
                DELETE FROM exception WHERE kind = 'rate';
                INSERT INTO setting (name, value) VALUES ('later:x', 'y');
                """)
        }
        try await scene.start()
        let detail = try JSONTree(try await scene.must("show", [upload, "--json"]))
        #expect(detail["attempts"]?.items.first?["error"]?["class"] == .text("cosmic"))
        #expect(detail["attempts"]?.items.first?["error"]?["code"] == .text("moon_phase"))
        #expect(detail["upload"]?["settled_by"] == .text("telepathy"))
        #expect(detail["upload"]?["remote_delete"] == .text("beamed"))
        #expect(detail["upload"]?["source_action"] == .text("compost"))
        let second = try JSONTree(try await scene.must("show", [other, "--json"]))
        #expect(second["upload"]?["state"] == .text("levitating"))
        let completed = try JSONTree(try await scene.must("show", ["01M8ASXH4472EQFRTPZFH45M9E", "--json"]))
        #expect(completed["upload"]?["remote"]?["verified_by"] == .text("oracle"))
        let reason = try await scene.must("why", [other])
        #expect(reason.contains("only a newer version of Sluice knows the state `levitating`"), "\(reason)")
        for filter in [[], ["--text", "."], ["--folder", second["upload"]?["folder"]?.text ?? ""]] {
            let listed = try JSONTree(try await scene.must("list", filter + ["--json", "--limit", "1000"]))
            #expect(listed["uploads"]?.items.contains { $0["id"] == .text(other) } == true, "\(filter)")
        }
        let failed = try JSONTree(
            try await scene.must("list", ["--list", "failed", "--text", ".", "--json", "--limit", "1000"]))
        #expect(failed["uploads"]?.items.contains { $0["id"] == .text(other) } == false)
        let status = try JSONTree(try await scene.must("status", ["--json"]))
        #expect(status["warnings"]?.items.contains { $0.text?.contains("`levitating`") == true } == true)
        let pauses = status["paused"]?.items.map { "\($0["scope"]?.text ?? "") \($0["name"]?.text ?? "")" } ?? []
        #expect(pauses.contains("camera door"), "\(pauses)")
        let exceptions =
            status["exceptions"]?.items.map { "\($0["scope"]?.text ?? "") \($0["kind"]?.text ?? "")" } ?? []
        #expect(exceptions.contains("orbit gravity") && exceptions.contains("all gravity"), "\(exceptions)")
        #expect(status["limit"] == nil)
        // The scope of a pause of an unknown kind is unknown, so no upload runs before a person ends it.
        let why = try await scene.must("why", ["01M8ASXH4472EQFRTPZFH45M7Z"])
        #expect(why.contains("paused"), "\(why)")
        let follower = try scene.start(
            "events", ["events", "--since", "114", "--json", "--config", scene.config.display])
        try await eventually("the follower has printed the unknown event", every: .milliseconds(50)) {
            try follower.standardOutput().contains("\"type\":\"teleported\"")
        }
        follower.end(with: 9)
        // An upload of an unknown state is not changed.
        #expect(try await scene.ask("cancel", [other]) == nil)
        _ = try await scene.must("resume", ["--all"])
        let resumed = try JSONTree(try await scene.must("status", ["--json"]))
        #expect(resumed["paused"]?.items.contains { $0["scope"] == .text("camera") } == false)
        scene.kill()
        for word in words {
            let found = try scene.rows("SELECT count(*) FROM \(word.table) WHERE \(word.column) = '\(word.word)'")
            #expect(found != ["0"], "\(word.table).\(word.column)")
        }
        #expect(try scene.rows("SELECT value FROM setting WHERE name = 'later:x'") == ["y"])
        #expect(try scene.rows("SELECT count(*) FROM exception WHERE kind = 'gravity'") == ["2"])
        #expect(
            try scene.rows("SELECT json_extract(body, '$.type') FROM checkpoint WHERE upload = '\(upload)'") == [
                "teleporter"
            ])
        // Its bytes count like all bytes over networks of an unknown kind.
        let store = try await Store.open(scene.state, clocks: SystemClocks(), sorting: .newestFirst)
        let since = WallTime(milliseconds: 0)
        #expect(
            try await store.read {
                try $0.ledger.spent(since: since, destination: "refused", networks: [.unknown, .metered])
            }.bytes > 0)
        #expect(
            try await store.read { try $0.ledger.spent(since: since, destination: "refused", networks: [.metered]) }
                .bytes == 0)
        await store.close()
        // The copy of an asset of an unknown state may be the last copy of a file.
        #expect(try Files.read(scene.root.appending("staging/11")).count == 2000)
    }
}
