import Core
import Glibc
import Linux
import TestKit
import Testing

@Suite("Reading the status of several names")
struct FolderStatusReaderTests {
    /// Below and above the number that one thread takes at a time, and the number that makes another thread help.
    @Test(
        "each name gets its own status, in order",
        arguments: [0, 1, 127, 128, 129, 256, 1_000, 5_000])
    func order(_ count: Int) throws {
        let folder = TemporaryFolder()
        var looks = FolderStatusReader()
        for number in 0..<count {
            let name = FilePath("file-\(number)")
            let file = try Descriptor.open(folder.path.appending(name), for: .creating)
            if number % 3 == 1 { try file.write(Array(repeating: 7, count: number), named: name) }
            try file.close(named: name)
            if number % 5 == 2 { try Files.remove(folder.path.appending(name)) }
        }
        let stream = try FolderStream(folder.path)
        // The memory of a round is used for the next one.
        for first in [0, count] {
            for number in 0..<count { looks.add(FilePath("file-\(number)"), tag: first + number, in: stream) }
            var told: [Int] = []
            looks.read(in: stream) { name, tag, status in
                told.append(tag)
                let number = tag - first
                #expect(FilePath(fromKernel: name) == FilePath("file-\(number)"))
                switch status {
                case .success(let status?):
                    #expect(number % 5 != 2)
                    #expect(status.size == (number % 3 == 1 ? Int64(number) : 0))
                    #expect(status.isRegular)
                case .success(nil): #expect(number % 5 == 2)
                case .failure(let error): Issue.record(error)
                }
            }
            #expect(told == Array(first..<first + count))
            #expect(looks.isEmpty)
        }
    }

    @Test("a name without a readable status gives the reason, and the others are read")
    func failure() throws {
        let folder = TemporaryFolder()
        try Files.makeFolders(folder.path.appending("here"))
        let stream = try FolderStream(folder.path)
        var looks = FolderStatusReader()
        looks.add(FilePath(String(repeating: "n", count: 300)), tag: 0, in: stream)
        looks.add("here", tag: 1, in: stream)
        var told: [String] = []
        looks.read(in: stream) { _, _, status in
            switch status {
            case .success(let status): told.append(status?.isDirectory == true ? "directory" : "nothing")
            case .failure(let error): told.append("\(error.code == ENAMETOOLONG)")
            }
        }
        #expect(told == ["true", "directory"])
    }
}

extension FolderStatusReader {
    fileprivate mutating func add(_ name: FilePath, tag: Int, in stream: FolderStream) {
        name.bytes.withUnsafeBufferPointer { add($0, tag: tag, in: stream) }
    }
}
