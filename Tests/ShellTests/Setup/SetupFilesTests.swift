import Core
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
        var files = SetupFiles(path)
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
        var files = SetupFiles(path)
        let draft = folder.path.appending(".draft")
        try files.write(draft, Array("other".utf8))
        #expect(throws: SystemError.self) { try files.publish(draft) }
        files.undo()
        #expect(try Files.read(path) == Array("mine".utf8))
        #expect(try Files.names(in: folder.path) == ["sluice.yaml"])
    }
}
