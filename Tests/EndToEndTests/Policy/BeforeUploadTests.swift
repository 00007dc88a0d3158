import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import Testing

/// `before_upload`, from the built program.
@Suite("before_upload, with the built program", .timeLimit(.minutes(Patience.minutes(3))))
struct BeforeUploadTests {
    private typealias Scene = HookFixture.Scene

    private struct Asked: Decodable {
        var id, folder, destination, path, name, mediaType: String
        var size: Int64
        var sha256: String
        var metadata, context: [String: String]
        var generation: Int
    }

    private struct Page: Decodable {
        struct Upload: Decodable {
            struct Hold: Decodable { var kind, text: String }
            struct Failure: Decodable { var code, message: String }
            var id, name, state, sourceState: String
            var holds: [Hold]
            var context: [String: String]
            var error: Failure?
        }
        var uploads: [Upload]
    }

    /// A scene with a program that records its input, one line each, and prints the content of the file `answer`.
    private func scene(_ script: String = "", timeout: String = "5s") throws -> Scene {
        let scene = try Scene()
        let answer = scene.fixture.folder.path.appending("answer").display
        let ask = try scene.script(
            "ask", "cat >> \(scene.out.display)\n\(script)\ncat \(answer) 2> /dev/null || exit 0")
        scene.fixture.folderKeys = ["before_upload: {command: [\(ask.display)], timeout: \(timeout)}"]
        return scene
    }

    private func says(_ text: String, in scene: Scene) throws {
        try Files.replace(scene.fixture.folder.path.appending("answer"), with: Array(text.utf8))
    }

    private func asked(_ scene: Scene) throws -> [Asked] {
        // The last piece may be half of a line.
        guard let bytes = try? Files.read(scene.out, limit: 64 << 20) else { return [] }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .dropLast().map {
                try decoder.decode(Asked.self, from: Data($0.utf8))
            }
    }

    private func uploads(_ scene: Scene) async throws -> [Page.Upload] {
        guard let text = try await scene.fixture.runVerb("list", ["--json"]) else { return [] }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try text.split(separator: "\n").flatMap { line -> [Page.Upload] in
            let data = Data(line.utf8)
            if let page = try? decoder.decode(Page.self, from: data) { return page.uploads }
            return [try decoder.decode(Page.Upload.self, from: data)]
        }
    }

    private func drop(_ number: Int, in scene: Scene) throws {
        try scene.camera.drop(Clip(number: number, size: 1000, relative: FilePath("\(number).mp4")))
    }

    @Test("the program is asked once for each upload, with its details, and an empty answer permits it")
    func go() async throws {
        let scene = try scene()
        scene.fixture.folderKeys += ["context: {who: camera}", "metadata: {title: \"{stem}\"}"]
        try scene.fixture.startDaemon()
        try await scene.upload(1...5)
        let asked = try asked(scene)
        #expect(Set(asked.map(\.name)) == Set((1...5).map { "\($0).mp4" }))
        #expect(asked.count == 5)
        let first = try #require(asked.first { $0.name == "1.mp4" })
        #expect((first.folder, first.destination, first.size, first.generation) == ("camera", "archive", 1000, 1))
        #expect(first.path == scene.fixture.drop.appending("1.mp4").display)
        #expect((first.context, first.metadata) == (["who": "camera"], ["title": "1"]))
        #expect(first.sha256.count == 64)
        #expect(first.mediaType == "video/mp4")
    }

    @Test("the program may change an upload's name and add context")
    func changed() async throws {
        let scene = try scene()
        try says(
            #"{"answer":"go","name":"by-hook/renamed.mp4","context":{"who":"hook"},"metadata":{"title":"x"}}"#,
            in: scene)
        try scene.fixture.startDaemon()
        try drop(1, in: scene)
        try await scene.arrives("by-hook/renamed.mp4")
        let upload = try await eventually("the upload is complete") {
            try await uploads(scene).first { $0.state == "completed" }
        }
        #expect(upload.context == ["who": "hook"])
        #expect(try FileStatus.ifPresent(at: scene.fixture.archive.appending("1.mp4")) == nil)
    }

    @Test(
        "the programs of folder, destination and `policy` run in this order, each with the changes of those before")
    func places() async throws {
        let scene = try Scene()
        func place(_ name: String, _ answer: String) throws -> String {
            let line = scene.fixture.folder.path.appending(FilePath("said-\(name)")).display
            let path = try scene.script(
                FilePath(name), "cat >> \(scene.out.display)\necho '\(answer)'\necho x >> \(line)")
            return "before_upload: {command: [\(path.display)]}"
        }
        scene.fixture.folderKeys = [
            try place("folder", #"{"answer":"go","name":"folder.mp4","metadata":{"a":"folder","b":"folder"}}"#)
        ]
        scene.fixture.archiveKeys =
            ", "
            + (try place("destination", #"{"answer":"go","name":"destination.mp4","metadata":{"b":"destination"}}"#))
        scene.fixture.policyKeys = [try place("policy", #"{"answer":"go","name":"policy.mp4"}"#)]
        try scene.fixture.startDaemon()
        try drop(1, in: scene)
        try await scene.arrives("policy.mp4")
        #expect(try asked(scene).map(\.name) == ["1.mp4", "folder.mp4", "destination.mp4"])
        #expect(try asked(scene).last?.metadata == ["a": "folder", "b": "destination"])
        // The first program that refuses decides.
        _ = try place("destination", #"{"answer":"skip","reason":"not here"}"#)
        try drop(2, in: scene)
        let upload = try await eventually("the upload has been skipped") {
            try await uploads(scene).first { $0.state == "cancelled" }
        }
        #expect(upload.error?.message == "`before_upload` of destinations.archive skips it: not here")
        #expect(try asked(scene).count == 5)
        // A reload that changes only the program of `policy` takes effect at once.
        _ = try place("destination", #"{"answer":"go"}"#)
        _ = try place("policy", #"{"answer":"wait","for":"1h","reason":"all wait"}"#)
        try drop(3, in: scene)
        let hold = try await eventually("the upload waits") {
            try await uploads(scene).compactMap { $0.holds.first }.first
        }
        #expect(hold.text == "`before_upload` of policy delays it: all wait")
        scene.fixture.policyKeys = []
        scene.fixture.folderKeys = []
        try scene.fixture.writeConfiguration()
        #expect(try await scene.fixture.runVerb("reload")?.contains("before_upload") == true)
        try await scene.arrives("3.mp4")
    }

    @Test("wait holds only this upload with the program's reason, and the program is asked again afterwards")
    func wait() async throws {
        let scene = try scene()
        let ask = try scene.script(
            "ask",
            """
            line=$(cat); echo "$line" >> \(scene.out.display)
            case $line in *'"name":"1.mp4"'*) cat \(scene.fixture.folder.path.appending("answer").display) ;; esac
            """)
        #expect(try FileStatus(at: ask).isRegular)
        try says(#"{"answer":"wait","for":"2s","reason":"the tide is out"}"#, in: scene)
        try scene.fixture.startDaemon()
        let clock = ContinuousClock()
        let began = clock.now
        for number in 1...3 { try drop(number, in: scene) }
        for number in 2...3 { try await scene.arrives(FilePath("\(number).mp4")) }
        let hold = try await eventually("the first upload waits") {
            try await uploads(scene).first { $0.name == "1.mp4" }?.holds.first
        }
        #expect((hold.kind, hold.text) == ("busy", "`before_upload` of folder camera delays it: the tide is out"))
        let path = scene.fixture.drop.appending("1.mp4").display
        // For a moment after each query the upload is not waiting.
        try await eventually("`why` shows the reason of the program") {
            try await scene.fixture.runVerb("why", [path])?.contains("the tide is out") == true
        }
        try says("", in: scene)
        try await scene.arrives("1.mp4")
        let asked = try asked(scene).count { $0.name == "1.mp4" }
        #expect(asked >= 2 && asked <= Int((clock.now - began) / .seconds(2)) + 2)
    }

    @Test("skip ends the upload with its reason; source and other uploads stay, and retry asks again")
    func skip() async throws {
        let scene = try scene()
        try says(#"{"answer":"skip","reason":"nobody in the picture"}"#, in: scene)
        try scene.fixture.startDaemon()
        try drop(1, in: scene)
        let upload = try await eventually("the upload has been skipped") {
            try await uploads(scene).first { $0.state == "cancelled" }
        }
        #expect(upload.error?.code == "skipped")
        #expect(upload.error?.message == "`before_upload` of folder camera skips it: nobody in the picture")
        #expect(try FileStatus.ifPresent(at: scene.fixture.drop.appending("1.mp4")) != nil)
        #expect(try Files.names(in: scene.fixture.archive).isEmpty)
        let why = try await scene.fixture.runVerb("why", [upload.id])
        #expect(why?.contains("nobody in the picture") == true)
        try await eventually("the staged copy has been deleted") {
            try Outcome.files(in: scene.fixture.staging, hidden: true).isEmpty
        }
        try says("", in: scene)
        #expect(try await scene.fixture.runVerb("retry", [upload.id]) != nil)
        try await scene.arrives("1.mp4")
        #expect(try asked(scene).map(\.generation) == [1, 2])
    }

    @Test("if one destination is skipped and another has the file, a source that would be deleted stays")
    func skippedBeside() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.uploadTo = ["nas", "archive"]
        let folder = fixture.folder.path
        fixture.archiveKeys =
            ", before_upload: {command: [/bin/sh, -c, \"echo '{\\\"answer\\\":\\\"skip\\\"}'\"]}"
        try await fixture.startReceiver()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try fixture.startDaemon()
        try camera.drop(Clip(number: 1, size: 1000, relative: "1.mp4"))
        try await eventually("both uploads have ended") {
            guard let text = try await fixture.runVerb("status") else { return false }
            return text.contains("0 ongoing, 1 completed, 0 failed, 1 cancelled")
        }
        try await eventually("the staged copy has been deleted") {
            try Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        #expect(try FileStatus.ifPresent(at: fixture.drop.appending("1.mp4")) != nil)
        #expect(try FileStatus(at: folder).isDirectory)
    }

    @Test(
        "no answer, invalid output and a time-out count as wait and are reported, until the program works",
        arguments: [
            ("exit 3", "it ended with status 3"), ("echo maybe; exit 0", "it printed no answer"),
            ("sleep 1000", "it did not end in time"),
            ("echo '{\"answer\":\"go\",\"name\":\"../x\"}'; exit 0", "its `name` is not a path below"),
        ])
    func nonsense(_ script: String, _ words: String) async throws {
        let scene = try scene(script, timeout: "300ms")
        try scene.fixture.startDaemon()
        try drop(1, in: scene)
        let hold = try await eventually("the upload waits") {
            try await uploads(scene).first?.holds.first { $0.kind == "busy" }
        }
        #expect(hold.text.hasPrefix("`before_upload` of folder camera gave no answer, which counts as wait: \(words)"))
        #expect(try scene.log().contains("uploads wait for the answer of a program"))
        _ = try scene.script("ask", "cat >> \(scene.out.display)")
        try await scene.arrives("1.mp4")
    }

    @Test("at most four hanging programs run, and other uploads, a reload and a stop do not wait for them")
    func hanging() async throws {
        let scene = try scene("sleep 1000", timeout: "5m")
        scene.fixture.policyKeys = ["order: oldest-first"]
        scene.fixture.topKeys = []
        try scene.fixture.startDaemon()
        for number in 1...4 { try drop(number, in: scene) }
        try await eventually("the program runs for four uploads") { try asked(scene).count == 4 }
        for number in 5...6 { try drop(number, in: scene) }
        try await eventually("all six files have an upload") { try await uploads(scene).count == 6 }
        #expect(try asked(scene).count == 4)
        #expect(try await scene.fixture.stopDaemon(within: .seconds(2)) == .status(0))
        try scene.fixture.startDaemon()
        try await eventually("the program runs for four uploads again") { try asked(scene).count == 8 }
        scene.fixture.folderKeys = []
        try scene.fixture.writeConfiguration()
        #expect(try await scene.fixture.runVerb("reload") != nil)
        // No program is asked any more, and the daemon does not wait for a program that hung.
        for number in 1...6 { try await scene.arrives(FilePath("\(number).mp4")) }
    }

    @Test(
        "killed at each step, each file arrives once, and a permitted upload is not asked for again",
        arguments: CrashSteps.beforeUpload)
    func killed(_ step: String) async throws {
        let scene = try scene()
        for number in 1...3 { try drop(number, in: scene) }
        var kills = 0
        for round in 1...3 {
            try scene.fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": "\(step):\(round)"])
            _ = try await eventually("the daemon was killed, or all files have arrived") { () -> Bool? in
                if scene.fixture.daemon?.ended != nil { return true }
                return try Files.names(in: scene.fixture.archive).count == 3 ? true : nil
            }
            if scene.fixture.daemon?.ended == .signal(SIGKILL) { kills += 1 }
            scene.fixture.killDaemon()
        }
        #expect(kills > 0)
        try scene.fixture.startDaemon()
        for number in 1...3 { try await scene.arrives(FilePath("\(number).mp4")) }
        try await eventually("all uploads are complete") {
            try await uploads(scene).filter { $0.state == "completed" }.count == 3
        }
        #expect(try Files.names(in: scene.fixture.archive).count == 3)
        let counts = Dictionary(grouping: try asked(scene), by: \.name).mapValues(\.count)
        if step == "approved" { #expect(counts.values.reduce(0, +) <= 3 + 2 * kills) }
        #expect(counts.count == 3)
    }
}
