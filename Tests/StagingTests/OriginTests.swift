import Core
import Linux
import TestKit
import Testing

@testable import Staging

@Suite("Attributes of a copy")
struct OriginTests {
    private func origin(_ relative: FilePath, context: [String: String] = [:]) -> CopyOrigin {
        CopyOrigin(
            FileIdentity(
                folder: "cam", relative: relative, size: 3, modified: 4, inode: 5, born: 6, fileSystem: "disk"),
            root: "/drop", changed: 7,
            uploads: [.init(id: "01", destination: "nas", name: relative, key: "k", context: context)])
    }

    private func copied(_ origin: CopyOrigin) throws -> (TemporaryFolder, CopyOrigin?) {
        let folder = TemporaryFolder()
        let source = try folder.write("source", [1, 2, 3])
        let staging = StagingArea(folder: folder.path.appending("staging"), method: .copy)
        _ = try staging.prepare()
        let status = try FileStatus(at: source)
        let identity = FileIdentity(
            folder: "cam", relative: "source", size: status.size, modified: status.modified, inode: status.inode,
            born: status.born, fileSystem: nil)
        let copy = try staging.copy(
            CopyRequest(SourceFile(source), identity, changed: status.changed), as: "1", origin: origin)
        try staging.publish([copy])
        let read = try CopyOrigin.read(staging.path("1"))
        #expect(read == nil || read?.sha256 == hexadecimal(copy.sha256))
        return (folder, read)
    }

    @Test("attributes are read back byte for byte")
    func bytes() throws {
        let relative = FilePath(bytes: [0x61, 0x2F, 0xFF, 0x0A, 0x22])
        let (_, read) = try copied(origin(relative))
        let found = try #require(read, "the file system of the temporary folder keeps no attributes")
        #expect(found.paths?.relative == relative)
        #expect(found.uploads.first?.id == "01")
        #expect(found.identity?.modified == 4)
    }

    @Test("attributes that do not fit are omitted, and never fail the copy")
    func tooLarge() throws {
        let (_, read) = try copied(origin("a", context: ["much": String(repeating: "x", count: 70_000)]))
        let found = try #require(read)
        #expect(found.paths?.relative == "a")
        #expect(found.uploads.first?.context == nil)
    }

    @Test("attributes that name a place outside the folder are rejected")
    func hostile() throws {
        for path in ["../x", "/etc/passwd", "", "a/../../x", "a/./x"] as [FilePath] {
            #expect(origin(path).paths == nil)
        }
        var early = origin("a")
        // A NUL, at which a path would end.
        early.relative = "610078"
        #expect(early.paths == nil)
        var rootless = origin("a")
        rootless.root = ""
        #expect(rootless.paths == nil)
    }

    @Test("copies without a record are set aside under a free name, and no start deletes them")
    func aside() throws {
        let folder = TemporaryFolder()
        let staging = StagingArea(folder: folder.path)
        for content in [[1], [2]] as [[UInt8]] {
            try folder.write("7", content)
            let place = try staging.setAside("7")
            #expect(try Files.read(place) == content)
        }
        _ = try staging.prepare()
        #expect(try staging.copies() == [])
        #expect(try Files.names(in: folder.path.appending("recovered")).count == 2)
    }
}
