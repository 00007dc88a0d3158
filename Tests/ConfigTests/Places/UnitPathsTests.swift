import Core
import Glibc
import Linux
import TestKit
import Testing

@testable import Config

@Suite("Paths of the systemd unit")
struct UnitPathsTests {
    /// A machine on which everything exists, and only these folders are on disks of their own.
    private func machine(disks: [FilePath] = [], links: [FilePath: FilePath] = [:]) -> UnitPaths.Disk {
        @Sendable func disk(of path: FilePath) -> FilePath? {
            disks.first { path == $0 || path.relative(to: $0) != nil }
        }
        return UnitPaths.Disk(
            resolve: { links[$0] ?? $0 }, canRename: { disk(of: $0) == disk(of: $1) }, exists: { $0.name != "missing" })
    }

    private func settings(_ folders: String, more: String = "") throws -> Settings {
        let text = """
            version: 1
            folders:
            \(folders)
            destinations:
              nas: {type: tus, url: "https://nas.example/files"}
            \(more)
            """
        return try Settings.read(
            [("/etc/sluice/sluice.yaml", Array(text.utf8))], types: types, disk: .unchecked, user: 0
        ) { _ in nil }.settings
    }

    private func folder(_ path: String, _ after: String = "delete", name: String = "cam") -> String {
        #"  - {name: \#(name), path: "\#(path)", upload_to: [nas], after_upload: {source: \#(after)}}"#
    }

    private func lines(
        _ settings: Settings, _ disk: UnitPaths.Disk? = nil, file: FilePath = "/etc/sluice/sluice.yaml"
    ) throws -> [String] {
        try UnitPaths(settings, file: file, disk: disk ?? machine()).dropIn(for: file).split(separator: "\n").map(
            String.init
        ).filter { !$0.hasPrefix("#") }
    }

    @Test("for a folder on any card, the directory above all mount points is opened")
    func pattern() throws {
        let card =
            #"  - {name: c, path: "/media/*/*/DCIM", require: {mount: "/media/*/*"}, upload_to: [nas], after_upload: {source: delete}}"#
        #expect(try lines(settings(card)) == ["[Service]", "ReadWritePaths=-/media"])
    }

    @Test("a folder whose sources stay needs nothing, one whose sources are deleted is opened")
    func deleted() throws {
        #expect(try lines(settings(folder("/srv/cam", "keep"))) == ["[Service]"])
        #expect(try lines(settings(folder("/srv/cam"))) == ["[Service]", "ReadWritePaths=-/srv/cam"])
        #expect(
            try lines(settings(folder("/srv/cam", "keep, for: 1h"))) == ["[Service]", "ReadWritePaths=-/srv/cam"])
        // Folders inside another one are opened with it.
        let more = "  archive: {type: directory, path: /data}\ncontrol: {socket: /data/run/s.sock}"
        #expect(try lines(settings(folder("/srv/cam", "keep"), more: more)) == ["[Service]", "ReadWritePaths=-/data"])
    }

    @Test("a folder and the target of its moves are opened by the folder that holds both")
    func moved() throws {
        let move = folder("/srv/cam/in", #"move, to: "/srv/cam/done/{relative}""#)
        #expect(try lines(settings(move)) == ["[Service]", "ReadWritePaths=-/srv/cam"])
        // On two disks a move is a copy anyway.
        #expect(
            try lines(settings(move), machine(disks: ["/srv/cam/done"]))
                == ["[Service]", "ReadWritePaths=-/srv/cam/done", "ReadWritePaths=-/srv/cam/in"])
    }

    @Test("a move whose only common folder is the root stays a copy, and the drop-in says so")
    func broad() throws {
        let move = folder("/srv/cam", #"move, to: "/mnt/done/{relative}""#)
        let paths = try UnitPaths(settings(move), file: "/etc/sluice/sluice.yaml", disk: machine())
        #expect(paths.entries.map(\.path) == ["/mnt/done", "/srv/cam"])
        #expect(paths.notes.count == 1 && paths.notes[0].contains("Only / holds both folders"))
        #expect(paths.dropIn(for: "/x.yaml").contains("# Note: folder cam: a move to /mnt/done stays a copy."))
    }

    @Test("a folder in a home that does not exist yet is noted also where its sources stay: the unit will hide it")
    func missingHome() throws {
        let settings = try settings(folder("/home/pi/missing", "keep"))
        let paths = try UnitPaths(settings, file: "/etc/sluice/sluice.yaml", disk: machine())
        #expect(paths.notes.count == 1 && paths.notes[0].hasPrefix("/home/pi/missing does not exist"))
    }

    @Test("a folder that the unit hides as a whole is refused also where its sources stay")
    func hiddenAsAWhole() throws {
        for path in ["/home", "/root", "/tmp", "/var/tmp"] {
            let settings = try settings(folder(path, "keep"))
            #expect {
                try UnitPaths(settings, file: "/etc/sluice/sluice.yaml", disk: machine())
            } throws: { error in
                "\(error)"
                    == "folder cam: sources are read: the unit hides \(path) from the service; name a folder below it"
            }
        }
        #expect(try lines(settings(folder("/srv", "keep"))) == ["[Service]"])
    }

    @Test("a folder of the system is refused, with the name of the setting")
    func refused() throws {
        for path in ["/etc", "/home", "/tmp", "/usr"] {
            let settings = try settings(folder(path))
            #expect {
                try UnitPaths(settings, file: "/etc/sluice/sluice.yaml", disk: machine())
            } throws: { error in
                "\(error)".hasPrefix("folder cam: sources are deleted: the service must not write to all of \(path);")
            }
        }
    }

    @Test("a path with a quote that the unit would have to bind is refused: systemd 257 ignores it without a word")
    func quotes() throws {
        for path in ["/home/pi/Pi's", #"/tmp/a\"b"#] {
            let settings = try settings(folder(path))
            #expect(throws: UnitPaths.Refusal.self) {
                try UnitPaths(settings, file: "/etc/sluice/sluice.yaml", disk: machine())
            }
        }
        // BindPaths= has a colon between two paths.
        let colon = ["[Service]", "ProtectHome=tmpfs", #"BindPaths=-/home/pi/a\:b"#]
        #expect(try lines(settings(folder("/home/pi/a:b"))) == colon)
    }

    @Test("destinations that are folders, staging, state, socket and metrics outside of the service's own are opened")
    func others() throws {
        let more = """
              archive: {type: directory, path: /mnt/nas/archive}
            staging: {path: /data/staging}
            metrics: {textfile: /var/lib/node/sluice.prom, status_file: /run/sluice/status.json}
            """
        #expect(
            try lines(settings(folder("/srv/cam", "keep"), more: more)) == [
                "[Service]", "ReadWritePaths=-/data/staging", "ReadWritePaths=-/mnt/nas/archive",
                "ReadWritePaths=-/var/lib/node",
            ])
        let own = "state: /data/state\ncontrol: {socket: /data/control/s.sock}"
        #expect(
            try lines(settings(folder("/srv/cam", "keep"), more: own)) == [
                "[Service]", "ReadWritePaths=-/data/control", "ReadWritePaths=-/data/state",
            ])
    }

    @Test("hidden folders are bound, for reading only where their sources stay")
    func hidden() throws {
        let two = folder("/home/pi/cam", name: "a") + "\n" + folder("/home/pi/other", "keep", name: "b")
        #expect(
            try lines(settings(two)) == [
                "[Service]", "ProtectHome=tmpfs", "BindPaths=-/home/pi/cam", "BindReadOnlyPaths=-/home/pi/other",
            ])
        #expect(try lines(settings(folder("/tmp/cam"))) == ["[Service]", "BindPaths=-/tmp/cam"])
        let move = folder("/home/pi/cam", #"move, to: "/home/pi/done/{relative}""#)
        #expect(try lines(settings(move)) == ["[Service]", "ProtectHome=tmpfs", "BindPaths=-/home/pi"])
        let apart = folder("/home/pi/cam", #"move, to: "/home/eva/done/{relative}""#)
        #expect(
            try lines(settings(apart)) == [
                "[Service]", "ProtectHome=tmpfs", "BindPaths=-/home/eva/done", "BindPaths=-/home/pi/cam",
            ])
        // The folder that is watched, and not its link.
        #expect(
            try lines(settings(folder("/srv/cam")), machine(links: ["/srv/cam": "/home/pi/cam"]))
                == ["[Service]", "ProtectHome=tmpfs", "BindPaths=-/home/pi/cam"])
    }

    @Test(
        "spaces, quotes, backslashes and specifiers are written as systemd reads them",
        arguments: [
            ("/srv/a b", #"ReadWritePaths="-/srv/a b""#), ("/srv/100%", "ReadWritePaths=-/srv/100%%"),
            ("/srv/a$b", "ReadWritePaths=-/srv/a$b"), (#"/srv/a\"b"#, #"ReadWritePaths="-/srv/a\"b""#),
            (#"/srv/a\\b"#, #"ReadWritePaths="-/srv/a\\b""#), ("/srv/a'b", #"ReadWritePaths="-/srv/a'b""#),
            ("/srv/ä", "ReadWritePaths=-/srv/ä"), ("/srv/a:b", "ReadWritePaths=-/srv/a:b"),
        ])
    func escaped(_ path: String, _ expected: String) throws {
        #expect(try lines(settings(folder(path))) == ["[Service]", expected])
    }

    @Test("an instance has its own folders and unit, and a missing folder is noted")
    func instance() throws {
        let settings = try settings(folder("/srv/missing"), more: "state: /var/lib/sluice-front")
        let paths = try UnitPaths(settings, file: "/etc/sluice/front.yaml", disk: machine())
        #expect(paths.unit == "sluice@front.service")
        // The staging folder of this state; its socket is that of the file read above.
        #expect(paths.entries.map(\.path) == ["/run/sluice", "/srv/missing"])
        #expect(paths.notes.count == 1 && paths.notes[0].hasPrefix("/srv/missing does not exist"))
        #expect(DefaultPlaces.unit(of: "/etc/sluice/sluice.yaml") == "sluice.service")
        #expect(DefaultPlaces.unit(of: "/home/pi/x.yaml") == "sluice.service")
    }

    @Test("on this machine links are followed, and a folder that does not exist belongs to the disk of its parent")
    func real() throws {
        let root = TemporaryFolder()
        let real = try #require(Files.real(root.path))
        try Files.makeFolders(real.appending("cam"))
        try Files.makeLink(real.appending("link"), to: real.appending("cam"))
        let disk = UnitPaths.Disk.real
        #expect(disk.resolve(real.appending("link/new")) == real.appending("cam/new"))
        #expect(disk.canRename(real.appending("cam"), real.appending("new/newer")))
        #expect(!disk.canRename(real, "/proc/sys"))
        #expect(disk.exists(real.appending("cam")) && !disk.exists(real.appending("new")))
    }

    @Test("systemd reads the drop-in as it was meant", .enabled(if: Systemd.isPossible, "needs systemd"))
    func read() async throws {
        let root = TemporaryFolder()
        let units = root.path.appending("units")
        let names = ["a b", "100%i", "a$b", #"a\"b"#, #"a\\b"#, "a'b", "a;b", "#a", "ä", "a:b"]
        let inHome = names.filter { !$0.contains("'") && !$0.contains(#"""#) }
        let two =
            names.enumerated().map { folder("/srv/x/\($1)", name: "s\($0)") }
            + inHome.enumerated().map { folder("/home/pi/\($1)", name: "h\($0)") }
        let paths = try UnitPaths(settings(two.joined(separator: "\n")), file: "/x.yaml", disk: machine())
        try root.write("units/sluice.service", Array("[Service]\nExecStart=/bin/true\n".utf8))
        try root.write("units/sluice.service.d/paths.conf", Array(paths.dropIn(for: "/x.yaml").utf8))
        try root.write("units/test.target", Array("[Unit]\nDefaultDependencies=no\nWants=sluice.service\n".utf8))
        let folders: [FilePath] = [root.path, units, units.appending("sluice.service.d")]
        let files: [FilePath] = ["sluice.service", "sluice.service.d/paths.conf", "test.target"]
        for place in folders + files.map({ units.appending($0) }) {
            try systemCall("chmod", on: place.display) { place.withCString { chmod($0, 0o755) } }
        }
        // It prints what it has read and starts nothing; it refuses to do so for root.
        let words = ["--test", "--system", "--unit=test.target"]
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups", try #require(Systemd.program).display]
        let (program, arguments): (FilePath, [String]) =
            geteuid() == 0 ? ("/usr/bin/setpriv", user + words) : (try #require(Systemd.program), words)
        let child = try Child(
            program, arguments, environment: ["SYSTEMD_UNIT_PATH": units.display + ":", "XDG_RUNTIME_DIR": "/nowhere"],
            output: root.path.appending("out"), errors: root.path.appending("err"))
        let ending = try await child.end(within: .seconds(20))
        let errors = try child.standardError()
        #expect(ending == .status(0), "\(errors)")
        let lines = try child.standardOutput().split(separator: "\n").map { $0.drop { $0 == "\t" || $0 == " " } }
        let expected = paths.entries.compactMap(\.path.text)
        #expect(expected.count == names.count + inHome.count)
        let writable = expected.filter { $0.hasPrefix("/srv") }.map { "-" + $0 }.joined(separator: " ")
        #expect(lines.contains { $0 == "ReadWritePaths: \(writable)" }, "\(lines.filter { $0.contains("/srv/x") })")
        for path in expected where path.hasPrefix("/home") {
            #expect(lines.contains { $0 == "BindPaths: -\(path):\(path):rbind" }, "\(path)")
        }
    }
}

private enum Systemd {
    static let program: FilePath? = ["/usr/lib/systemd/systemd", "/lib/systemd/systemd"].first {
        (try? FileStatus.ifPresent(at: $0)) ?? nil != nil
    }
    static var isPossible: Bool { program != nil }
}
