import Core
import Digests
import Glibc
import Linux
import Staging
import Synchronization
import TestKit
import Testing

/// A program that can write in a watched folder, against the handling of sources there.
@Suite("Access to sources through their folder")
struct ConfinementTests {
    let temporary = TemporaryFolder()
    let content = noise(20_000)

    /// `drop/sub/a.mp4` in a configured folder, and another user's file with the same content, size and times.
    private func scene() throws -> (source: SourceFile, victim: FilePath) {
        let path = try temporary.write("drop/sub/a.mp4", content)
        let victim = try temporary.write("victim/a.mp4", content)
        let status = try FileStatus(at: path)
        try Descriptor.open(victim, for: .reading).setModified(status.modified, named: victim)
        let folder = SourceFolders()[temporary.path.appending("drop")]
        return (SourceFile(folder: folder, relative: "sub/a.mp4"), victim)
    }

    /// Makes no directory on the way, as the attacker's would be gone then.
    private func put(_ path: FilePath) throws {
        let file = try Descriptor.open(path, for: .creating)
        try file.write(content, named: path)
        try file.close(named: path)
    }

    private func swapForLink() throws {
        let sub = temporary.path.appending("drop/sub")
        try Files.rename(sub, to: temporary.path.appending("drop/kept"))
        try Files.makeLink(sub, to: "../victim")
    }

    private func identity(_ source: SourceFile) throws -> SourceRelease.AssetIdentity {
        let status = try source.status()
        return SourceRelease.AssetIdentity(
            id: 42, source: source, size: status.size, modified: status.modified, inode: nil, changed: status.changed,
            sha256: Hasher.digest(.sha256, of: content))
    }

    @Test("a release does not follow a directory that became a link: no file behind it is renamed, moved or deleted")
    func release() throws {
        let (source, victim) = try scene()
        let staged = try identity(source)
        try swapForLink()
        let acts: [SourceRelease.Act] = [
            .delete, .move(to: MoveTarget(temporary.path.appending("done/a.mp4"))),
        ]
        for act in acts {
            let error = #expect(throws: SystemError.self) { try SourceRelease(staged, act).run() }
            #expect(error?.isLink == true)
        }
        #expect(try Files.read(victim) == content)
        #expect(try Files.names(in: victim.parent) == ["a.mp4"])
    }

    @Test("no file is copied or digested through such a link")
    func copy() throws {
        let (source, _) = try scene()
        let status = try source.status()
        let stored = FileIdentity(status, folder: "cam", relative: source.relative, on: nil)
        try swapForLink()
        let area = StagingArea(folder: temporary.path.appending("staging"))
        try area.prepare()
        let wanted = CopyRequest(source, stored, changed: status.changed)
        #expect(throws: StagingError.self) { try area.copy(wanted, as: "1") }
        #expect(throws: StagingError.self) { _ = try area.digestInPlace(wanted) }
        #expect(throws: SystemError.self) { try contentDigest(of: source) }
        #expect(try Files.names(in: area.folder) == [])
    }

    @Test("while a directory is swapped for a link repeatedly, only the staged source is ever released")
    func race() async throws {
        let (_, victim) = try scene()
        let isOver = Mutex(false)
        let swaps = Atomic(0)
        let tries = Atomic(0)
        let drop = temporary.path.appending("drop")
        // On a thread of its own: a loop that never suspends would take a thread of the pool from all other tests.
        async let attack: Void = onLongThread(named: "attacker") {
            while !isOver.withLock({ $0 }) {
                let sub = drop.appending("sub")
                // Each may fail while the release has the file: that is the race.
                try? Files.rename(sub, to: drop.appending("kept"))
                try? Files.makeLink(sub, to: "../victim")
                try? Files.remove(sub)
                try? Files.rename(drop.appending("kept"), to: sub)
                let done = swaps.add(1, ordering: .relaxed).newValue
                guard done % 50 == 0 else { continue }
                // Two whole tries meet the directory: on a busy machine none may fall between two swaps.
                let until = tries.load(ordering: .relaxed) + 3
                while tries.load(ordering: .relaxed) < until, !isOver.withLock({ $0 }) { sched_yield() }
            }
        }
        try await eventually("the swaps have begun") { swaps.load(ordering: .relaxed) > 0 }
        let folder = SourceFolders()[drop]
        var released = 0
        // Counted in swaps: while the attacker's thread waits for a core, any number of tries may meet the link.
        while true {
            let swapped = swaps.load(ordering: .relaxed)
            guard swapped < 1_000 || (released < 10 && swapped < 50_000) else { break }
            let attempt = tries.add(1, ordering: .relaxed).newValue
            let source = SourceFile(folder: folder, relative: FilePath("sub/\(attempt % 5)"))
            let staged = try? identity(source)
            // The file is created while the original directory is in place, or not at all.
            if staged == nil { try? put(drop.appending(source.relative)) }
            guard let staged = try? identity(source) else { continue }
            if case .released? = try? SourceRelease(staged, .delete).run() { released += 1 }
            guard try Files.read(victim) == content else {
                Issue.record("the victim's file was removed or changed")
                break
            }
            let names = try Files.names(in: victim.parent).filter { !($0.text?.allSatisfy(\.isNumber) ?? false) }
            #expect(names == ["a.mp4"], "\(names)")
        }
        isOver.withLock { $0 = true }
        try await attack
        #expect(
            released >= 10,
            "\(released) released in \(tries.load(ordering: .relaxed)) tries, \(swaps.load(ordering: .relaxed)) swaps")
    }

    @Test("the path that the template makes below a move's target follows no link either")
    func target() throws {
        let (source, victim) = try scene()
        let done = temporary.path.appending("done")
        try Files.makeFolders(done)
        try Files.makeLink(done.appending("2026"), to: "../victim")
        let target = MoveTarget(base: done, relative: "2026/b.mp4")
        let error = #expect(throws: SystemError.self) {
            try SourceRelease(try identity(source), .move(to: target)).run()
        }
        #expect(error?.isLink == true)
        #expect(error?.description.contains("done/2026: a symbolic link") == true, "\(String(describing: error))")
        #expect(try Files.names(in: victim.parent) == ["a.mp4"])
        #expect(try source.status().size == content.count)
    }

    @Test(
        "a crash remnant in a move's target gets its name if it is the source, and is given back if not",
        arguments: [true, false], [true, false])
    func left(isSource: Bool, hasNewcomer: Bool) throws {
        let (source, _) = try scene()
        let staged = try identity(source)
        let done = temporary.path.appending("done")
        try Files.makeFolders(done.appending("2026"))
        let waiting = done.appending(FilePath("2026/.sluice-move-42-\(SourceRelease.token)"))
        let other = noise(30)
        if isSource {
            try Files.rename(source.path.shown, to: waiting)
        } else {
            try Files.removeIfPresent(source.path.shown)
            try Files.replace(waiting, with: other)
        }
        if hasNewcomer { try Files.replace(source.path.shown, with: [1, 2, 3]) }
        let result = try SourceRelease(staged, .move(to: MoveTarget(base: done, relative: "2026/b.mp4"))).run()
        let names = Set(try Files.names(in: temporary.path.appending("drop/sub")))
        if isSource {
            #expect(result == .released(note: "moved to \(done.appending("2026/b.mp4").display)"))
            #expect(try Files.read(done.appending("2026/b.mp4")) == content)
            #expect(names == (hasNewcomer ? ["a.mp4"] : []))
        } else {
            guard case .kept(let why) = result else {
                Issue.record("the source is not kept: \(result)")
                return
            }
            #expect(why.contains("another file took its place"))
            #expect(names == (hasNewcomer ? ["a.mp4", "a (2).mp4"] : ["a.mp4"]))
            #expect(
                try Files.read(temporary.path.appending(hasNewcomer ? "drop/sub/a (2).mp4" : "drop/sub/a.mp4")) == other
            )
            #expect(try Files.names(in: done.appending("2026")).isEmpty)
        }
        #expect(try FileStatus.ifPresent(at: waiting) == nil)
    }

    @Test("a hidden name planted by others blocks no release, and is not touched")
    func planted() throws {
        let (source, _) = try scene()
        for name in [".sluice-release-42", ".sluice-release-42-00000000deadbeef"] as [FilePath] {
            try temporary.write(FilePath("drop/sub").appending(name), [6])
        }
        guard case .released = try SourceRelease(try identity(source), .delete).run() else {
            Issue.record("the source is not released")
            return
        }
        let names = Set(try Files.names(in: temporary.path.appending("drop/sub")))
        #expect(names == [".sluice-release-42", ".sluice-release-42-00000000deadbeef"])
    }

    @Test(
        "a command of `export` reads the evaluated file under its own name, whatever replaces its path meanwhile")
    func export() throws {
        let (source, victim) = try scene()
        try Files.replace(victim, with: noise(10))
        let status = try source.status()
        let stored = FileIdentity(status, folder: "cam", relative: source.relative, on: nil)
        let area = StagingArea(folder: temporary.path.appending("staging"))
        try area.prepare()
        let sub = temporary.path.appending("drop/sub").display
        // The command itself makes the swap, so that it comes before the read.
        let script =
            #"mv "$3" "$3.away"; ln -s ../victim "$3"; basename "$1" >&2; cat "$1" > "$2"; rm "$3"; mv "$3.away" "$3""#
        let export = Export(
            command: try CommandWords(["sh", "-c", script, "sh", "{input}", "{output}", sub]), output: "a.out",
            timeout: .seconds(20), minSize: 1, folder: "cam", relative: source.relative)
        let made = try area.export(
            CopyRequest(source, stored, changed: status.changed), as: "1", export, digestsSource: false)
        #expect(made.copy.sha256 == Hasher.digest(.sha256, of: content))
    }

    @Test(
        "a copy across file systems keeps mode and times without set-id bits",
        .enabled(if: SmallDisk.isPossible, "mounting takes root: run the tests as root"))
    func access() throws {
        let (source, _) = try scene()
        let path = source.path.shown
        try Descriptor.open(path, for: .reading).setMode(0o6751, named: path)
        let disk = try SmallDisk()
        let staged = try identity(source)
        guard
            case .released(_, let isCopied) = try SourceRelease(
                staged, .move(to: MoveTarget(base: disk.path, relative: "x/a.mp4"))
            ).run()
        else {
            Issue.record("the source is not released")
            return
        }
        #expect(isCopied)
        let moved = try FileStatus(at: disk.path.appending("x/a.mp4"))
        #expect(moved.mode & 0o7777 == 0o751 && moved.modified == staged.modified)
    }

    @Test(
        "a copy of a file with an ACL gives its group no more access than it had",
        .enabled(if: SmallDisk.isPossible, "mounting takes root: run the tests as root"))
    func accessList() throws {
        let (source, _) = try scene()
        let path = source.path.shown
        // Its user and user 3005 may read and write, its group nothing, the mask is both, all others nothing (acl(5)).
        func entry(_ kind: UInt8, _ rights: UInt8, _ number: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF]) -> [UInt8] {
            [kind, 0, rights, 0] + number
        }
        let list =
            [2, 0, 0, 0] + entry(1, 6) + entry(2, 6, [0xBD, 0x0B, 0, 0]) + entry(4, 0) + entry(0x10, 6) + entry(0x20, 0)
        let file = try Descriptor.open(path, for: .reading)
        try file.setAttribute("system.posix_acl_access", to: list, named: path)
        let disk = try SmallDisk()
        guard
            case .released = try SourceRelease(
                try identity(source), .move(to: MoveTarget(base: disk.path, relative: "x/a.mp4"))
            ).run()
        else {
            Issue.record("the source is not released")
            return
        }
        let moved = disk.path.appending("x/a.mp4")
        let kept = try Descriptor.open(moved, for: .reading).attribute("system.posix_acl_access", named: moved)
        let group = try FileStatus(at: moved).mode & 0o070
        #expect(kept == list || kept == nil && group == 0, "\(String(describing: kept))")
    }
}
