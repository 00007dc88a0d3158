import Core
import Linux
import TestKit
import Testing

@Suite("Reading a folder")
struct FolderStreamTests {
    @Test(
        "after a rewind, new entries are shown, on every file system",
        .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value }, arguments: Volume.Kind.allCases)
    func rewound(_ kind: Volume.Kind) async throws {
        let volume = try await Volume(kind)
        let folder = volume.path.appending("in")
        try Files.makeFolders(folder)
        let stream = try FolderStream(folder)
        try Descriptor.open(folder.appending("late.mp4"), for: .creating).close(named: "late.mp4")
        stream.rewind()
        var names: [FilePath] = []
        while try stream.next({ name, _ in names.append(FilePath(fromKernel: name)) }) {}
        #expect(names == ["late.mp4"])
    }
}
