import Core
import Glibc
import TestKit
import Testing

@testable import Linux

@Suite("Access below an open folder")
struct OpenFolderTests {
    let temporary = TemporaryFolder()

    /// A folder with `a/b/file`, and files beside it that must not be reached.
    private func scene(_ resolver: OpenFolder.Resolver) throws -> OpenFolder {
        try temporary.write("in/a/b/file", [1])
        try temporary.write("secret/file", [2])
        let path = temporary.path.appending("in")
        return OpenFolder(try Descriptor.open(path, for: .folder), named: path, by: resolver)
    }

    private func link(_ name: FilePath, to target: FilePath) throws {
        try Files.makeLink(temporary.path.appending(name), to: target)
    }

    private func code(_ body: () throws -> Void) -> CInt? {
        do { try body() } catch let error as SystemError { return error.code } catch { return -1 }
        return nil
    }

    @Test(
        "files, directories and listings are reached by names of several parts",
        arguments: [OpenFolder.Resolver.kernel, .steps])
    func reached(_ resolver: OpenFolder.Resolver) throws {
        let folder = try scene(resolver)
        let status = try folder.status(at: "a/b/file")
        let isThere = try folder.has("a/b")
        let isMissing = try folder.statusIfPresent(at: "a/none/file") == nil
        #expect(status.isRegular && status.size == 1 && isThere && isMissing)
        var buffer: [UInt8] = [0, 0]
        let got = try folder.open("a/b/file", for: .reading).read(into: &buffer, named: "file")
        #expect(got == 1 && buffer[0] == 1)
        var names: [FilePath] = []
        let stream = try folder.stream("a/b")
        while try stream.next({ name, _ in names.append(FilePath(fromKernel: name)) }) {}
        #expect(names == ["file"])
        let own = try folder.status(at: "")
        let again = try folder.folder("").status(at: "")
        #expect(own.isDirectory && own.inode == again.inode)
    }

    @Test(
        "no link is followed, wherever it is and wherever it leads",
        arguments: [OpenFolder.Resolver.kernel, .steps],
        ["../secret", "/etc", "a", "/proc/self/root/etc"])
    func links(_ resolver: OpenFolder.Resolver, _ target: String) throws {
        let folder = try scene(resolver)
        try link("in/link", to: FilePath(target))
        try link("in/a/link", to: FilePath(target))
        for name in ["link/file", "a/link/file", "link/b/file"] as [FilePath] {
            #expect(code { _ = try folder.status(at: name) } == ELOOP, "\(name)")
            #expect(code { _ = try folder.open(name, for: .reading) } == ELOOP, "\(name)")
            #expect(code { _ = try folder.parent(of: name) } == ELOOP, "\(name)")
        }
        for name in ["link", "a/link"] as [FilePath] {
            #expect(code { _ = try folder.stream(name) } == ELOOP, "\(name)")
            #expect(code { _ = try folder.open(name, for: .reading) } == ELOOP, "\(name)")
            let status = try folder.status(at: name)
            #expect(status.isLink)
        }
    }

    @Test("no name leads outside", arguments: [OpenFolder.Resolver.kernel, .steps])
    func out(_ resolver: OpenFolder.Resolver) throws {
        let folder = try scene(resolver)
        for name in ["..", "../secret/file", "a/../../secret/file", "/etc/passwd", "a/.."] as [FilePath] {
            #expect(code { _ = try folder.open(name, for: .reading) } == EXDEV, "\(name)")
        }
        #expect(code { _ = try folder.status(at: "../secret/file") } == EXDEV)
        #expect(code { _ = try folder.status(at: "/etc") } == EXDEV)
    }

    @Test(
        "directories are created below the folder, and none behind a link",
        arguments: [OpenFolder.Resolver.kernel, .steps])
    func made(_ resolver: OpenFolder.Resolver) throws {
        let folder = try scene(resolver)
        let made = try folder.makingFolders("x/y", durably: true)
        #expect(made.path == temporary.path.appending("in/x/y"))
        try link("in/link", to: "../secret")
        #expect(code { _ = try folder.makingFolders("link/new") } == ELOOP)
        #expect(try FileStatus.ifPresent(at: temporary.path.appending("secret/new")) == nil)
    }

    @Test("a rename below the folder replaces nothing")
    func renames() throws {
        let folder = try scene(.standard)
        try temporary.write("in/a/b/other", [3])
        let parent = try folder.parent(of: "a/b/file")
        #expect(code { try parent.renameNoReplace("file", to: "other", in: parent) } == EEXIST)
        try parent.renameNoReplace("file", to: "new", in: parent)
        let names = Set(try Files.names(in: parent.path))
        #expect(names == ["new", "other"])
    }
}
