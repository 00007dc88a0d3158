import Core
import TestKit
import Testing

@testable import Config

@Suite("Folders whose path is a pattern")
struct PatternFolderTests {
    private static let anyCard = #"path: "/media/*/*/DCIM", require: {mount: "/media/*/*"}"#

    private func load(_ folders: String..., more: String = "", destinations: String = "") throws(ConfigErrors)
        -> LoadedSettings
    {
        let list = folders.enumerated().map { "  - {name: f\($0), \($1), upload_to: [nas]}\n" }.joined()
        return try read(
            "version: 1\n\(more)folders:\n\(list)destinations:\n  nas: {type: tus, url: \"https://nas.example/\"}\n"
                + destinations)
    }

    private func errors(_ body: () throws(ConfigErrors) -> LoadedSettings) -> [String] {
        do throws(ConfigErrors) {
            _ = try body()
            return []
        } catch { return error.problems.map { "\($0.key): \($0.text)" } }
    }

    private func card(_ name: String, at point: FilePath, isMounted: Bool = true) -> Card {
        Card(pattern: "f0", fileSystem: "uuid of \(name)", name: name, point: point, isMounted: isMounted)
    }

    @Test("a pattern is no folder by itself, and each card gets its settings with a name and a path of its own")
    func cards() throws {
        var settings = try load(
            Self.anyCard + ", priority: 7", "path: /srv/a",
            more: "hooks:\n  - {name: h, command: [/bin/true], folders: [f0]}\n"
        ).settings
        #expect(settings.folders.map(\.watch.name) == ["f1"] && settings.patternFolders.map(\.watch.name) == ["f0"])
        let two = [card("f0-A", at: "/media/x/A"), card("f0-B", at: "/media/x/B", isMounted: false)]
        // A second time changes nothing.
        for _ in 0..<2 {
            settings.add(cards: two)
            #expect(settings.folders.map(\.watch.name) == ["f1", "f0-A", "f0-B"])
            #expect(settings.folder(named: "f0-A")?.watch.path == "/media/x/A/DCIM")
            #expect(settings.folder(named: "f0-A")?.watch.requirement.mount == "/media/x/A")
            #expect(settings.folder(named: "f0-B")?.priority == 7)
            #expect(settings.presentFolders.map(\.watch.name) == ["f1", "f0-A"])
            #expect(settings.writtenFolders.map(\.watch.name) == ["f1", "f0"])
            #expect(settings.hooks.map(\.folders) == [["f0", "f0-A", "f0-B"]])
        }
        settings.add(cards: [])
        #expect(settings.folders.map(\.watch.name) == ["f1"])
    }

    @Test("leaving out what exists is warned about, since a card that is formatted counts as new")
    func existing() throws {
        let warnings = try load(Self.anyCard + ", existing: skip", "path: /srv/a, existing: skip").warnings
        #expect(warnings.map(\.key) == ["folders[0].existing"])
        #expect(warnings.first?.text.contains("formatted") == true)
    }

    @Test("a folder whose name may be that of a card is warned about")
    func names() throws {
        let other = "path: /srv/a, upload_to: [nas]"
        func warnings(_ name: String) throws -> [String] {
            try read(
                "version: 1\nfolders:\n  - {name: card, \(Self.anyCard), upload_to: [nas]}\n"
                    + "  - {name: \(name), \(other)}\n"
                    + "destinations:\n  nas: {type: tus, url: \"https://nas.example/\"}\n"
            ).warnings.map(\.key)
        }
        #expect(try warnings("card-EOS") == ["folders[1].name"])
        #expect(try warnings("cards").isEmpty && warnings("old-card-EOS").isEmpty)
    }

    @Test("rules of a pattern count before a card is there")
    func rules() throws {
        let settings = try load(
            Self.anyCard + #", networks: [{interface: "wlan*", metered: true}], before_upload: {command: [/bin/true]}"#
        ).settings
        #expect(settings.allRules.contains { !$0.networks.isEmpty })
        #expect(settings.networkRules.map(\.place) == ["folder f0"])
        #expect(settings.hasBeforeUploadRules)
    }

    @Test(
        "a wildcard needs the mount points that it stands for, and `/` says that it is none",
        arguments: [
            (#"path: "/media/*/DCIM""#, "f"), (#"path: "/media/card?", require: {file: x}"#, "f"),
            (#"path: "/media/*/DCIM", require: {mount: /}"#, ""),
            (#"path: "/media/*/DCIM", require: {mount: "/media/*"}"#, ""),
            (#"path: "/media/*", require: {mount: "/media/*"}"#, ""),
        ])
    func needed(keys: String, isWrong: String) {
        let found = errors { () throws(ConfigErrors) in try load(keys) }
        #expect(found.isEmpty == isWrong.isEmpty, "\(found)")
        for text in found { #expect(text.hasPrefix("folders[0].path: ") && text.contains("require: {mount: …}")) }
    }

    @Test(
        "patterns that cannot be meant are refused",
        arguments: [
            (#"path: "/media/*/100*", require: {mount: "/media/*"}"#, "below the mount point"),
            (#"path: "/media/**/DCIM", require: {mount: "/media/**"}"#, "contains `**`"),
            (#"path: "/media/a/DCIM", require: {mount: "/media/*"}"#, "does not lie below"),
            (Self.anyCard + ", concurrency: 2", "would hold for each card alone"),
            (Self.anyCard + ", bandwidth: 2 MB/s", "would hold for each card alone"),
            (Self.anyCard + ", quotas: [{per: day, bytes: 1 GB}]", "would hold for each card alone"),
        ])
    func refused(keys: String, text: String) {
        let found = errors { () throws(ConfigErrors) in try load(keys) }
        #expect(found.count == 1 && found[0].contains(text), "\(found)")
    }

    @Test(
        "nothing may be written where a card's folder could be",
        arguments: [
            "state: /media/a/b/DCIM/state\n", "staging: {path: /media/a/b/DCIM}\n",
            "metrics: {textfile: /media/a/b/DCIM/x.prom}\n",
        ])
    func outputs(more: String) {
        let found = errors { () throws(ConfigErrors) in try load(Self.anyCard, more: more) }
        #expect(!found.isEmpty && found.allSatisfy { $0.contains("stands for") || $0.contains("staging") }, "\(found)")
    }

    @Test("a destination and the target of a move may be on a card, beside its folder")
    func targets() {
        func destination(_ path: String) -> [String] {
            errors { () throws(ConfigErrors) in
                try load(Self.anyCard, destinations: "  disk: {type: directory, path: \(path)}\n")
            }
        }
        #expect(destination("/media/a/b/DCIM/x").first?.hasPrefix("destinations.disk.path: ") == true)
        #expect(destination("/media/a/b/backup").isEmpty)
        func move(_ to: String) -> [String] {
            errors { () throws(ConfigErrors) in
                try load(Self.anyCard + #", after_upload: {source: move, to: "\#(to)"}"#)
            }
        }
        #expect(move("/media/a/b/DCIM/{name}").first?.hasPrefix("folders[0].after_upload.to: ") == true)
        #expect(move("/srv/done/{name}").isEmpty)
    }

    @Test(
        "no other folder may take the same files",
        arguments: [
            (#"path: /media/a/b/DCIM"#, false), (#"path: /media/a/b"#, false), (#"path: /media/a/b/DCIM/100"#, false),
            (#"path: /media/a/b/other"#, true), (#"path: /media/camera"#, false), ("path: /srv/camera", true),
            (#"path: "/media/*/card/DCIM", require: {mount: "/media/*/card"}"#, false),
            (#"path: "/media/*/*/PRIVATE", require: {mount: "/media/*/*"}"#, true),
            (#"path: "/run/media/*/*/DCIM", require: {mount: "/run/media/*/*"}"#, true),
        ])
    func others(keys: String, isRight: Bool) {
        let found = errors { () throws(ConfigErrors) in try load(Self.anyCard, keys) }
        #expect(found.isEmpty == isRight, "\(found)")
    }

    @Test("two folders may share the cards if their files are different ones")
    func shared() {
        let (videos, pictures) = (#", include: ["*.mp4"]"#, #", include: ["*.jpg"]"#)
        #expect(errors { () throws(ConfigErrors) in try load(Self.anyCard + videos, Self.anyCard + pictures) }.isEmpty)
        #expect(errors { () throws(ConfigErrors) in try load(Self.anyCard + videos, Self.anyCard + videos) }.count == 1)
    }
}
