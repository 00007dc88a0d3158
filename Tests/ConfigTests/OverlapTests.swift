import Core
import Linux
import TestKit
import Testing

@testable import Config

@Suite("Overlapping folders and targets")
struct OverlapTests {
    private static let destinations = """
        destinations:
          nas: {type: tus, url: "https://nas.example/"}

        """

    private func load(_ folders: String..., more: String = "", destinations: String = destinations) throws(ConfigErrors)
        -> LoadedSettings
    {
        let list = folders.enumerated().map { "  - {name: f\($0), \($1), upload_to: [nas]}\n" }.joined()
        return try read("version: 1\n" + more + "folders:\n" + list + destinations)
    }

    private func texts(_ body: () throws(ConfigErrors) -> LoadedSettings) -> [String] {
        do throws(ConfigErrors) { return try body().warnings.map(\.text) } catch {
            return error.problems.map { "\($0.key): \($0.text)" }
        }
    }

    @Test(
        "folders may share a path if `include` leaves files for each",
        arguments: [
            (#"path: /a, include: ["*.mp4"]"#, #"path: /a, include: ["*.jpg"]"#),
            (#"path: /a, include: ["*.mp4"]"#, "path: /a"),
            (#"path: /a, exclude: ["*.tmp"]"#, #"path: /a, include: ["*.tmp"]"#),
            (#"path: /a, include: ["*.mp4"]"#, #"path: /a/b, include: ["*.jpg"]"#),
            ("path: /a, recursive: false", "path: /a/b"),
            (#"path: /a, recursive: false, include: ["*.mp4"]"#, #"path: /a, include: ["sub/*.mp4"]"#),
            (#"path: /a, exclude: ["b/*"]"#, "path: /a/b"),
            ("path: /a/cam1", "path: /a/cam10"),
            ("path: /a, max_size: 1 MB", "path: /a, min_size: 1 MB"),
            ("path: /a, min_size: 1 MB", "path: /a, max_size: 999 kB"),
            ("path: /a, max_size: 1 MB", "path: /a/b, min_size: 2 MB"),
            (#"path: /a, include: ["front*.mp4"]"#, #"path: /a, include: ["back*.mp4"]"#),
            (#"path: /a, include: ["front*"], exclude: ["*.mp4"]"#, #"path: /a, include: ["*.mp4"]"#),
        ])
    func apart(_ first: String, _ second: String) throws {
        #expect(try load(first, second).warnings.isEmpty)
    }

    @Test(
        "a folder without any remaining files is refused",
        arguments: [
            ("path: /a", "path: /a"), ("path: /a", #"path: /a/, include: ["*.mp4"]"#),
            (#"path: /a, include: ["*.mp4"]"#, #"path: /a/./., include: ["x*.mp4"]"#),
        ])
    func twice(_ first: String, _ second: String) {
        #expect(
            texts { () throws(ConfigErrors) in try load(first, second) } == [
                "folders[1].path: `f0` (a.yaml:3:22) watches the same folder and comes first, so no file would be "
                    + "left for this one; separate them by `include`, or by `min_size` and `max_size`"
            ])
    }

    @Test("a folder that loses some files to an earlier one is reported as shadowed")
    func shadowed() {
        let answer = texts { () throws(ConfigErrors) in
            try load(#"path: /a, include: ["*.mp4"]"#, #"path: /a, include: ["front*.mp4", "*.jpg"]"#)
        }
        #expect(
            answer == [
                "`f0` (a.yaml:3:22) watches the same folder and comes first, so it takes the files that `front*.mp4` names here"
            ])
    }

    @Test("letter case does not separate the patterns of two folders")
    func letterCase() {
        let same = texts { () throws(ConfigErrors) in
            try load(#"path: /a, include: ["*.MP4"]"#, #"path: /a, include: ["*.mp4"]"#)
        }
        #expect(same.count == 1 && same[0].contains("no file would be left for this one"), "\(same)")
        let crossing = texts { () throws(ConfigErrors) in
            try load(#"path: /a, include: ["Front*"]"#, #"path: /a, include: ["*.MP4"]"#)
        }
        #expect(
            crossing.count == 1 && crossing[0].contains("the files that `Front*` and `*.MP4` both name"), "\(crossing)")
        let excluded = texts { () throws(ConfigErrors) in
            try load(#"path: /a, include: ["*.mp4"], exclude: ["X*.MP4"]"#, #"path: /a, include: ["x*.mp4"]"#)
        }
        #expect(excluded.isEmpty, "\(excluded)")
    }

    @Test(
        "folders are reported as shadowed if names or sizes match both",
        arguments: [
            (
                #"path: /a, include: ["front*"]"#, #"path: /a, include: ["*.mp4", "*.jpg"]"#,
                "the files that `front*` and `*.mp4`, `front*` and `*.jpg` both name"
            ),
            (
                #"path: /a, include: ["day/a*"]"#, #"path: /a, include: ["*.mp4"]"#,
                "the files that `day/a*` and `*.mp4` both name"
            ),
            (
                #"path: /a, include: ["cam[0-9].mp4"]"#, #"path: /a, include: ["cam?.m*"]"#,
                "the files that `cam[0-9].mp4` and `cam?.m*` both name"
            ),
            (
                "path: /a, max_size: 2 MB", "path: /a, min_size: 1 MB",
                "the files that `*` names here, of the sizes that both accept"
            ),
            (
                #"path: /a, min_size: 5 MB"#, #"path: /a, include: ["*.mp4"]"#,
                "the files that `*.mp4` names here, of the sizes that both accept"
            ),
            (
                #"path: /a, recursive: false, include: ["*.mp4"]"#, #"path: /a, include: ["sub/*.mp4", "x*.mp4"]"#,
                "the files that `x*.mp4` names here, directly in the folder"
            ),
        ])
    func partly(_ first: String, _ second: String, _ what: String) {
        let answer = texts { () throws(ConfigErrors) in try load(first, second) }
        #expect(
            answer == ["`f0` (a.yaml:3:22) watches the same folder and comes first, so it takes " + what], "\(answer)")
    }

    @Test(
        "two patterns overlap if some name matches both",
        arguments: [
            ("*", "a", true), ("a*", "*b", true), ("a*", "b*", false), ("a?c", "abc", true), ("a?c", "ac", false),
            ("*a*", "*b*", true), ("**", "x", true), ("[0-9]*", "7", true), ("[]]", "x", true), ("\\*", "a", true),
            ("", "", true), ("", "a", false), ("x/*.a", "*.b", false), ("x/*.a", "y/*.a", false),
            ("a*c*e", "abcde", true),
        ])
    func meeting(_ a: String, _ b: String, _ expected: Bool) {
        #expect(GlobComparison.mayOverlap(a, b) == expected)
        #expect(GlobComparison.mayOverlap(b, a) == expected)
    }

    @Test("a single destination is a list of one")
    func one() throws {
        let text = "version: 1\nfolders:\n  - {name: a, path: /a, upload_to: nas}\n" + Self.destinations
        #expect(try read(text).settings.folders.map(\.uploadTo) == [["nas"]])
        let answer = texts { () throws(ConfigErrors) in
            try read(text.replacing("upload_to: nas", with: "upload_to: nass"))
        }
        #expect(answer.count == 1 && answer[0].hasPrefix("folders[0].upload_to: "), "\(answer)")
    }

    @Test("folders inside a recursive folder are refused", arguments: [("/a", "/a/b"), ("/a/b", "/a"), ("/", "/a")])
    func nested(_ first: String, _ second: String) {
        let answer = texts { () throws(ConfigErrors) in
            try load("path: \(first)", "path: \(second)", more: "state: /a\nstaging: {path: /a}\n")
        }
        #expect(answer.contains { $0.contains("which would take the same files; exclude") })
    }

    /// The configuration in addition to the folder `/srv/cam`, and the place of the answer.
    struct Loop: CustomTestStringConvertible, Sendable {
        let folder: String
        let more: String
        let destinations: String
        let answer: String
        var testDescription: String { answer }
    }

    static let loops: [Loop] = [
        Loop(
            folder: "path: /srv/cam", more: "state: /srv/cam/state\nstaging: {path: /x}\n", destinations: destinations,
            answer: "state: the state folder `/srv/cam/state` lies inside the watched folder `f0` (`/srv/cam`)"),
        Loop(
            folder: "path: /srv/cam", more: "staging: {path: /srv/cam}\n", destinations: destinations,
            answer: "staging.path: the staging folder `/srv/cam` lies inside the watched folder `f0`"),
        Loop(
            folder: "path: /srv/cam", more: "metrics: {status_file: /srv/cam/status.json}\n",
            destinations: destinations,
            answer: "metrics.status_file: the file `/srv/cam/status.json` lies inside the watched folder `f0`"),
        Loop(
            folder: "path: /srv/cam, after_upload: {source: move, to: '/srv/cam/done/{name}'}", more: "",
            destinations: destinations,
            answer: "folders[0].after_upload.to: the target of `move` `/srv/cam/done` lies inside the watched folder"),
        Loop(
            folder: "path: /srv/cam, after_upload: {source: move, to: '/srv/cam/{name}'}", more: "",
            destinations: destinations,
            answer: "folders[0].after_upload.to: the target of `move` `/srv/cam` lies inside the watched folder"),
        Loop(
            folder: "path: /srv/cam", more: "",
            destinations: "destinations: {nas: {type: directory, path: /srv/cam/out}}\n",
            answer: "destinations.nas.path: the destination `nas` `/srv/cam/out` lies inside the watched folder `f0`"),
        Loop(
            folder: "path: /srv/cam", more: "staging: {path: /nas/staging}\n",
            destinations: "destinations: {nas: {type: directory, path: /nas}}\n",
            answer: "destinations.nas.path: the staging folder `/nas/staging` lies inside the destination `nas`"),
        Loop(
            folder: "path: /srv/cam", more: "staging: {path: /x}\nstate: /st\n",
            destinations: "destinations: {nas: {type: directory, path: /x/out}}\n",
            answer: "destinations.nas.path: `/x/out` is, or lies in, the staging folder `/x`"),
        Loop(
            folder: "path: /srv/cam", more: "staging: {path: /x}\nstate: /st\n",
            destinations: "destinations: {nas: {type: directory, path: /st}}\n",
            answer: "destinations.nas.path: `/st` is, or lies in, the state folder `/st`"),
        Loop(
            folder: "path: /st/staging/x", more: "state: /st\n", destinations: destinations,
            answer: "folders[0].path: lies inside the staging folder `/st/staging`"),
        Loop(
            folder: "path: /srv/cam", more: "state: /st\nstaging: {path: /st}\n", destinations: destinations,
            answer: "staging.path: the state folder `/st` is, or lies in, the staging folder"),
    ]

    @Test("circular folders are refused", arguments: loops)
    func loop(_ loop: Loop) {
        let answer = texts { () throws(ConfigErrors) in
            try load(loop.folder, more: loop.more, destinations: loop.destinations)
        }
        #expect(answer.count == 1 && answer[0].hasPrefix(loop.answer), "\(answer)")
    }

    @Test("folders may be beside a target, and may get a warning below it")
    func besides() throws {
        #expect(
            try load("path: /srv/cam, after_upload: {source: move, to: '/srv/camera/{name}'}").warnings.isEmpty)
        #expect(
            texts { () throws(ConfigErrors) in
                try load("path: /srv/cam, after_upload: {source: move, to: '/srv/{year}/{name}'}")
            } == [
                "the watched folder `f0` (`/srv/cam`) lies below the target of `move` `/srv`; make sure that no "
                    + "file is put into it"
            ])
    }

    @Test("folders are compared through symbolic links")
    func links() throws {
        let folder = TemporaryFolder()
        try Files.makeFolders(folder.path.appending("real/cam"))
        let link = folder.path.appending("link")
        try #require(makeLink(to: folder.path.appending("real/cam"), at: link))
        let file = try folder.write(
            "sluice.yaml",
            Array(
                """
                version: 1
                state: \(folder.path.display)/state
                folders:
                  - {name: cam, path: \(folder.path.display)/real/cam, upload_to: [out]}
                destinations:
                  out: {type: directory, path: \(folder.path.display)/link/new/out}
                """.utf8))
        let error = #expect(throws: ConfigErrors.self) { try Settings.load(file, types: types) }
        #expect(error?.problems.count == 1)
        #expect(error?.problems.first?.text.contains("real/cam/new/out` lies inside the watched folder `cam`") == true)
    }

    @Test(
        "folders are compared through bind mounts", .enabled(if: SmallDisk.isPossible, "mounting needs root"),
        arguments: ["cam", "cam/below"])
    func bindMounts(_ shown: String) throws {
        let folder = TemporaryFolder()
        for name in ["cam/below", "out"] { try Files.makeFolders(folder.path.appending(FilePath(name))) }
        // A file in `out` is inside the watched folder.
        let bind = try BindMount(of: folder.path.appending(FilePath(shown)), at: folder.path.appending("out"))
        defer { withExtendedLifetime(bind) {} }
        let file = try folder.write(
            "sluice.yaml",
            Array(
                """
                version: 1
                state: \(folder.path.display)/state
                folders:
                  - {name: cam, path: \(folder.path.display)/cam, upload_to: [nas]}
                destinations:
                  nas: {type: directory, path: \(folder.path.display)/out}
                """.utf8))
        let error = #expect(throws: ConfigErrors.self) { try Settings.load(file, types: types) }
        #expect(error?.problems.count == 1)
        #expect(error?.problems.first?.text.contains("lies inside the watched folder `cam`") == true)
    }
}
