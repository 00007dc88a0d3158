import Core
import FoundationEssentials
import Linux
import Synchronization
import TestKit

/// A daemon with hooks, and the notices that they received.
enum HookFixture {
    struct Event: Decodable {
        struct Upload: Decodable { var id, name, folder, destination, path, state, list: String }
        var seq: Int64
        var type, ts: String
        var op: Upload?
        var detail: [String: String]
    }

    struct Status: Decodable {
        struct Hook: Decodable {
            struct Hold: Decodable { var kind, text, since: String }
            var name, target: String
            var waiting, delivered, givenUp, dropped: Int
            var oldest: String?
            var hold: Hold?
        }
        var hooks: [Hook]?
    }

    final class Scene {
        let fixture: DaemonFixture
        let camera: Camera
        var out: FilePath { fixture.folder.path.appending("delivered") }

        init() throws {
            fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
            fixture.uploadTo = ["archive"]
            camera = Camera(fixture, dice: Dice(seed: 1))
        }

        /// A program that replaces one of the same name, which may be running.
        func script(_ name: FilePath, _ text: String) throws -> FilePath {
            try fixture.folder.writeProgram(name, text)
        }

        /// Drops files, and waits until they are uploaded.
        func upload(_ numbers: ClosedRange<Int>) async throws {
            for number in numbers {
                try camera.drop(Clip(number: number, size: 1000, relative: FilePath("\(number).mp4")))
            }
            for number in numbers { try await arrives(FilePath("\(number).mp4")) }
        }

        func arrives(_ name: FilePath) async throws {
            try await eventually("the archive has \(name)") {
                try FileStatus.ifPresent(at: fixture.archive.appending(name)) != nil
            }
        }

        /// The events that a script has written into a file, one line each.
        func delivered(_ path: FilePath? = nil) throws -> [Event] {
            // The last piece may be half of a line.
            guard let bytes = try? Files.read(path ?? out, limit: 64 << 20) else { return [] }
            return try String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
                .dropLast().map {
                    try JSONDecoder().decode(Event.self, from: Data($0.utf8))
                }
        }

        func hooks() async throws -> [Status.Hook] {
            guard let text = try await fixture.runVerb("status", ["--json"]) else { return [] }
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            return try decoder.decode(Status.self, from: Data(text.utf8)).hooks ?? []
        }

        func log() throws -> String { try fixture.daemon?.standardError() ?? "" }
    }

    /// A server that accepts notices, or answers with a status.
    final class Web: Sendable {
        struct Got: Sendable { var id = "", signature = "", moment = "", body: [UInt8] = [] }
        let got = Mutex<[Got]>([])
        let status: Mutex<Int>
        let server: Mutex<FakeServer?> = Mutex(nil)
        let url: String

        init(_ status: Int = 200) throws {
            self.status = Mutex(status)
            let box = Box()
            let server = try FakeServer { exchange in
                let one = Got(
                    id: exchange.header("webhook-id") ?? "", signature: exchange.header("webhook-signature") ?? "",
                    moment: exchange.header("webhook-timestamp") ?? "", body: exchange.body())
                guard let web = box.web.withLock({ $0 }) else { return }
                let status = web.status.withLock { $0 }
                if status == 200 { web.got.withLock { $0.append(one) } }
                exchange.reply(status, [("Connection", "close")])
                exchange.closeAfterwards()
            }
            url = server.url
            self.server.withLock { $0 = server }
            box.web.withLock { $0 = self }
        }

        final class Box: Sendable { let web = Mutex<Web?>(nil) }

        var events: [Event] {
            get throws {
                try got.withLock { $0 }.map { try JSONDecoder().decode(Event.self, from: Data($0.body)) }
            }
        }
        func answer(_ status: Int) { self.status.withLock { $0 = status } }
    }
}
