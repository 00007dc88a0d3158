import Core
import Glibc
import Linux
import TestKit
import Testing
import Watch

/// Every way in which programs put a file into a folder, on real file systems: the files that settle, and their
/// content.
@Suite("Writers", .serialized, .timeLimit(.minutes(Patience.minutes(5))))
struct WriterTests {
    /// One watched volume.
    struct Place: Sendable {
        let kind: Volume.Kind
        let watcher: Watcher
        let scene: Scene
        /// The watched directory, another one on the same volume, and one elsewhere.
        let watched: FilePath
        let outside: FilePath
        let elsewhere: FilePath

        /// Waits until the watcher has found a writer of the file: it does not take the file before the writer is done.
        func seesWriter(of name: FilePath) async throws {
            try await eventually("the watcher has noticed a writer of \(name)") {
                watcher.settlingFiles().contains { $0.path == watched.appending(name) && $0.isBusy }
            }
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        /// The name of the one file that must come.
        var file: FilePath { FilePath(name.replacing(" ", with: "-") + ".mp4") }
        /// The number of times that it comes: twice where it is finished twice.
        var times = 1
        /// Writes, and returns the expected content of the file.
        let write: @Sendable (Place, FilePath) async throws -> [UInt8]?
        var testDescription: String { name }
    }

    private static let body = noise(60_000, seed: 5)
    private static let more = noise(30_000, seed: 6)

    static let rows: [Row] = [
        Row(name: "written and closed") { place, file in
            try put(place.watched.appending(file), body)
            return body
        },
        Row(name: "temporary name and rename") { place, file in
            let hidden = place.watched.appending(FilePath(".\(file.display).a1b2c3"))
            try put(hidden, body)
            try Files.rename(hidden, to: place.watched.appending(file))
            return body
        },
        Row(name: "moved in from the same disk") { place, file in
            try put(place.outside.appending(file), body)
            try Files.rename(place.outside.appending(file), to: place.watched.appending(file))
            return body
        },
        Row(name: "temporary name hard link and unlink") { place, file in
            let hidden = place.watched.appending(".upload-1")
            try put(hidden, body)
            try hardLink(hidden, place.watched.appending(file))
            try Files.remove(hidden)
            return body
        },
        Row(name: "hard link from outside") { place, file in
            try put(place.outside.appending(file), body)
            try hardLink(place.outside.appending(file), place.watched.appending(file))
            return body
        },
        Row(name: "nameless and linked") { place, file in
            let flags = O_WRONLY | 0o20000000 | O_DIRECTORY
            let number = place.watched.withCString { open($0, flags, 0o600) }
            // Not every kernel's overlay supports files without a name.
            if number < 0, errno == EOPNOTSUPP { return nil }
            let nameless = Descriptor(adopting: number)
            try nameless.write(body, named: file)
            try systemCall("linkat", on: file.display) {
                "/proc/self/fd/\(number)".withCString { from in
                    place.watched.appending(file).withCString {
                        linkat(AT_FDCWD, from, AT_FDCWD, $0, AT_SYMLINK_FOLLOW)
                    }
                }
            }
            try nameless.close(named: file)
            return body
        },
        Row(name: "hard link while the writer has it open") { place, file in
            let hidden = place.watched.appending(".upload-2")
            let open = try Descriptor.open(hidden, for: .creating)
            try open.write(body, named: hidden)
            try hardLink(hidden, place.watched.appending(file))
            try Files.remove(hidden)
            try await place.seesWriter(of: file)
            try open.write(more, named: hidden)
            try open.close(named: hidden)
            return body + more
        },
        Row(name: "renamed while the writer has it open") { place, file in
            let hidden = place.watched.appending(".upload-3")
            let open = try Descriptor.open(hidden, for: .creating)
            try open.write(body, named: hidden)
            try Files.rename(hidden, to: place.watched.appending(file))
            try await place.seesWriter(of: file)
            try open.write(more, named: hidden)
            try open.close(named: hidden)
            return body + more
        },
        Row(name: "two writers") { place, file in
            let path = place.watched.appending(file)
            let first = try Descriptor.open(path, for: .creating)
            let second = try Descriptor.open(path, for: .updating)
            try first.write(body, named: path)
            try first.close(named: path)
            try await place.seesWriter(of: file)
            _ = more.withUnsafeBytes { second.write($0, at: Int64(body.count), named: path) }
            try second.close(named: path)
            return body + more
        },
        Row(name: "a duplicate of the descriptor") { place, file in
            let path = place.watched.appending(file)
            let first = try Descriptor.open(path, for: .creating)
            let second = Descriptor(
                adopting: try first.withNumber { number in try systemCall("dup", on: "") { dup(number) } })
            try first.write(body, named: path)
            try first.close(named: path)
            try await place.seesWriter(of: file)
            try second.write(more, named: path)
            try second.close(named: path)
            return body + more
        },
        Row(name: "mapped memory after the close") { place, file in
            // There the mapping belongs to the lower file, and the kernel grants a lease on the visible one.
            if place.kind == .overlay { return nil }
            let path = place.watched.appending(file)
            let open = try Descriptor.open(path, for: .creating)
            try open.setSize(Int64(body.count), named: path)
            let memory = try #require(
                open.withNumber { mmap(nil, body.count, PROT_READ | PROT_WRITE, MAP_SHARED, $0, 0) })
            try #require(memory != MAP_FAILED)
            try open.close(named: path)
            try await place.seesWriter(of: file)
            body.withUnsafeBytes {
                memory.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(memory), byteCount: body.count)
            }
            munmap(memory, body.count)
            return body
        },
        Row(name: "opened for writing and left as it is", times: 1) { place, file in
            let path = place.watched.appending(file)
            try put(path, body)
            try Descriptor.open(path, for: .updating).close(named: path)
            return body
        },
        Row(name: "cut by its path") { place, file in
            let path = place.watched.appending(file)
            let open = try Descriptor.open(path, for: .creating)
            try open.write(body, named: path)
            try await place.seesWriter(of: file)
            try systemCall("truncate", on: path.display) { path.withCString { truncate($0, 1000) } }
            try open.close(named: path)
            return Array(body[..<1000])
        },
        Row(name: "preallocated") { place, file in
            let path = place.watched.appending(file)
            let open = try Descriptor.open(path, for: .creating)
            try #require(open.withNumber { posix_fallocate($0, 0, body.count) } == 0)
            try await place.seesWriter(of: file)
            try open.write(body, named: path)
            try open.close(named: path)
            return body
        },
        Row(name: "copied by the kernel") { place, file in
            let source = place.outside.appending(file)
            try put(source, body)
            let path = place.watched.appending(file)
            let from = try Descriptor.open(source, for: .reading)
            let to = try Descriptor.open(path, for: .creating)
            var left = body.count
            while left > 0 {
                let got = try copyRange(from, to, left, named: path)
                if got == 0 { break }
                left -= got
            }
            #expect(left == 0)
            try to.close(named: path)
            return body
        },
        Row(name: "written through a hard link elsewhere", times: 2) { place, file in
            let path = place.watched.appending(file)
            try put(path, body)
            try await place.scene.wait("the first version has settled") { $0.settled.contains { $0.relative == file } }
            let other = place.outside.appending(file)
            try hardLink(path, other)
            let open = try Descriptor.open(other, for: .updating)
            _ = more.withUnsafeBytes { open.write($0, at: Int64(body.count), named: other) }
            try open.close(named: other)
            // No event reports the change: a scan finds it.
            place.watcher.rescan()
            return body + more
        },
        Row(name: "written through a bind mount") { place, file in
            let seen = place.elsewhere.appending("seen")
            try Files.makeFolders(seen)
            let mount = try BindMount(of: place.watched, at: seen)
            try put(seen.appending(file), body)
            withExtendedLifetime(mount) {}
            return body
        },
        Row(name: "rewritten at its head in the end") { place, file in
            let path = place.watched.appending(file)
            let open = try Descriptor.open(path, for: .creating)
            try open.write(body, named: path)
            try await place.seesWriter(of: file)
            _ = more.withUnsafeBytes { open.write($0, at: 0, named: path) }
            try open.close(named: path)
            return more + body[more.count...]
        },
        Row(name: "a pause longer than the quiet time") { place, file in
            let path = place.watched.appending(file)
            let open = try Descriptor.open(path, for: .creating)
            try open.write(body, named: path)
            try await eventually("the file has counted as open longer than any quiet time") {
                place.watcher.settlingFiles().contains {
                    $0.path == path && $0.isBusy && SystemClocks().monotonic().since($0.since) > .milliseconds(400)
                }
            }
            try open.write(more, named: path)
            try open.close(named: path)
            return body + more
        },
        Row(name: "times in the past") { place, file in
            let path = place.watched.appending(file)
            let open = try Descriptor.open(path, for: .creating)
            try open.write(body, named: path)
            try open.setModified(1_000_000_000, named: path)
            try open.close(named: path)
            return body
        },
        Row(name: "times in the future") { place, file in
            let path = place.watched.appending(file)
            let open = try Descriptor.open(path, for: .creating)
            try open.write(body, named: path)
            try open.setModified(4_000_000_000_000_000_000, named: path)
            try open.close(named: path)
            return body
        },
        Row(name: "sparse and larger than 5 GiB") { place, file in
            let path = place.watched.appending(file)
            let open = try Descriptor.open(path, for: .creating)
            try open.setSize(5 << 30, named: path)
            _ = body.withUnsafeBytes { open.write($0, at: 0, named: path) }
            try open.close(named: path)
            return body
        },
    ]

    @Test(
        "each way of writing delivers the file once, complete, and not too early",
        .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value }, arguments: Volume.Kind.allCases)
    func table(_ kind: Volume.Kind) async throws {
        let volume = try await Volume(kind) { lower in
            try Files.makeFolders(lower.appending("in"))
            try Self.put(lower.appending("in/below.mp4"), Self.body)
        }
        let elsewhere = TemporaryFolder()
        let (watched, outside) = (volume.path.appending("in"), volume.path.appending("out"))
        for folder in [watched, outside] { try Files.makeFolders(folder) }
        let scene = Scene()
        try await scene.watch([WatchRule(name: "cam", path: watched)]) { watcher in
            let place = Place(
                kind: kind, watcher: watcher, scene: scene, watched: watched, outside: outside,
                elsewhere: elsewhere.path)
            if kind == .overlay {
                try await scene.settled("below.mp4")
                try await Self.copyUp(place)
                try await scene.settled("below.mp4", "below.mp4")
                #expect(scene.reports.settled.last?.status.size == Int64(Self.body.count + Self.more.count))
            }
            for row in Self.rows {
                let content: [UInt8]?
                do { content = try await row.write(place, row.file) } catch {
                    Issue.record("\(row.name): \(error)")
                    continue
                }
                guard let content else { continue }
                try await scene.wait("\(row.name): the file has settled \(row.times) times") { reports in
                    reports.settled.count { $0.relative == row.file } >= row.times
                }
                try Self.check(row, content, scene, watched)
            }
            // A file that was delivered too early has been delivered again by now.
            try Self.put(watched.appending("last.mp4"), [1])
            try await scene.wait("the last file has settled") { $0.settled.contains { $0.relative == "last.mp4" } }
            for row in Self.rows {
                #expect(scene.reports.settled.count { $0.relative == row.file } <= row.times, "\(row.name)")
            }
        }
    }

    private static func check(_ row: Row, _ content: [UInt8], _ scene: Scene, _ watched: FilePath) throws {
        let path = watched.appending(row.file)
        let settled = try #require(scene.reports.settled.last { $0.relative == row.file })
        #expect(try settled.status.hasSameContent(as: FileStatus(at: path)), "\(row.name)")
        var buffer = [UInt8](repeating: 0, count: content.count)
        let file = try Descriptor.open(path, for: .reading)
        let got = try buffer.withUnsafeMutableBytes { try file.read(into: $0, at: 0, named: path) }
        #expect(got == content.count && buffer == content, "\(row.name)")
        #expect(settled.status.size >= Int64(content.count), "\(row.name)")
        try Files.remove(path)
    }

    /// Opens a file of the lower directory for writing, which copies it up.
    private static func copyUp(_ place: Place) async throws {
        let path = place.watched.appending("below.mp4")
        let open = try Descriptor.open(path, for: .updating)
        _ = more.withUnsafeBytes { open.write($0, at: Int64(body.count), named: path) }
        try open.close(named: path)
    }

    private static func put(_ path: FilePath, _ content: [UInt8]) throws {
        let file = try Descriptor.open(path, for: .creating)
        try file.write(content, named: path)
        try file.close(named: path)
    }

    private static func hardLink(_ from: FilePath, _ to: FilePath) throws {
        try systemCall("link", on: to.display) { from.withCString { from in to.withCString { link(from, $0) } } }
    }
}
