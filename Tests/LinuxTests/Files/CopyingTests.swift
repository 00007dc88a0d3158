import Core
import Glibc
import TestKit
import Testing

@testable import Linux

@Suite("Copying and the kernel")
struct CopyingTests {
    /// Runs on a separate thread, because tests share theirs.
    private func onThread<R: Sendable>(_ body: @escaping @Sendable () -> R) async throws -> R {
        try await blocking { body() }
    }

    @Test("the thread lowers its priority during the work, and restores it afterwards")
    func priority() async throws {
        let seen = try await onThread { () -> [CInt] in
            let before = ioPriority()
            let during = withLowPriority { ioPriority() }
            var seen = [before, during, ioPriority()]
            // A priority that was lowered from outside is not raised.
            let idle: CInt = 3 << 13
            if setIOPriority(idle) {
                seen.append(withLowPriority { ioPriority() })
                _ = setIOPriority(before)
            }
            return seen
        }
        #expect(seen[1] == 2 << 13 | 7 || seen[0] == seen[1])
        #expect(seen[2] == seen[0])
        #expect(seen.count == 3 || seen[3] >> 13 == 3)
    }

    @Test("a tree is removed with everything in it, links are not followed, and a missing tree is no error")
    func removeTree() throws {
        let folder = TemporaryFolder()
        try folder.write("kept/file", [1])
        try folder.write("tree/a/b/c", [1])
        let kept = folder.path.appending("kept")
        let link = folder.path.appending("tree/a/link")
        #expect(kept.withCString { target in link.withCString { symlink(target, $0) } } == 0)
        for _ in 0..<2 { try Files.removeTree(folder.path.appending("tree")) }
        #expect(try Files.names(in: folder.path) == ["kept"])
        #expect(try Files.read(kept.appending("file")) == [1])
    }

    @Test("holes are distinguished from data, as far as the file system reports them")
    func data() throws {
        let folder = TemporaryFolder()
        let path = folder.path.appending("file")
        let file = try Descriptor.open(path, for: .creating)
        try file.setSize(8 << 20, named: path)
        #expect(noise(4096).withUnsafeBytes { file.write($0, at: 4 << 20, named: path).error } == nil)
        let found = try #require(try file.data(from: 0, named: path))
        #expect(found.contains(4 << 20))
        #expect(try file.data(from: 8 << 20, named: path) == nil)
        #expect(isZero(UnsafeRawBufferPointer(start: nil, count: 0)))
        #expect([UInt8](repeating: 0, count: 9).withUnsafeBytes { isZero($0) })
        for place in 0..<9 {
            var bytes = [UInt8](repeating: 0, count: 9)
            bytes[place] = 1
            #expect(!bytes.withUnsafeBytes { isZero($0) })
        }
    }
}
