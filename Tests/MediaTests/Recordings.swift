import Core
import Linux
import Media
import Synchronization
import TestKit

/// The files of `Tests/Fixtures/media`; its README says how each was made.
enum Recordings {
    static let whole = [
        "plain.mp4", "faststart.mp4", "fragmented.mp4", "rotated.mp4", "camera.mov", "keys.mov", "video.mkv",
        "video.webm", "video.ts", "video.m2ts", "video.avi", "picture.jpg", "camera.jpg", "local.jpg",
    ]

    static func read(_ name: String) throws -> [UInt8] {
        let folder = Repository.root.appending("Tests/Fixtures/media")
        return try Files.read(folder.appending(FilePath(name)))
    }
}

/// Bytes in place of a file, with a count of the reads.
final class FakeFile: Sendable {
    let size: Int64
    /// Pieces by their offsets; all other bytes are zero.
    private let content: [(at: Int64, bytes: [UInt8])]
    let asked = Mutex((times: 0, bytes: 0))

    init(_ bytes: [UInt8]) {
        size = Int64(bytes.count)
        content = [(0, bytes)]
    }

    init(size: Int64, _ content: [(Int64, [UInt8])]) {
        self.size = size
        self.content = content
    }

    var reader: HeaderReader {
        HeaderReader(size: size) { [self] offset, count in
            asked.withLock {
                $0.times += 1
                $0.bytes += count
            }
            let wanted = offset..<min(size, offset + Int64(count))
            var out = [UInt8](repeating: 0, count: wanted.count)
            for piece in content {
                let common = wanted.clamped(to: piece.at..<(piece.at + Int64(piece.bytes.count)))
                guard !common.isEmpty else { continue }
                let from = Int(common.lowerBound - piece.at)
                out.replaceSubrange(
                    Int(common.lowerBound - offset)..<Int(common.upperBound - offset),
                    with: piece.bytes[from..<(from + common.count)])
            }
            return out
        }
    }

    func verdict(named name: FilePath = "clip") throws -> Container.Verdict {
        try Container.verdict(of: reader, named: name)
    }

    func facts(named name: FilePath = "clip") throws -> MediaFacts { try MediaFactsReader.of(reader, named: name) }
}

extension Container.Verdict {
    var isWhole: Bool { if case .complete = self { true } else { false } }
    var isNotWhole: Bool { if case .incomplete = self { true } else { false } }
    var reason: String? { if case .incomplete(_, let reason) = self { reason } else { nil } }
}

/// A box with its size and its content.
func box(_ type: String, _ content: [UInt8] = []) -> [UInt8] { big(8 + content.count, 4) + Array(type.utf8) + content }

func chunk(_ type: String, _ content: [UInt8] = []) -> [UInt8] {
    Array(type.utf8) + little(content.count, 4) + content + (content.count % 2 == 1 ? [0] : [])
}

func list(_ form: String, _ content: [UInt8], as type: String = "LIST") -> [UInt8] {
    chunk(type, Array(form.utf8) + content)
}

func big(_ number: Int, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
}

func little(_ number: Int, _ count: Int) -> [UInt8] { big(number, count).reversed() }
