import Synchronization
import TestKit
import Testing

@testable import Media

@Suite("AVI")
struct RIFFTests {
    private func header(promisesIndex: Bool, _ more: [UInt8] = []) -> [UInt8] {
        let flags = little(promisesIndex ? 0x10 : 0, 4)
        return list(
            "hdrl", chunk("avih", [UInt8](repeating: 0, count: 12) + flags + [UInt8](repeating: 0, count: 40)) + more)
    }

    @Test("a large file has several RIFFs, and all of them count")
    func openDML() throws {
        let index = list("strl", chunk("strh", [1, 2, 3]) + chunk("indx", [0, 0]))
        let first = list("AVI ", header(promisesIndex: true, index) + list("movi", [1, 2, 3, 4]), as: "RIFF")
        let second = list("AVIX", list("movi", [5, 6]), as: "RIFF")
        #expect(try FakeFile(first + second).verdict() == .complete(.avi))
        #expect(try FakeFile(first + second.dropLast()).verdict().reason == "ends 1 B before its RIFF does")
        #expect(try FakeFile(first + Array("AVIX".utf8)).verdict().isNotWhole)
    }

    @Test("an index that the header promises must exist")
    func index() throws {
        func file(_ promises: Bool, _ index: [UInt8]) -> FakeFile {
            FakeFile(list("AVI ", header(promisesIndex: promises) + list("movi", [1, 2]) + index, as: "RIFF"))
        }
        #expect(try file(true, chunk("idx1", [])).verdict() == .complete(.avi))
        #expect(try file(true, []).verdict().reason == "has no index yet")
        #expect(try file(false, []).verdict() == .complete(.avi))
    }

    @Test("a file without its lists is incomplete")
    func lists() throws {
        #expect(try FakeFile(list("AVI ", list("movi", []), as: "RIFF")).verdict().reason == "has no 'hdrl'")
        #expect(
            try FakeFile(list("AVI ", header(promisesIndex: false), as: "RIFF")).verdict().reason
                == "has no 'movi' in its RIFF")
    }
}
