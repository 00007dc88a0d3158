import Core
import Glibc
import Linux
import TestKit
import Testing

/// The recording of the golden state. It is kept for reading, and runs only if `SLUICE_MAKE_GOLDEN` names a folder for
/// its output: the recorded state is that of the program of its day, and a new recording would lose this purpose.
@Suite("Recording of the golden state", .serialized, .timeLimit(.minutes(Patience.minutes(2))))
struct GoldenMaker {
    private static let place = getenv("SLUICE_MAKE_GOLDEN").map { FilePath(String(cString: $0)) }

    @Test("a daemon and a receiver, killed during their work", .enabled(if: place != nil))
    func make() async throws {
        let place = try #require(Self.place)
        let scene = try GoldenScene()
        let servers = try await Servers(scene)
        let names = [
            "nas", "bucket", "form", "video", "oss", "vod", "archive", "both", "place", "export", "refused", "away",
            "limited", "twice", "moved",
        ]
        for name in names { try scene.folder.write(FilePath("drop/\(name)/.here"), []) }
        scene.places["SLOW"] = "60 kB/s"
        scene.places["MIDDLE"] = "100 kB/s"
        scene.places["FAST"] = "1500 kB/s"
        try await scene.startReceiver()
        try await copied(scene)
        try await scene.start()
        try await finished(scene)
        try await byHand(scene, servers)
        try await onTheirWay(scene, servers)
        scene.kill()
        scene.killReceiver()
        try await record(scene, servers, place)
    }

    /// Every server to which an upload is in progress.
    private final class Servers {
        let s3: S3Emulator
        let form: FormServer
        let vimeo: VimeoServer
        let oss: OSSServer
        let refused: FakeServer

        init(_ scene: GoldenScene) async throws {
            s3 = try S3Emulator()
            vimeo = try VimeoServer()
            var options = FormServer.Options()
            options.block = 100_000
            form = try FormServer("resumable", into: scene.root.appending("forms"), options)
            try Files.makeFolders(scene.root.appending("forms"))
            oss = try await OSSServer()
            refused = try FakeServer { exchange in
                _ = exchange.body()
                exchange.reply(413, [("Tus-Resumable", "1.0.0")], "larger than this server takes")
            }
            scene.places["S3"] = s3.url
            scene.places["FORM"] = String(form.url.dropLast("/upload".count))
            scene.places["VIMEO"] = vimeo.url
            scene.places["VIMEOBYTES"] = vimeo.bytesURL
            scene.places["OSS"] = oss.url
            scene.places["REFUSED"] = refused.url
        }
    }

    private func drop(_ scene: GoldenScene, _ path: String, _ size: Int) throws {
        // The file appears complete, so it is not taken up half written.
        let beside = try scene.folder.write("beside", GoldenScene.content(path, size))
        let target = scene.root.appending(FilePath("drop/\(path)"))
        try Files.makeFolders(target.parent)
        try Files.rename(beside, to: target)
    }

    private func status(_ scene: GoldenScene, _ list: String, _ count: Int) async throws {
        try await eventually("\(count) uploads are \(list); the log says \(scene.log())", every: .milliseconds(100)) {
            try await scene.ask("status", ["--json"])?.contains("\"\(list)\":\(count)") == true
        }
    }

    /// A complete copy of a file in a folder, under its hidden name. The marker is removed, so that no file is renamed
    /// there.
    private func copied(_ scene: GoldenScene) async throws {
        let marker = try scene.folder.write("archive/.there", [])
        try await scene.start(crashingAt: "part-synced:1")
        try drop(scene, "archive/large.mp4", 5_000_000)
        _ = try await #require(scene.daemon).end(within: .seconds(20))
        try Files.removeIfPresent(marker)
    }

    /// Uploads that have ended, or wait for a reason.
    private func finished(_ scene: GoldenScene) async throws {
        try drop(scene, "nas/small 1.mp4", 3000)
        try drop(scene, "nas/sub/small 2.mp4", 4000)
        try drop(scene, "both/clip.mp4", 20_000)
        try drop(scene, "both/clip.xml", 300)
        try drop(scene, "moved/away.mp4", 5000)
        try drop(scene, "limited/1.mp4", 5000)
        // Two uploads of nas, four of both, one of moved, one of limited.
        try await status(scene, "completed", 8)
        try drop(scene, "limited/2.mp4", 400_000)
        let twin = try scene.folder.write("beside", GoldenScene.content("moved/away.mp4", 5000))
        try Files.rename(twin, to: scene.root.appending("drop/twice/same.mp4"))
        try drop(scene, "refused/no.mp4", 2000)
        try drop(scene, "away/waits.mp4", 2000)
        try drop(scene, "away/paused.mp4", 2500)
        try drop(scene, "away/given up.mp4", 2600)
        try drop(scene, "place/there.mp4", 7000)
        try drop(scene, "export/made.mp4", 7000)
        try await status(scene, "failed", 1)
        // A recording that contains its time.
        try Files.makeFolders(scene.root.appending("drop/nas"))
        try await scene.shell(
            "cp \"$1\" \"$2/.tmp.part\"; mv \"$2/.tmp.part\" \"$2/camera.mov\"",
            [
                Repository.root.appending("Tests/Fixtures/media/whole/camera.mov").display,
                scene.root.appending("drop/nas").display,
            ])
        try await status(scene, "completed", 10)
    }

    /// Commands of a person.
    private func byHand(_ scene: GoldenScene, _ servers: Servers) async throws {
        func upload(_ name: String) -> String { scene.root.appending(FilePath("drop/\(name)")).display }
        _ = try await scene.must("retry", [upload("refused/no.mp4")])
        try await eventually("the upload has been refused again", every: .milliseconds(100)) {
            try await scene.ask("show", ["--json", upload("refused/no.mp4")])?.contains("\"generation\":2") == true
        }
        try await status(scene, "failed", 1)
        _ = try await scene.must("pause", [upload("away/paused.mp4")])
        _ = try await scene.must("pause", ["--folder", "export", "--for", "90d"])
        _ = try await scene.must("pause", ["--destination", "refused"])
        _ = try await scene.must("cancel", [upload("away/given up.mp4")])
        _ = try await scene.must("remove", [upload("nas/small 1.mp4")])
        _ = try await scene.must("allow", [upload("away/waits.mp4"), "--metered", "--quota", "--for", "90d"])
        _ = try await scene.must("allow", ["--folder", "away", "--window", "--for", "90d"])
        _ = try await scene.must("limit", ["9 MB/s", "--for", "90d"])
        let file = try scene.folder.write("drop/away/report.bin", GoldenScene.content("report", 900))
        _ = try await scene.must(
            "add",
            [file.display, "--to", "away", "--key", "report-1", "--context", "case=7", "--header", "X-Case: 7"])
        // The upload was cancelled in progress; the bucket refuses to remove it.
        servers.s3.script(
            .abort, .error(503, "SlowDown"), .error(503, "SlowDown"), .error(503, "SlowDown"),
            .error(503, "SlowDown"))
        try drop(scene, "bucket/cancelled.mp4", 12_000_000)
        try await eventually("the bucket has a part of the upload", every: .milliseconds(50)) {
            servers.s3.uploads.values.contains { !$0.parts.isEmpty }
        }
        _ = try await scene.must("cancel", [upload("bucket/cancelled.mp4")])
    }

    /// Uploads in progress at the kill, one to each kind of destination.
    private func onTheirWay(_ scene: GoldenScene, _ servers: Servers) async throws {
        for name in ["nas", "form", "video"] { try drop(scene, "\(name)/large.mp4", 1_200_000) }
        for name in ["oss", "vod"] { try drop(scene, "\(name)/large.mp4", 2_000_000) }
        try drop(scene, "bucket/large.mp4", 17_000_000)
        // An upload begun by another program, without any byte.
        let port = try #require(scene.places["NAS"]?.split(separator: ":").last.flatMap { Int($0) })
        let wire = try Wire(port: port)
        try await wire.send(
            "POST /files/ HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Length: 4000\r\n"
                + "Upload-Metadata: filename YmVndW4ubXA0\r\nContent-Length: 0\r\n\r\n")
        #expect(try await wire.reply().status == 201)
        // Bytes that are handed over, and are not complete yet.
        let handing = try Child(
            "/bin/sh",
            [
                "-c", "(head -c 5000 /dev/zero; sleep 60) | \"$0\" add - --config \"$1\" --name handed.bin --to away",
                scene.program, scene.config.display,
            ], output: scene.root.appending("logs/handing.out"), errors: scene.root.appending("logs/handing.err"))
        defer { handing.end(with: SIGKILL) }
        try await eventually(
            "each upload has acknowledged bytes; the log says \(scene.log())", within: .seconds(30),
            every: .milliseconds(100)
        ) {
            guard let text = try await scene.ask("list", ["--json"]) else { return false }
            let going = text.split(separator: "\"id\":").filter { $0.contains("/large.mp4\"") }
            let acked = going.filter { !$0.contains("\"acked\":0,") && $0.contains("\"acked\"") }
            return acked.count >= 6 && text.contains("/drop/archive/large.mp4")
        }
        try await Task.sleep(for: .milliseconds(300))
    }

    private func record(_ scene: GoldenScene, _ servers: Servers, _ place: FilePath) async throws {
        try Files.makeFolders(place)
        let moment = SystemClocks().wall().milliseconds
        try Files.replace(place.appending("moment"), with: Array("\(moment)\n".utf8))
        let pairs =
            ["\(scene.root.display)={ROOT}"]
            + scene.places.filter { $0.value.hasPrefix("http") && $0.key != "AWAY" }.map { "\($0.value)={\($0.key)}" }
            + scene.places.filter { $0.value.hasPrefix("http") && $0.key != "AWAY" }.map {
                "\($0.value.dropFirst(7))={\($0.key)HOST}"
            }
        let script = GoldenScene.fixtures.appending("dump.py").display
        try await scene.shell(
            """
            place=$1 root=$2 script=$3; shift 3
            tar -C "$root" --sort=name --owner=0 --group=0 -cf - state | xz -9 >"$place/state-as-it-was.tar.xz"
            python3 "$script" "$root/state/sluice.db" "$@" >"$place/state.sql"
            for name in staging received archive; do
                tar -C "$root" --sort=name --owner=0 --group=0 -cf - $name | gzip -9n >"$place/$name.tar.gz"
            done
            cp -r "$root/logs" "$place/"
            """, [place.display, scene.root.display, script] + pairs)
        var lines: [String] = []
        for (id, upload) in servers.s3.uploads {
            lines.append("s3 \(id) \(upload.key) parts \(upload.parts.keys.sorted()) \(upload.headers)")
        }
        lines += servers.form.ids.map { "form \($0)" }
        lines += servers.vimeo.videos.map { "vimeo \($0.number) \($0.bytes.count) of \($0.size) \($0.fields)" }
        lines.append(try await servers.oss.control("unfinished"))
        try Files.replace(place.appending("servers"), with: Array(lines.joined(separator: "\n").utf8))
    }
}
