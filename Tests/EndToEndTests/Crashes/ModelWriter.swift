import Core
import Digests
import Glibc
import Linux
import Synchronization
import TestKit

/// Every content that a file has had while no program was writing it: these may be staged. Several writers report it.
final class SettledContents: Sendable {
    private let all = Mutex<[String: String]>([:])
    private let next = Atomic<UInt64>(1)

    /// To be called before the file is finished: from then on it may be staged.
    func note(_ content: [UInt8], _ how: String) {
        let digest = hexadecimal(Hasher.digest(.sha256, of: content))
        all.withLock { $0[digest] = how }
    }

    func has(_ digest: String) -> Bool { all.withLock { $0[digest] != nil } }
    var count: Int { all.withLock { $0.count } }

    /// Bytes that no other file has.
    func fresh(_ count: Int) -> [UInt8] {
        noise(count, seed: next.wrappingAdd(1, ordering: .relaxed).newValue)
    }
}

/// A program that changes files as programs do, in a part of the watched tree of its own, and knows the expected
/// result.
actor ModelWriter {
    /// The file that a name refers to. Names of one file share its number.
    private struct Version {
        var content: [UInt8]
        let file: Int
        /// Whether it was changed through another name, or without being opened: no event of this name reports that.
        var isUnheard = false
    }

    private let finished: SettledContents
    /// The watched folder, and one on the same disk that is not watched.
    private let drop: FilePath
    private let beside: FilePath
    private var dice: Dice
    private var files: [FilePath: Version] = [:]
    private var folders: [FilePath]
    /// Folders that were moved out, with their content.
    private var away: [FilePath: [FilePath: Version]] = [:]
    private var number = 0
    nonisolated let name: String
    /// The disk at the top of this writer's part, mounted or not.
    private let disk: LoopDisk?
    private var isMounted = true
    /// The actions so far, for the report of a failure.
    private var deeds: [String] = []

    /// - Parameter disk: Mounted at the part of this writer.
    init(
        _ name: String, _ finished: SettledContents, drop: FilePath, beside: FilePath, dice: Dice, disk: LoopDisk? = nil
    )
        throws
    {
        self.name = name
        self.finished = finished
        self.drop = drop
        self.beside = beside
        self.dice = dice
        self.disk = disk
        folders = ["", "a", "a/b", "c"].map { FilePath(name).appending(FilePath($0)) }
        for folder in folders { try Files.makeFolders(drop.appending(folder)) }
    }

    /// Works until this time, and leaves nothing open.
    func work(until end: ContinuousClock.Instant) async throws {
        while ContinuousClock.now < end { try await step() }
    }

    /// The files in the folder, which all have to be staged.
    func expected() async throws -> [(path: FilePath, digest: String)] {
        if !isMounted { try await mount() }
        return files.filter { !$0.value.isUnheard }.map {
            ($0.key, hexadecimal(Hasher.digest(.sha256, of: $0.value.content)))
        }
    }

    /// The history of a name, and of the folders above it.
    func history(of path: FilePath) -> [String] {
        deeds.filter { deed in deed.contains(path.display) || deed.contains("folder") || deed.contains("mounted") }
            .suffix(30)
            .map { $0 }
    }

    private func did(_ what: String) {
        deeds.append("\(WallTime(milliseconds: SystemClocks().wall().milliseconds)) \(what)")
    }

    private func step() async throws {
        if disk != nil, chance(12) { return try await isMounted ? unmount() : mount() }
        guard isMounted else { return try await mount() }
        switch Int.random(in: 0..<18, using: &dice) {
        case 0, 1: try await create()
        case 2: try await createAside(replacing: false)
        case 3: try await createAside(replacing: true)
        case 4: try await linkIn()
        case 5: try hardLink()
        case 6: try await rewrite(truncating: false)
        case 7: try await rewrite(truncating: true)
        case 8: try cut()
        case 9: try remove()
        case 10, 11: try rename()
        case 12: try renameFolder()
        case 13: try moveOutOrBack()
        case 14: try await twoWriters()
        case 15: try await renameWhileOpen()
        case 16: try await mapped()
        default: try await nest()
        }
    }

    // MARK: Random choices

    private func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &dice) == 0 }
    private func fresh() -> [UInt8] {
        finished.fresh([1, 17, 4096, 65_537, 120_000].randomElement(using: &dice) ?? 1)
    }
    private func newName(_ prefix: String = "", _ suffix: String = ".mp4") -> FilePath {
        number += 1
        return FilePath("\(prefix)\(number)\(suffix)")
    }
    private func place() -> FilePath { (folders.randomElement(using: &dice) ?? FilePath(name)).appending(newName()) }
    private func some() -> (path: FilePath, version: Version)? {
        files.randomElement(using: &dice).map { ($0.key, $0.value) }
    }
    /// Often shorter than the quiet time, now and then longer.
    private func pause() async throws {
        let longest = chance(5) ? 700 : 60
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...longest, using: &dice)))
    }

    // MARK: Complete files

    private func note(_ path: FilePath, _ content: [UInt8], _ how: String) {
        did("\(how) \(path), \(content.count) bytes")
        number += 1
        files[path] = Version(content: content, file: number)
    }

    /// In pieces, with pauses between them.
    private func write(_ content: [UInt8], to file: borrowing Descriptor, _ path: FilePath) async throws {
        var rest = content[...]
        while !rest.isEmpty {
            let piece = rest.prefix(max(1, content.count / Int.random(in: 1...3, using: &dice)))
            rest = rest.dropFirst(piece.count)
            try file.write(Array(piece), named: path)
            if !rest.isEmpty { try await pause() }
        }
    }

    private func create() async throws {
        let (relative, content) = (place(), fresh())
        let path = drop.appending(relative)
        let file = try Descriptor.open(path, for: .creating)
        try await write(content, to: file, path)
        finished.note(content, "created \(relative)")
        try file.close(named: path)
        note(relative, content, "created")
    }

    private func createAside(replacing: Bool) async throws {
        let content = fresh()
        let target = replacing ? some()?.path ?? place() : place()
        let aside = drop.appending(target.parent).appending(newName("", ".mp4.part"))
        let file = try Descriptor.open(aside, for: .creating)
        try await write(content, to: file, aside)
        try file.close(named: aside)
        finished.note(content, "renamed to \(target)")
        try Files.rename(aside, to: drop.appending(target))
        note(target, content, "made aside and renamed to")
    }

    private func linkIn() async throws {
        let (relative, content) = (place(), fresh())
        let hidden = drop.appending(relative.parent).appending(newName(".upload-", ""))
        let file = try Descriptor.open(hidden, for: .creating)
        try await write(content, to: file, hidden)
        try file.close(named: hidden)
        finished.note(content, "linked to \(relative)")
        try link(hidden, drop.appending(relative))
        try Files.remove(hidden)
        note(relative, content, "linked in")
    }

    private func link(_ from: FilePath, _ to: FilePath) throws {
        try systemCall("link", on: to.display) { from.withCString { from in to.withCString { Glibc.link(from, $0) } } }
    }

    private func hardLink() throws {
        guard let (path, version) = some() else { return }
        let relative = place()
        try link(drop.appending(path), drop.appending(relative))
        files[relative] = version
        did("linked \(path) to \(relative)")
    }

    private func nest() async throws {
        let folder = (folders.randomElement(using: &dice) ?? FilePath(name)).appending(newName("day", ""))
        let deep = folder.appending("x/y")
        try Files.makeFolders(drop.appending(deep))
        folders += [folder, folder.appending("x"), deep]
        let (relative, content) = (deep.appending(newName()), fresh())
        let path = drop.appending(relative)
        let file = try Descriptor.open(path, for: .creating)
        try file.write(content, named: path)
        finished.note(content, "created in a new folder \(relative)")
        try file.close(named: path)
        note(relative, content, "created in a new folder")
    }

    // MARK: Changes

    /// The same file has changed under its other names too, which causes no events there.
    private func changed(_ path: FilePath, _ content: [UInt8], _ how: String) {
        did("\(how) \(path), now \(content.count) bytes")
        guard let file = files[path]?.file else { return }
        for (other, version) in files where version.file == file {
            files[other]?.content = content
            if other != path { files[other]?.isUnheard = true }
        }
        for (folder, inside) in away {
            for (other, version) in inside where version.file == file {
                away[folder]?[other]?.content = content
                away[folder]?[other]?.isUnheard = true
            }
        }
    }

    private func rewrite(truncating: Bool) async throws {
        guard let (relative, version) = some() else { return }
        let path = drop.appending(relative)
        let more = fresh()
        let content = truncating ? more : version.content + more
        let file = try Descriptor.open(path, for: .updating)
        if truncating {
            try file.setSize(0, named: path)
            try await pause()
        } else {
            try systemCall("lseek", on: path.display) { file.withNumber { lseek($0, 0, SEEK_END) } }
        }
        try await write(more, to: file, path)
        finished.note(content, "rewritten \(relative)")
        try file.close(named: path)
        changed(relative, content, truncating ? "rewritten" : "appended to")
    }

    private func cut() throws {
        guard let (relative, version) = some(), version.content.count > 1 else { return }
        let path = drop.appending(relative)
        let content = Array(version.content.prefix(Int.random(in: 1..<version.content.count, using: &dice)))
        finished.note(content, "cut \(relative)")
        try systemCall("truncate", on: path.display) { path.withCString { truncate($0, content.count) } }
        changed(relative, content, "cut")
        // A change without a writer that closes causes no event: the next scan finds it.
        files[relative]?.isUnheard = true
    }

    private func twoWriters() async throws {
        let (relative, first, second) = (place(), fresh(), fresh())
        let path = drop.appending(relative)
        let one = try Descriptor.open(path, for: .creating)
        let other = try Descriptor.open(path, for: .updating)
        try await write(first, to: one, path)
        try one.close(named: path)
        try await pause()
        _ = second.withUnsafeBytes { other.write($0, at: Int64(first.count), named: path) }
        finished.note(first + second, "written by two \(relative)")
        try other.close(named: path)
        note(relative, first + second, "written by two")
    }

    private func renameWhileOpen() async throws {
        let (before, after, content) = (place(), place(), fresh())
        let file = try Descriptor.open(drop.appending(before), for: .creating)
        try file.write(Array(content.prefix(content.count / 2)), named: before)
        try await pause()
        try Files.rename(drop.appending(before), to: drop.appending(after))
        try await write(Array(content.dropFirst(content.count / 2)), to: file, after)
        finished.note(content, "renamed while open to \(after)")
        try file.close(named: after)
        note(after, content, "renamed from \(before) while open to")
    }

    private func mapped() async throws {
        let (relative, content) = (place(), fresh())
        let path = drop.appending(relative)
        let file = try Descriptor.open(path, for: .creating)
        try file.setSize(Int64(content.count), named: path)
        let memory = file.withNumber { mmap(nil, content.count, PROT_READ | PROT_WRITE, MAP_SHARED, $0, 0) }
        guard let memory, memory != MAP_FAILED else {
            throw SystemError(call: "mmap", subject: path.display, code: errno)
        }
        try file.close(named: path)
        let half = content.count / 2
        content.withUnsafeBytes { memory.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(memory), byteCount: half) }
        let start = Int(bitPattern: memory)
        try await pause()
        // The same memory: a pointer may not be kept over a pause.
        guard let memory = UnsafeMutableRawPointer(bitPattern: start) else { return }
        content.withUnsafeBytes {
            memory.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(memory), byteCount: content.count)
        }
        finished.note(content, "mapped \(relative)")
        munmap(memory, content.count)
        note(relative, content, "mapped")
    }

    // MARK: Names

    private func remove() throws {
        guard let (path, _) = some() else { return }
        try Files.remove(drop.appending(path))
        did("removed \(path)")
        files[path] = nil
    }

    private func rename() throws {
        guard let (from, version) = some() else { return }
        let to = chance(4) ? some()?.path ?? place() : place()
        // A rename onto another name of the same file does nothing (rename(2)).
        if files[to]?.file == version.file { return }
        try Files.rename(drop.appending(from), to: drop.appending(to))
        did("renamed \(from) to \(to)")
        files[from] = nil
        files[to] = version
    }

    /// A folder that contains no other of the fixed ones, so that there is always a place for files.
    private func someFolder() -> FilePath? {
        folders.filter { folder in folder != FilePath(name) }.randomElement(using: &dice)
    }

    private func renameFolder() throws {
        guard let from = someFolder() else { return }
        let to = FilePath(name).appending(newName("dir", ""))
        try Files.rename(drop.appending(from), to: drop.appending(to))
        did("folder \(from) renamed to \(to)")
        move(from, to: to)
    }

    private func move(_ from: FilePath, to: FilePath) {
        for (path, version) in files {
            guard let rest = path.relative(to: from) else { continue }
            files[path] = nil
            files[to.appending(rest)] = version
        }
        folders = folders.map { folder in
            folder == from ? to : folder.relative(to: from).map { to.appending($0) } ?? folder
        }
    }

    private func moveOutOrBack() throws {
        if let (folder, inside) = away.randomElement(using: &dice), chance(2) {
            let to = FilePath(name).appending(newName("back", ""))
            try Files.rename(beside.appending(folder), to: drop.appending(to))
            did("folder \(folder) is back as \(to)")
            away[folder] = nil
            folders.append(to)
            for (path, version) in inside { files[to.appending(path)] = version }
            return
        }
        guard let from = someFolder() else { return }
        let out = newName("\(name)-out", "")
        try Files.rename(drop.appending(from), to: beside.appending(out))
        did("folder \(from) moved out as \(out)")
        var inside: [FilePath: Version] = [:]
        for (path, version) in files {
            guard let rest = path.relative(to: from) else { continue }
            files[path] = nil
            inside[rest] = version
        }
        folders.removeAll { $0 == from || $0.relative(to: from) != nil }
        away[out] = inside
    }

    // MARK: The disk

    private func unmount() async throws {
        try await disk?.unmount()
        isMounted = false
        did("unmounted")
    }

    private func mount() async throws {
        try await disk?.mount()
        isMounted = true
        did("mounted")
    }
}
