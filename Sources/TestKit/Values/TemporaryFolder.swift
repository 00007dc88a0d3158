package import Core
internal import Glibc
internal import Linux

/// A separate folder for a test, removed with everything in it when the last reference is released. ``Caretaker``
/// removes it if this process ends before that.
package final class TemporaryFolder: Sendable {
    package let path: FilePath

    package init() {
        var template = Array("\(Caretaker.prefix)XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("mkdtemp: errno \(errno)") }
        path = FilePath(bytes: template.dropLast().map { UInt8(bitPattern: $0) })
    }

    deinit { Self.remove(path) }

    /// Writes a file with `content` below the folder, and makes its parents. For a program see
    /// ``writeProgram(_:_:)``.
    @discardableResult
    package func write(_ relative: FilePath, _ content: [UInt8]) throws -> FilePath {
        let target = path.appending(relative)
        try Files.makeFolders(target.parent)
        try Files.removeIfPresent(target)
        let file = try Descriptor.open(target, for: .creating)
        try file.write(content, named: target)
        try file.close(named: target)
        return target
    }

    /// Writes a program below the folder, and makes its parents. It replaces one of the same name, which may be running.
    ///
    /// Another process writes the file. If this one did, a child that another test starts meanwhile could have the file
    /// open for writing too, and the kernel runs no such file (ETXTBSY).
    ///
    /// - Parameter script: For /bin/sh, without `#!`.
    @discardableResult
    package func writeProgram(_ relative: FilePath, _ script: String) throws -> FilePath {
        let target = path.appending(relative)
        let next = FilePath(bytes: target.bytes + Array(".next".utf8))
        try Files.makeFolders(target.parent)
        let install = Program(
            words: ["/usr/bin/install", "-m", "755", "/dev/stdin", next.display].map { Array($0.utf8) },
            environment: [], folder: "/", input: Array("#!/bin/sh\n\(script)\n".utf8))
        _ = try install.collectOutput(atMost: 4096, within: .seconds(60))
        try Files.rename(next, to: target)
        return target
    }

    /// Removes a file or folder with everything in it; a missing one is no error.
    package static func remove(_ path: FilePath) {
        guard let status = try? FileStatus(at: path) else { return }  // missing already is the aim
        if status.isDirectory {
            for name in (try? Files.names(in: path)) ?? [] { remove(path.appending(name)) }
            _ = path.withCString { rmdir($0) }
        } else {
            _ = path.withCString { unlink($0) }
        }
    }
}

/// Makes a symbolic link; `false` when the kernel refuses.
package func makeLink(to target: FilePath, at link: FilePath) -> Bool {
    target.withCString { target in link.withCString { symlink(target, $0) == 0 } }
}

/// `count` bytes without a pattern: the same for the same `seed`.
package func noise(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    // Whole words into raw memory: tests make gigabytes of it without an optimizer.
    return [UInt8](unsafeUninitializedCapacity: count + 8) { bytes, filled in
        let raw = UnsafeMutableRawBufferPointer(bytes)
        var at = 0
        while at < count {
            // xorshift64*: enough to make every block different.
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            let word = state &* 0x2545_F491_4F6C_DD1D
            raw.storeBytes(of: word.littleEndian, toByteOffset: at, as: UInt64.self)
            at += 8
        }
        filled = count
    }
}
