import Core
import FoundationEssentials
import Linux
import TestKit

/// The expected state of everything when all promises are kept, and the differences from it.
struct Outcome {
    let fixture: DaemonFixture
    let clips: [Clip]

    /// Where the files are delivered.
    private var target: FilePath { isFolder ? fixture.archive : fixture.received }
    private var isFolder: Bool { fixture.uploadTo == ["archive"] }

    /// A cheap check for a loop: as many files are received as dropped, none is staged, and no source is left that
    /// should be gone.
    func looksDone() throws -> Bool {
        try Self.files(in: target, hidden: false).count >= clips.count
            && Self.files(in: fixture.staging, hidden: true).isEmpty
            && Self.files(in: fixture.drop, hidden: true).count == (fixture.source == .keep ? clips.count : 0)
    }

    /// Waits until ``looksDone()`` is true and the daemon reports no upload in progress.
    ///
    /// - Parameter limit: How long no further file may arrive. A loaded machine delivers many files slowly.
    func wait(within limit: Duration = .seconds(120)) async throws {
        var arrived = 0
        while true {
            do {
                return try await eventually("every file has been delivered", within: limit, every: .milliseconds(100)) {
                    try fixture.daemon?.requireRunning()
                    guard try looksDone() else { return false }
                    guard let status = try await fixture.status() else { return false }
                    return !status.starting && status.counts.ongoing == 0
                }
            } catch let overdue as Overdue {
                let now = try Self.files(in: target, hidden: false).count
                guard now > arrived else {
                    throw Failed(problems: ["\(overdue)"] + (try problems()), lastWords: fixture.lastWords())
                }
                arrived = now
            }
        }
    }

    /// Describes every broken promise; empty if there is none.
    func problems() throws -> [String] {
        // A folder contains nothing hidden once all is done; the receiver keeps its records.
        var problems = try compare(target, with: clips, "received", hidden: isFolder)
        problems += try compare(fixture.drop, with: fixture.source == .keep ? clips : [], "source", hidden: true)
        problems += try compare(fixture.done, with: fixture.source == .move ? clips : [], "moved", hidden: true)
        problems += try Self.files(in: fixture.staging, hidden: true).map { "still staged: \($0)" }
        return problems
    }

    /// Checks all promises and the daemon's own report.
    func check() async throws {
        var problems = try problems()
        if let counts = try await fixture.status()?.counts {
            let expected = Status.Counts(ongoing: 0, completed: clips.count, failed: 0, cancelled: 0)
            if counts != expected { problems.append("status says \(counts) and not \(expected)") }
        } else {
            problems.append("the daemon does not answer")
        }
        if !problems.isEmpty { throw Failed(problems: problems, lastWords: fixture.lastWords()) }
    }

    struct Failed: Error, CustomStringConvertible {
        let problems: [String]
        let lastWords: String
        var description: String {
            "\(problems.count) broken promises:\n\(problems.prefix(40).joined(separator: "\n"))\n\(lastWords)"
        }
    }

    /// Checks that each of `clips` is in `folder` once, under its name, with its content, and that nothing else is.
    private func compare(_ folder: FilePath, with clips: [Clip], _ what: String, hidden: Bool) throws -> [String] {
        var found = Set(try Self.files(in: folder, hidden: hidden))
        var problems: [String] = []
        for clip in clips {
            if found.remove(clip.relative) == nil {
                problems.append("\(what): missing \(clip.relative) (\(clip.size) bytes)")
            } else if try Files.read(folder.appending(clip.relative), limit: 1 << 30) != clip.content {
                problems.append("\(what): other content in \(clip.relative)")
            }
        }
        return problems + found.sorted().map { "\(what): unexpected \($0)" }
    }

    /// Paths of all files below `root`, in any order, relative to it.
    ///
    /// - Parameter hidden: Whether to include files below a name that begins with a dot, where the receiver keeps
    ///   unfinished uploads.
    static func files(in root: FilePath, hidden: Bool) throws -> [FilePath] {
        var found: [FilePath] = []
        var folders: [FilePath] = [""]
        while let folder = folders.popLast() {
            for name in try Files.names(in: root.appending(folder)) {
                if !hidden && name.bytes.first == UInt8(ascii: ".") { continue }
                let relative = folder.appending(name)
                // A file may disappear while the folder is read; then it counts as absent.
                guard let status = try FileStatus.ifPresent(at: root.appending(relative)) else { continue }
                if status.isDirectory { folders.append(relative) } else { found.append(relative) }
            }
        }
        return found
    }
}

/// The part of `sluice status --json` that these tests read.
struct Status: Decodable {
    struct Counts: Decodable, Equatable { var ongoing, completed, failed, cancelled: Int }
    var counts: Counts
    var starting: Bool
    var overflows: Int
    struct Folder: Decodable { var name, state: String }
    var folders: [Folder]
}

extension DaemonFixture {
    /// `nil` when the daemon does not answer (yet).
    func status() async throws -> Status? {
        guard let text = try await runVerb("status", ["--json"]) else { return nil }
        return try JSONDecoder().decode(Status.self, from: Data(text.utf8))
    }
}
