import Core
import Testing
import Transport

@testable import Destinations

@Suite("TusMetadata")
struct TusMetadataTests {
    private func order(_ name: FilePath, _ metadata: [String: String] = [:]) -> UploadOrder {
        UploadOrder(
            id: "01J", generation: 2, file: StagedFile(path: "/s", size: 1, sha256: [0xAB, 0xCD]), name: name,
            mediaType: "video/mp4", modified: 5, metadata: metadata, checkpoint: nil)
    }

    private func header(_ order: UploadOrder, isASCII: Bool = false, isMinimal: Bool = false) -> String {
        TusMetadata.header(order, isASCII: isASCII, isMinimal: isMinimal, isRepeat: false)
    }

    private func text(_ header: String, _ key: String) -> String? {
        TusMetadata.values(header)[key].map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("a header has no space after a comma, and the two names that every server knows first")
    func shape() {
        let header = header(order("a/b.mp4", ["title": ""]))
        #expect(!header.contains(", "))
        #expect(header.hasPrefix("filename \(base64(Array("b.mp4".utf8))),filetype "))
        #expect(header.hasSuffix(",title"), "an empty value is written as its key alone")
        #expect(text(header, "sluiceId") == "01J.2")
        #expect(text(header, "sha256") == "abcd")
        #expect(text(header, "relativePath") == "a/b.mp4")
    }

    @Test("a name that is no text is written readably")
    func bytes() {
        let header = header(order(FilePath(bytes: Array("d/a%".utf8) + [0xFF, 0x0A])))
        #expect(text(header, "filename") == "a%25%FF\n")
        #expect(text(header, "sluicePath") == "d/a%25%FF%0A")
    }

    @Test("plain names are sent where a server requires them")
    func ascii() {
        #expect(text(header(order("ä b%.mp4"), isASCII: true), "filename") == "%C3%A4 b%25.mp4")
        #expect(text(header(order("ä b%.mp4")), "filename") == "ä b%.mp4")
    }

    @Test("the header stays under 3 KiB in any case, and drops the least important")
    func cap() {
        let long = FilePath((0..<15).map { _ in String(repeating: "ü", count: 120) }.joined(separator: "/"))
        let header = header(order(long, ["a": String(repeating: "x", count: 3000), "b": "y"]))
        #expect(header.utf8.count <= 3 << 10)
        #expect(text(header, "filename") == String(repeating: "ü", count: 120))
        #expect(text(header, "sluiceId") == "01J.2")
        #expect(text(header, "a") == nil)
    }

    @Test("keys are cleaned, and cannot replace the fixed ones")
    func keys() {
        let header = header(order("n", ["file name,": "1", "filename": "2", "§": "3"]))
        #expect(text(header, "filename") == "n")
        #expect(TusMetadata.values(header)["§"] == nil)
    }

    @Test("minimal metadata has only filename and filetype")
    func minimal() {
        #expect(Set(TusMetadata.values(header(order("n"), isMinimal: true)).keys) == ["filename", "filetype"])
    }

    @Test("spaces anywhere are accepted, as servers echo them")
    func reads() { #expect(Set(TusMetadata.values("a YQ== , b, c  ,d ####").keys) == ["a", "b", "c"]) }
}
