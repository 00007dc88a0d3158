import Core
import Foundation
import Glibc
import Linux
import TestKit
import Testing

/// Each verb with an upload in each state, as in the table of docs/operations.md.
@Suite("Commands and states", .timeLimit(.minutes(Patience.minutes(3))))
struct VerbTests {
    /// One cell of the table.
    struct Cell: Sendable, CustomStringConvertible {
        let verb: String
        let state: String
        let status: Int
        /// The code of the refusal, or the upload's state afterwards.
        let result: String
        var description: String { "\(verb) of what is \(state): \(status) \(result)" }
    }

    /// The table as people read it: a column for each state, one verb or several at the start of a row.
    static func table() throws -> [Cell] {
        let file = Repository.root.appending("docs/operations.md")
        let lines = String(decoding: try Files.read(file, limit: 1 << 20), as: UTF8.self).split(separator: "\n")
        let start = try #require(lines.firstIndex { $0.hasPrefix("| verb | `staging`") })
        func fields(_ line: Substring) -> [String] {
            line.split(separator: "|").map { $0.filter { $0 != "`" }.trimmingCharacters(in: .whitespaces) }
        }
        let states = fields(lines[start]).dropFirst()
        return lines[(start + 2)...].prefix { $0.hasPrefix("|") }.flatMap { line -> [Cell] in
            let words = fields(line)
            return words[0].split(separator: ", ").flatMap { verb in
                zip(states, words.dropFirst()).map { state, cell in
                    let cut = cell.firstIndex(of: " ") ?? cell.endIndex
                    return Cell(
                        verb: String(verb), state: state, status: Int(cell[..<cut]) ?? 0,
                        result: String(cell[cut...].dropFirst()))
                }
            }
        }
    }

    @Test("every command behaves in every state as the manual says")
    func all() async throws {
        let cells = try Self.table()
        #expect(
            Set(cells.map(\.verb)).isSuperset(of: [
                "show", "why", "pause", "resume", "cancel", "retry", "remove", "priority", "allow",
            ]))
        #expect(Set(cells.map(\.state)).count == 9)
        let scene = try await Scene()
        for cell in cells { try await scene.play(cell) }
        try scene.fixture.daemon?.requireRunning()
        #expect(try await scene.fixture.stopDaemon() == .status(0))
    }

    /// The part of an upload that this test reads.
    private struct Upload: Decodable {
        struct Hold: Decodable { let kind: String }
        let id: String
        let state: String
        let list: String
        let generation: Int
        let holds: [Hold]
        var isPaused: Bool { holds.contains { $0.kind == "operator" } }
        /// The stored state behind the shown one.
        var stored: String {
            switch state {
            case _ where list == "history": list
            case "waiting": isPaused ? "paused" : "queued"
            case "opening", "finishing": "uploading"
            default: state
            }
        }
    }

    /// A daemon that has an upload in any state. Uploads to `nas` never end, those to `later` wait, those to `archive`
    /// end at once, and files of the folder `exported` are never ready.
    private final class Scene {
        let fixture: DaemonFixture
        private let socket: FilePath
        private var made = 0

        init() async throws {
            fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
            fixture.uploadTo = ["nas", "archive"]
            fixture.destinationKeys = ", bandwidth: 1 kB/s, concurrency: 50"
            fixture.archiveKeys = ", taken: fail"
            fixture.moreDestinations = ["later: {type: tus, url: \"http://127.0.0.1:9/\", bandwidth: 0}"]
            fixture.folderKeys = ["exclude: [\"*\"]"]
            fixture.policyKeys = []
            let exported = fixture.folder.path.appending("exported")
            try Files.makeFolders(exported)
            fixture.moreFolders = [
                "{name: exported, path: \(exported.display), exclude: [\"*\"], upload_to: [later], "
                    + "export: {command: [sh, -c, \"sleep 1000\", \"{input}\", \"{output}\"], output: \"{stem}.mp4\", timeout: 1h}}"
            ]
            socket = fixture.folder.path.appending("control.sock")
            try await fixture.startReceiver()
            try fixture.startDaemon()
            try await eventually("the daemon has started") {
                try fixture.daemon?.requireRunning()
                return try await fixture.status()?.starting == false
            }
        }

        private func ask(_ method: String, _ path: String, _ body: String = "") async throws -> Wire.Reply {
            let wire = try Wire(unix: socket)
            try await wire.send(
                "\(method) /v1/\(path) HTTP/1.1\r\nHost: sluice\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            return try await wire.reply()
        }

        private func upload(_ id: String) async throws -> Upload {
            struct Shown: Decodable { let upload: Upload }
            return try JSONDecoder().decode(Shown.self, from: Data(try await ask("GET", "uploads/\(id)").body)).upload
        }

        private func reach(_ id: String, _ state: String) async throws {
            try await eventually("\(id) is \(state)", every: .milliseconds(20)) {
                try await self.upload(id).stored == state
            }
        }

        /// - Returns: The id of an upload in this state.
        private func make(_ state: String) async throws -> String {
            made += 1
            let name = FilePath("\(made).mp4")
            var (folder, to, size) = (fixture.drop, "later", 100)
            switch state {
            case "gone": return "01JD3K8QXW0000000000000001"
            case "staging": folder = fixture.folder.path.appending("exported")
            case "uploading": (to, size) = ("nas", 4_000_000)
            case "completed": to = "archive"
            case "failed", "history":
                to = "archive"
                try Files.replace(fixture.archive.appending(name), with: Array("somebody else's".utf8))
            default: break
            }
            let path = folder.appending(name)
            try Files.replace(path, with: noise(size, seed: UInt64(made)))
            struct Added: Decodable { let uploads: [Upload] }
            let reply = try await ask(
                "POST", "uploads", #"{"path":"\#(path.display)","to":["\#(to)"],"context":{},"again":false}"#)
            let added = try? JSONDecoder().decode(Added.self, from: Data(reply.body))
            let id = try #require(added?.uploads.first?.id, "\(reply.text)")
            switch state {
            case "paused":
                try await reach(id, "queued")
                #expect(try await ask("POST", "uploads/\(id)/pause").status == 202)
            case "cancelled":
                try await reach(id, "queued")
                #expect(try await ask("POST", "uploads/\(id)/cancel").status == 202)
            case "history":
                try await reach(id, "failed")
                #expect(try await ask("DELETE", "uploads/\(id)").status == 204)
            default: break
            }
            try await reach(id, state)
            return id
        }

        func play(_ cell: Cell) async throws {
            let id = try await make(cell.state)
            let reply =
                switch cell.verb {
                case "show": try await ask("GET", "uploads/\(id)")
                case "why": try await ask("GET", "why/\(id)")
                case "allow": try await ask("POST", "allow", #"{"ids":["\#(id)"],"kinds":["quota"],"duration":60}"#)
                case "priority": try await ask("POST", "uploads/\(id)/priority", #"{"priority":0}"#)
                default: try await ask("POST", "uploads/\(id)/\(cell.verb)")
                }
            #expect(reply.status == cell.status, "\(cell): \(reply.text)")
            guard reply.status < 300 else {
                struct Refused: Decodable {
                    struct Reason: Decodable { let code, message: String }
                    let error: Reason
                }
                let error = try JSONDecoder().decode(Refused.self, from: Data(reply.body)).error
                #expect(error.code == cell.result && !error.message.isEmpty, "\(cell): \(reply.text)")
                // A refusal changes nothing.
                if cell.state != "gone" { #expect(try await upload(id).stored == cell.state, "\(cell)") }
                return
            }
            try await eventually("\(cell)", every: .milliseconds(20)) {
                let now = try await self.upload(id)
                return switch cell.result {
                case "as it was": now.stored == cell.state && now.generation == 1
                case "paused": now.stored == "paused" || now.isPaused && now.stored == "staging"
                case "cancelled": now.stored == "cancelled"
                case "in the history": now.stored == "history"
                case "goes on": !now.isPaused && now.stored == "queued"
                case "begins again": now.generation == 2
                default: throw Unknown(cell: cell)
                }
            }
            // Frees the slot for the next ones.
            if ["uploading", "staging"].contains(cell.state) { _ = try await ask("POST", "uploads/\(id)/cancel") }
        }

        struct Unknown: Error { let cell: Cell }
    }
}
