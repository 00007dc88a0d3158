import Synchronization
import TestKit
import Testing

@testable import Media

@Suite("MPEG-TS")
struct TransportStreamTests {
    @Test("a file cut within a packet is incomplete", arguments: ["video.ts", "video.m2ts"])
    func cut(_ name: String) throws {
        let bytes = try Recordings.read("whole/" + name)
        #expect(try FakeFile(bytes.dropLast(100)).verdict().isNotWhole)
    }
}
