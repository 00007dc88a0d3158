import Core
import Glibc
import TestKit
import Testing

@testable import Linux

@Suite("Renames without replacement")
struct ExclusiveRenameTests {
    /// A file system without `RENAME_NOREPLACE`, on which links are refused with `code`.
    private func calls(refusing code: CInt) -> Files.ExclusiveRename {
        Files.ExclusiveRename { from, to throws(SystemError) in
            throw SystemError(call: "renameat2", subject: from.shown.display, code: EINVAL)
        } link: { from, to throws(SystemError) in
            throw SystemError(call: "link", subject: from.shown.display, code: code)
        }
    }

    @Test(
        "if links are refused too, a free name is taken by a plain rename",
        arguments: [EPERM, EIO, EOPNOTSUPP, EMLINK], [true, false])
    func free(_ code: CInt, _ isOurs: Bool) throws {
        let folder = TemporaryFolder()
        let from = try folder.write("a", [1, 2])
        let to = folder.path.appending("b")
        try Files.renameNoReplace(NameAt(from), to: NameAt(to), isOurs: isOurs, by: calls(refusing: code))
        #expect(try Files.read(to) == [1, 2])
        #expect(try FileStatus.ifPresent(at: from) == nil)
    }

    @Test("an existing name is not replaced", arguments: [true, false])
    func taken(_ isOurs: Bool) throws {
        let folder = TemporaryFolder()
        let from = try folder.write("a", [1])
        let to = try folder.write("b", [2])
        let error = #expect(throws: SystemError.self) {
            try Files.renameNoReplace(NameAt(from), to: NameAt(to), isOurs: isOurs, by: calls(refusing: EPERM))
        }
        #expect(error?.exists == true)
        #expect(try Files.read(to) == [2])
        #expect(try Files.read(from) == [1])
    }

    @Test("another error of the link is reported")
    func refused() throws {
        let folder = TemporaryFolder()
        let from = try folder.write("a", [1])
        let error = #expect(throws: SystemError.self) {
            try Files.renameNoReplace(
                NameAt(from), to: NameAt(folder.path.appending("b")), isOurs: false, by: calls(refusing: EACCES))
        }
        #expect(error?.code == EACCES)
    }
}
