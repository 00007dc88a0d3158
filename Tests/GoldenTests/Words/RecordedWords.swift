import Core
import Glibc
import Linux
import TestKit
import Testing

/// A text of public words that the repository keeps: a word in it changes only when the file is recorded again.
enum RecordedWords {
    static let folder = Repository.root.appending("Tests/Fixtures/golden/words")

    /// The environment variable with which a run writes files instead of comparing them.
    enum Switch: String {
        case words = "SLUICE_RECORD"
        /// What is shown of the recorded state has a switch of its own: a run that records changed words must not
        /// accept a change of what an old state means.
        case shown = "SLUICE_RECORD_SHOWN"

        var isOn: Bool { getenv(rawValue) != nil }
        var command: String { "\(rawValue)=1 swift test --filter GoldenTests" }
    }

    /// Compares `lines` with the file, and reports each line that is missing or new.
    static func expect(
        _ file: String, _ lines: [String], by recording: Switch = .words,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let path = folder.appending(FilePath(file))
        if recording.isOn {
            try Files.makeFolders(folder, mode: 0o755)
            try Files.replace(path, with: Array((lines.joined(separator: "\n") + "\n").utf8))
            return
        }
        guard try FileStatus.ifPresent(at: path) != nil else {
            Issue.record("\(path) is missing; record it: \(recording.command)", sourceLocation: sourceLocation)
            return
        }
        var kept = String(decoding: try Files.read(path, limit: 1 << 20), as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        if kept.last?.isEmpty == true { kept.removeLast() }
        if kept == lines { return }
        Issue.record(
            """
            \(path) differs from the program:
            \(difference(from: kept, to: lines))
            If this change of public words is intended, record it: \(recording.command)
            """, sourceLocation: sourceLocation)
    }

    /// Lines with `-` are in the file only, lines with `+` are in the program only; each has its number.
    static func difference(from kept: [String], to lines: [String]) -> String {
        let changes = lines.difference(from: kept).map { change in
            switch change {
            case .remove(let offset, let line, _): (offset: offset, isNew: 0, text: "- \(offset + 1): \(line)")
            case .insert(let offset, let line, _): (offset: offset, isNew: 1, text: "+ \(offset + 1): \(line)")
            }
        }
        return changes.sorted { ($0.offset, $0.isNew) < ($1.offset, $1.isNew) }.map(\.text).joined(separator: "\n")
    }
}
