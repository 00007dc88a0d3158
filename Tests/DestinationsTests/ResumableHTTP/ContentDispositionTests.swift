import Core
import Testing

@testable import Destinations

@Suite("Content-Disposition")
struct ContentDispositionTests {
    @Test(
        "both forms of the name",
        arguments: [
            ("a.mp4", "inline; filename=\"a.mp4\"; filename*=UTF-8''a.mp4"),
            ("a b;c.mp4", "inline; filename=\"a b;c.mp4\"; filename*=UTF-8''a%20b%3Bc.mp4"),
            ("q\"\\%\r\n.mp4", "inline; filename=\"q_____.mp4\"; filename*=UTF-8''q%22%5C%25%0D%0A.mp4"),
            ("é日.mp4", "inline; filename=\"__.mp4\"; filename*=UTF-8''%C3%A9%E6%97%A5.mp4"),
        ])
    func names(_ name: String, _ header: String) {
        #expect(ContentDisposition.header(FilePath(name)) == header)
    }

    @Test("bytes that are no text are written as %HH, and the header stays short")
    func bytes() {
        #expect(
            ContentDisposition.header(FilePath(bytes: [0xFF, 0x61]))
                == "inline; filename=\"_FFa\"; filename*=UTF-8''%25FFa")
        for bytes: [UInt8] in [[UInt8](repeating: 0x9F, count: 255), Array(String(repeating: "日", count: 85).utf8)] {
            let header = ContentDisposition.header(FilePath(bytes: bytes))
            #expect(
                header.utf8.count <= ContentDisposition.limit && header.utf8.allSatisfy { (0x20..<0x7F).contains($0) })
        }
    }
}
