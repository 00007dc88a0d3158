import API
import Config
import Core
import Destinations
import Linux
import TestKit
import Testing

@testable import Daemon

/// A daemon with two folders and two destinations without servers, so that every upload waits.
private struct Scene {
    let folder = TemporaryFolder()
    let daemon: Daemon

    init() async throws {
        let root = folder.path
        for name in ["front", "back"] { try Files.makeFolders(root.appending(FilePath(name))) }
        let text = """
            version: 1
            state: \(root)/state
            staging: {path: \(root)/staging, keep_free: 0 B}
            folders:
              - {name: front, path: \(root)/front, include: ["*.mp4"], upload_to: [nas]}
              - {name: back, path: \(root)/back, include: ["*.mp4"], upload_to: [nas]}
            destinations:
              nas: {type: tus, url: "http://127.0.0.1:1/a"}
              archive: {type: tus, url: "http://127.0.0.1:1/b"}
            control: {socket: \(root)/control.sock}

            """
        let file = try folder.write("sluice.yaml", Array(text.utf8))
        let settings = try Settings.load(file, types: DestinationTable.builtIn.map(\.type)).settings
        daemon = try await Daemon.start(settings, kinds: DestinationTable.builtIn, log: .silent)
    }

    /// A file that no folder selects, so that only `add` brings it in.
    func file(_ name: String) throws -> String { try folder.write(FilePath(name), noise(100)).display }

    func add(
        _ path: String, to: [String] = [], key: String? = nil, context: [String: String] = [:]
    ) async throws -> [UploadView] {
        let bytes = try #require(FilePath(display: path)).bytes
        return try await daemon.add(
            AddRequest(path: hexadecimal(bytes), to: to, key: key, context: context, again: false)
        ).uploads
    }

    /// Provides it while the body runs.
    static func run(_ body: (Scene) async throws -> Void) async throws {
        let scene = try await Scene()
        let running = Task { try await scene.daemon.run() }
        do {
            try await eventually("the daemon has started", holds: { !scene.daemon.isStarting })
            try await body(scene)
        } catch {
            running.cancel()
            _ = await running.result
            throw error
        }
        running.cancel()
        try await running.value
    }
}

/// The refusal in the daemon's own words.
private func refusal(_ body: () async throws -> Void) async throws -> Refusal {
    do { try await body() } catch let refusal as Refusal { return refusal }
    throw NotRefused()
}

private struct NotRefused: Error {}

@Suite("Operations", .timeLimit(.minutes(Patience.minutes(1))))
struct OperationsTests {
    @Test("every command that takes a folder or destination reports a misspelt name and suggests the right one")
    func misspelt() async throws {
        try await Scene.run { scene in
            let daemon = scene.daemon
            let verbs: [(Selection) async throws -> Void] = [
                { _ = try await daemon.pause($0) }, { _ = try await daemon.resume($0) },
                { _ = try await daemon.cancel($0) }, { _ = try await daemon.retry($0) },
                {
                    var query = ListQuery()
                    (query.folder, query.destination) = ($0.folder, $0.destination)
                    _ = try await daemon.list(query)
                },
            ]
            for verb in verbs {
                let folder = try await refusal { try await verb(Selection(folder: "frnt")) }
                #expect(folder == Refusal(.notFound, "no folder is called `frnt`: did you mean `front`?"))
                let destination = try await refusal { try await verb(Selection(destination: "archiv")) }
                #expect(
                    destination == Refusal(.notFound, "no destination is called `archiv`: did you mean `archive`?"))
            }
        }
    }

    @Test("a pause has one scope and a positive duration")
    func pauseScopes() async throws {
        try await Scene.run { scene in
            for selection in [
                Selection(folder: "front", destination: "nas"), Selection(all: true, folder: "front"),
                Selection(ids: ["01M7YAX2"], all: true), Selection(ids: ["01M7YAX2"], duration: 5),
                Selection(all: true, duration: 0),
            ] {
                let said = try await refusal { _ = try await scene.daemon.pause(selection) }
                #expect(said.code == .badRequest, "\(selection)")
            }
            #expect(try await scene.daemon.status().paused.isEmpty)
        }
    }

    @Test("add with a repeated destination creates one upload, and a key is short and unique")
    func adding() async throws {
        try await Scene.run { scene in
            let path = try scene.file("front/one.bin")
            let uploads = try await scene.add(path, to: ["nas", "archive", "nas"], key: "one")
            #expect(uploads.map(\.destination).sorted() == ["archive", "nas"])
            let other = try scene.file("front/two.bin")
            let taken = try await refusal { _ = try await scene.add(other, key: "one") }
            #expect(taken.code == .conflict)
            #expect(uploads.map(\.id).contains(taken.id ?? ""))
            for key in ["", String(repeating: "k", count: 1025)] {
                let said = try await refusal { _ = try await scene.add(other, key: key) }
                #expect(said == Refusal(.badRequest, "a key has 1 to 1024 bytes"))
            }
            #expect(try await scene.add(other, key: String(repeating: "k", count: 1024)).count == 1)
            let again = try await refusal { _ = try await scene.add(path) }
            #expect(again.code == .duplicate)
        }
    }

    @Test("add refuses a path that is no file below a folder and too large a context, and leaves no record")
    func refusedAdding() async throws {
        try await Scene.run { scene in
            let path = try scene.file("front/one.bin")
            let outside = try scene.file("one.bin")
            #expect(try await refusal { _ = try await scene.add(outside) }.code == .badRequest)
            // Files outside of the folders are not revealed.
            #expect(try await refusal { _ = try await scene.add(outside + ".none") }.code == .badRequest)
            #expect(
                try await refusal { _ = try await scene.add(path, to: ["archiv"]) }
                    == Refusal(.badRequest, "no destination is called `archiv`: did you mean `archive`?"))
            let many = Dictionary(uniqueKeysWithValues: (0..<17).map { ("k\($0)", "v") })
            let large = Dictionary(
                uniqueKeysWithValues: (0..<9).map { ("k\($0)", String(repeating: "v", count: 1000)) })
            for context in [many, large, ["a b": "v"], ["k": String(repeating: "v", count: 1025)]] {
                #expect(try await refusal { _ = try await scene.add(path, context: context) }.code == .badRequest)
            }
            #expect(try await scene.daemon.list(ListQuery()).uploads.isEmpty)
        }
    }

    @Test("the list can be filtered for waiting uploads and for paused ones")
    func waiting() async throws {
        try await Scene.run { scene in
            func ids(_ state: String) async throws -> [String] {
                var query = ListQuery()
                query.state = state
                return try await scene.daemon.list(query).uploads.map(\.id)
            }
            let held = try #require(try await scene.add(try scene.file("front/held.bin"), to: ["nas"]).first).id
            let paused = try #require(try await scene.add(try scene.file("back/paused.bin"), to: ["archive"]).first).id
            _ = try await scene.daemon.pause(Selection(ids: [paused]))
            try await eventually("both uploads wait") { try await ids("waiting") == [paused, held] }
            #expect(try await ids("paused") == [paused])
            _ = try await scene.daemon.resume(Selection(ids: [paused]))
            #expect(try await ids("paused") == [])
            let said = try await refusal { _ = try await ids("wating") }
            #expect(said == Refusal(.badRequest, "no state is called `wating`: did you mean `waiting`?"))
        }
    }

    @Test("an upload is found by the last components of its path if only one file has them")
    func ends() async throws {
        try await Scene.run { scene in
            let name = FilePath(bytes: Array("front/day/cl".utf8) + [0xFF])
            let odd = try scene.folder.write(name, noise(10)).display
            for path in [odd, try scene.file("front/day/a.bin"), try scene.file("back/day/a.bin")] {
                _ = try await scene.add(path)
            }
            func found(_ reference: String) async throws -> String {
                try await scene.daemon.show(reference).upload.path
            }
            #expect(try await found(#"cl\xff"#) == odd)
            #expect(try await found(#"day/cl\xff"#) == odd)
            #expect(try await found("front/day/a.bin").hasSuffix("/front/day/a.bin"))
            let several = try await refusal { _ = try await found("day/a.bin") }
            #expect(several.code == .ambiguous)
            #expect(several.message.contains("/front/day/a.bin)") && several.message.contains("/back/day/a.bin)"))
            for none in [".bin", "y/a.bin", "day", "other/a.bin"] {
                #expect(try await refusal { _ = try await found(none) }.code == .notFound, "\(none)")
            }
        }
    }
}
