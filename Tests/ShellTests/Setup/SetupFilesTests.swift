import Core
import Glibc
import Linux
import TestKit
import Testing

@testable import Shell

@Suite("Files of sluice init", .timeLimit(.minutes(Patience.minutes(1))))
struct SetupFilesTests {
    @Test("what was made is removed after a failure, also when the configuration has its name already")
    func undo() throws {
        let folder = TemporaryFolder()
        let place = folder.path.appending("etc/sluice")
        let path = place.appending("sluice.yaml")
        let files = SetupFiles(path)
        try files.makeFolder(place)
        try files.write(place.appending("nas.token"), Array("a".utf8))
        try files.write(place.appending(".draft"), Array("version: 1\n".utf8))
        try files.publish(place.appending(".draft"))
        #expect(try Files.read(path) == Array("version: 1\n".utf8))
        files.undo()
        #expect(try Files.names(in: folder.path).isEmpty)
    }

    @Test("a file that has the name already stays, and the rest is removed")
    func existing() throws {
        let folder = TemporaryFolder()
        let path = folder.path.appending("sluice.yaml")
        try Files.replace(path, with: Array("mine".utf8))
        let files = SetupFiles(path)
        let draft = folder.path.appending(".draft")
        try files.write(draft, Array("other".utf8))
        #expect(throws: SystemError.self) { try files.publish(draft) }
        files.undo()
        #expect(try Files.read(path) == Array("mine".utf8))
        #expect(try Files.names(in: folder.path) == ["sluice.yaml"])
    }

    @Test("a full disk is a matter of space, with the place and the remedy")
    func full() throws {
        let folder = TemporaryFolder()
        let path = folder.path.appending("etc/sluice.yaml")
        let files = SetupFiles(path)
        let error = files.explained(SystemError(call: "write", subject: "x.token", code: ENOSPC)) as? CommandError
        #expect(error?.status == .notNow && error?.message.hasPrefix(path.parent.display) == true)
        #expect(error?.remedy?.contains("Free some space") == true)
    }
}
