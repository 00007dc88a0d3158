import Core
import Linux
import TestKit

/// A file that a test makes. Its content follows from its number and size, so nothing has to be stored.
struct Clip: Hashable, Sendable {
    let number: Int
    let size: Int
    /// Below the drop folder.
    let relative: FilePath

    /// Numbered clips with sizes from one byte to some megabytes and the names that cameras, phones and people give.
    init(number: Int, dice: inout Dice) {
        let sizes = [1, 17, 4095, 4096, 65_536, 65_537, 200_000, 300_001, 1 << 20, (1 << 20) + 1]
        self.number = number
        size =
            number % 23 == 7
            ? Int.random(in: 2_000_000...5_000_000, using: &dice) : sizes.randomElement(using: &dice) ?? 1
        relative = Self.name(number)
    }

    init(number: Int, size: Int, relative: FilePath) {
        self.number = number
        self.size = size
        self.relative = relative
    }

    var content: [UInt8] {
        var bytes = withUnsafeBytes(of: UInt64(number).littleEndian) { Array($0) }
        bytes.reserveCapacity(size + Self.block.count)
        // Each file reads the same block from a different start, so that no two have equal content at the same offset.
        let start = number &* 7919 % Self.block.count
        bytes += Self.block[start...]
        while bytes.count < size { bytes += Self.block }
        return Array(bytes.prefix(size))
    }

    private static let block = noise(64 << 10, seed: 20_261_120)

    /// Hidden names and those of unfinished files (`.part`, `.tmp`) are left out: they are not to be uploaded.
    private static func name(_ number: Int) -> FilePath {
        let n = "\(number)"
        let names: [FilePath] = [
            FilePath("clip-\(n).mp4"), FilePath("two  spaces \(n).mp4"), FilePath("-rf \(n)"),
            FilePath("line\nbreak \(n).mp4"), FilePath(bytes: [0xFF, 0xFE, 0x2D] + Array(n.utf8) + [0xC3]),
            FilePath("Tür 日本 \(n).mov"), FilePath("e\u{301}-\(n).mp4"), FilePath("é-\(n).mp4"),
            FilePath(String(repeating: "long ", count: 44) + n + ".mkv"), FilePath("tab\t\(n)\r.mp4"),
            FilePath("quotes '\"`$(\(n)).mp4"), FilePath("back\\slash \(n)"), FilePath("*?[\(n)].mp4"),
            FilePath("day \(n)/cam\n1/clip.mp4"), FilePath("%2e%2e%2f\(n).mp4"), FilePath("a..b#c?d=e&f;\(n).mp4"),
            FilePath("🎬 \(n)."), FilePath("{name} \(n).mp4"), FilePath("sub/\(n).MP4"), FilePath(n),
        ]
        return names[number % names.count]
    }
}

/// Puts clips into a fixture's drop folder in the ways that files arrive.
final class Camera {
    private let fixture: DaemonFixture
    private var dice: Dice
    /// Whether it syncs each clip and its folder, so that a power cut cannot remove a dropped file. In that case no
    /// file is written slowly.
    private let isDurable: Bool
    /// Clips that are being written slowly, with the rest of their content.
    private var open: [SlowFile] = []
    private(set) var clips: [Clip] = []

    private final class SlowFile {
        let file: Descriptor
        let path: FilePath
        let rest: [UInt8]
        init(_ file: consuming Descriptor, _ path: FilePath, rest: [UInt8]) {
            self.file = file
            self.path = path
            self.rest = rest
        }
    }

    init(_ fixture: DaemonFixture, dice: Dice, isDurable: Bool = false) {
        self.fixture = fixture
        self.dice = dice
        self.isDurable = isDurable
    }

    /// Finishes half-written clips, then drops `count` more, some of which stay half written until the next call.
    func drop(_ count: Int) throws {
        try finish()
        for _ in 0..<count {
            let clip = Clip(number: clips.count, dice: &dice)
            clips.append(clip)
            let target = fixture.drop.appending(clip.relative)
            try Files.makeFolders(target.parent, durably: isDurable)
            switch Int.random(in: 0..<(isDurable ? 2 : 3), using: &dice) {
            case 0: try rename(clip, to: target)
            case 1:
                try write(clip.content, to: target)
                if isDurable { try Files.syncFolder(target.parent) }
            default:
                let content = clip.content
                let file = try Descriptor.open(target, for: .creating)
                try file.write(Array(content.prefix(content.count / 3)), named: target)
                open.append(SlowFile(file, target, rest: Array(content.dropFirst(content.count / 3))))
            }
        }
    }

    /// Drops one complete clip, by a rename that replaces any file with its name.
    func drop(_ clip: Clip) throws {
        clips.append(clip)
        let target = fixture.drop.appending(clip.relative)
        try Files.makeFolders(target.parent, durably: isDurable)
        try rename(clip, to: target)
    }

    /// Writes the rest of every half-written clip and closes it.
    func finish() throws {
        for slow in open { try slow.file.write(slow.rest, named: slow.path) }
        open = []
    }

    private func rename(_ clip: Clip, to target: FilePath) throws {
        let waiting = fixture.beside.appending(FilePath("\(clip.number)"))
        try write(clip.content, to: waiting)
        try Files.rename(waiting, to: target)
        if isDurable { try Files.syncFolder(target.parent) }
    }

    private func write(_ content: [UInt8], to path: FilePath) throws {
        let file = try Descriptor.open(path, for: .creating)
        try file.write(content, named: path)
        if isDurable { try file.sync(named: path) }
        try file.close(named: path)
    }
}
