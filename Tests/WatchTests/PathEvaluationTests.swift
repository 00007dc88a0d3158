import Core
import Glibc
import Linux
import TestKit
import Testing

@testable import Watch

/// The reason why a file is left alone: the watcher's silent decision, explained for one path.
@Suite("Evaluation of paths")
struct PathEvaluationTests {
    let folder = TemporaryFolder()

    private func rule(_ name: String = "cam", at path: FilePath = "in", _ shape: (inout WatchRule) -> Void = { _ in })
        -> WatchRule
    {
        var rule = WatchRule(name: name, path: folder.path.appending(path))
        shape(&rule)
        return rule
    }

    private func standing(_ path: FilePath, _ rules: WatchRule...) -> PathEvaluation {
        PathEvaluation.of(folder.path.appending(path), rules: rules, in: SourceFolders(), now: SystemClocks().wall())
    }

    private func refused(_ path: FilePath, _ rules: WatchRule...) -> String? {
        let standing = PathEvaluation.of(
            folder.path.appending(path), rules: rules, in: SourceFolders(), now: SystemClocks().wall())
        if case .excluded(_, let reason) = standing { return reason }
        return nil
    }

    @Test("the first matching folder takes a path; a path in no folder is outside")
    func taken() throws {
        try folder.write("in/day/a.mp4", [1])
        let jpegs = rule("jpegs") { $0.include = ["*.jpg"] }
        #expect(standing("in/day/a.mp4", jpegs, rule()) == .accepted(folder: "cam"))
        #expect(standing("elsewhere/a.mp4", rule()) == .outside)
        #expect(standing("in", rule()) == .itself(folder: "cam"))
    }

    @Test("an excluded name names its pattern")
    func names() throws {
        try folder.write("in/a.mp4", [1])
        #expect(refused("in/a.mp4", rule { $0.exclude = ["b*", "a*"] }) == "is excluded by `exclude: a*`")
        #expect(
            refused("in/a.mp4", rule { $0.include = ["*.jpg", "*.mov"] })
                == "matches none of `include: [*.jpg, *.mov]`")
        #expect(refused("in/a.mp4.part", rule()) == "has the name of a hidden or temporary file (`*.part`)")
        #expect(refused("in/.hidden/a.mp4", rule())?.hasPrefix("is below .hidden") == true)
        #expect(
            refused("in/day/a.mp4", rule { $0.recursive = false })
                == "is in a subdirectory, and the folder is not recursive")
        #expect(refused("in/a.done", rule { $0.marker = MarkerName("{stem}.done") })?.hasPrefix("is a marker") == true)
    }

    @Test(
        "the nearest ignore file that decides is named; an unreadable one closes its subtree"
    )
    func ignores() throws {
        try folder.write("in/.sluiceignore", Array("*.mp4\n".utf8))
        try folder.write("in/day/.sluiceignore", Array("!kept.mp4\n".utf8))
        for name in ["in/a.mp4", "in/day/a.mp4", "in/day/kept.mp4"] { try folder.write(FilePath(name), [1]) }
        let file = folder.path.appending("in/.sluiceignore").display
        #expect(refused("in/day/a.mp4", rule()) == "is excluded by \(file)")
        #expect(standing("in/day/kept.mp4", rule()) == .accepted(folder: "cam"))
        try Files.makeFolders(folder.path.appending("in/shut/.sluiceignore"))
        try folder.write("in/shut/a.jpg", [1])
        #expect(refused("in/shut/a.jpg", rule())?.contains("cannot read") == true)
    }

    @Test("a path that is no file, missing, too small, or without its marker gives the reason")
    func files() throws {
        try folder.write("in/a.mp4", [1])
        #expect(makeLink(to: "a.mp4", at: folder.path.appending("in/link.mp4")))
        #expect(mkfifo(folder.path.appending("in/fifo.mp4").display, 0o600) == 0)
        #expect(refused("in/link.mp4", rule())?.hasPrefix("is not a regular file") == true)
        #expect(refused("in/fifo.mp4", rule())?.hasPrefix("is not a regular file") == true)
        #expect(refused("in/gone.mp4", rule()) == "does not exist")
        #expect(
            refused("in/a.mp4", rule { $0.limits.minSize = 2 }) == "is skipped: it has 1 B, less than min_size: 2 B")
        let young = refused("in/a.mp4", rule { $0.limits.minAge = .seconds(3600) })
        #expect(young?.hasPrefix("is too recent: `min_age: 1h`, for another 59m ") == true, "\(young ?? "")")
        let marker = folder.path.appending("in/a.mp4.ok").display
        #expect(
            refused("in/a.mp4", rule { $0.marker = MarkerName("{name}.ok") })
                == "waits for its marker \(marker): `settle.marker: \"{name}.ok\"`")
    }

    @Test("an absent folder and a path through a link are reported")
    func ways() throws {
        try folder.write("in/a.mp4", [1])
        #expect(
            refused("in/a.mp4", rule { $0.requirement = FolderRequirement(file: ".here") })?
                .hasPrefix("belongs to a folder that is absent: .here is missing") == true)
        try folder.write("other/b.mp4", [1])
        #expect(makeLink(to: "../other", at: folder.path.appending("in/way")))
        #expect(refused("in/way/b.mp4", rule())?.contains("a symbolic link") == true)
        // The folder itself may be a link.
        #expect(makeLink(to: "in", at: folder.path.appending("top")))
        #expect(standing("in/a.mp4", rule(at: "top")) == .accepted(folder: "cam"))
        for name: FilePath in ["in", "top"] { #expect(standing(name, rule(at: "top")) == .itself(folder: "cam")) }
        #expect(standing("top/a.mp4", rule(at: "top")) == .accepted(folder: "cam"))
    }
}
