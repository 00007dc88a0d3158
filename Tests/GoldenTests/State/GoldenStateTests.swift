import Core
import Linux
import TestKit
import Testing

@testable import Store

/// The program of the working copy opens a state that an earlier program left when it was killed.
@Suite("Recorded state", .timeLimit(.minutes(Patience.minutes(1))))
struct GoldenStateTests {
    @Test("every row survives and is shown as before")
    func kept() async throws {
        let scene = try GoldenScene()
        try await scene.load()
        // No value may change during the comparison.
        try scene.withDatabase {
            try $0.execute("INSERT INTO pause (scope, name, since) VALUES ('all', '', 1795659061000)")
        }
        // A newer schema may add columns.
        let columns = try Dictionary(uniqueKeysWithValues: Self.tables.map { ($0, try scene.columns(of: $0)) })
        let before = try tables(of: scene, columns)
        let last = before["event"]?.count ?? 0
        let version = try scene.rows("PRAGMA user_version").compactMap { Int($0) }
        try await scene.start()
        let shown = try await shown(by: scene, events: last)
        scene.kill()
        let after = try tables(of: scene, columns)
        for (name, rows) in before {
            let lost = rows.subtracting(after[name] ?? [])
            #expect(lost.isEmpty, "\(name): \(lost.sorted().joined(separator: "\n"))")
        }
        let now = try scene.rows("PRAGMA user_version").compactMap { Int($0) }
        #expect(try #require(now.first) >= #require(version.first))
        #expect(try scene.rows("PRAGMA integrity_check") == ["ok"])
        try RecordedWords.expect("../state/shown.txt", shown, by: .shown)
    }

    private static let tables = [
        "asset", "upload", "checkpoint", "part", "part_digest", "failure", "waste", "usage", "tombstone", "history",
        "event", "hook", "notice", "remote_delete", "pause", "exception", "media", "folder_identity", "turn",
    ]

    /// The tables without the values that a start changes: leases and states of uploads in progress, and recomputed
    /// counts.
    private func tables(of scene: GoldenScene, _ columns: [String: [String]]) throws -> [String: Set<String>] {
        let changing: [String: Set<String>] = [
            "upload": ["state", "lease_owner", "leased_at", "backoff_until", "trouble", "troubled_at", "tried_again"],
            "asset": ["due", "source_note"], "usage": ["bytes", "files", "received", "ends"], "tombstone": ["seen_at"],
            "notice": ["tries", "waited"], "remote_delete": ["tries"], "turn": ["last"],
        ]
        return Dictionary(
            uniqueKeysWithValues: try Self.tables.map {
                ($0, try scene.table($0, columns[$0], without: changing[$0] ?? []))
            })
    }

    /// The output of `list`, `show`, `usage` and `events` that stays the same from one start to the next.
    private func shown(by scene: GoldenScene, events last: Int) async throws -> [String] {
        var lines: [String] = []
        for list in ["ongoing", "completed", "failed", "cancelled", "history"] {
            let page = try JSONTree(try await scene.must("list", ["--list", list, "--json"]))
            let uploads = (page["uploads"]?.items ?? []).sorted { ($0["id"]?.text ?? "") < ($1["id"]?.text ?? "") }
            for upload in uploads { lines += ["", "# \(list)"] + stable(upload) }
        }
        for (id, what) in [
            ("01M8ASXH4472EQFRTPZFH45M9A", "two failures and bytes in vain"), ("camera.mov", "a recording"),
        ] {
            let reference = id.hasSuffix("mov") ? scene.root.appending(FilePath("drop/nas/\(id)")).display : id
            let detail = try JSONTree(try await scene.must("show", [reference, "--json"]))
            lines += ["", "# show: \(what)"]
            for key in ["attempts", "media", "wasted"] { lines += detail[key]?.lines(key) ?? [] }
        }
        let usage = try JSONTree(try await scene.must("usage", ["--json", "--by", "destination"]))
        lines += ["", "# usage, keys alone"] + Set(usage.lines().map { String($0.prefix { $0 != ":" }) }).sorted()
        lines += ["", "# events"] + (try await events(of: scene, last))
        let words = scene.places.filter { $0.value.hasPrefix("http") }
        return lines.map { line in
            words.reduce(line.replacing(scene.root.display, with: "{ROOT}")) { line, word in
                line.replacing(word.value, with: "{SERVER}").replacing(word.value.dropFirst(7), with: "{SERVER}")
            }
        }
    }

    private func stable(_ upload: JSONTree) -> [String] {
        guard case .object(var fields) = upload else { return [] }
        let isOver = fields["list"]?.text != "ongoing"
        for key in ["holds", "next_attempt_at", "expires_at", "staging"] + (isOver ? [] : ["state", "error"]) {
            fields[key] = nil
        }
        if case .object(let progress)? = fields["progress"] {
            fields["progress"] = .object(progress.filter { ["acked", "total"].contains($0.key) })
        }
        return JSONTree.object(fields).lines()
    }

    /// Each type of event with the content of its first one.
    private func events(of scene: GoldenScene, _ last: Int) async throws -> [String] {
        let follower = try scene.start(
            "events", ["events", "--since", "0", "--json", "--config", scene.config.display])
        defer { follower.end(with: 9) }
        let lines = try await eventually("the follower has printed \(last) events", every: .milliseconds(50)) {
            let lines = try follower.standardOutput().split(separator: "\n", omittingEmptySubsequences: false)
                .dropLast()
            return lines.count >= last ? Array(lines.prefix(last)) : nil
        }
        var seen: Set<String> = []
        return try lines.flatMap { line -> [String] in
            let event = try JSONTree(String(line))
            guard case .object(var fields) = event, seen.insert(event["type"]?.text ?? "").inserted else { return [] }
            fields["op"] = event["op"]?["id"]
            return JSONTree.object(fields).lines() + [""]
        }
    }
}
