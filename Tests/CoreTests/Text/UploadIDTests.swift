import Core
import Linux
import TestKit
import Testing

@Suite("UploadID")
struct UploadIDTests {
    @Test("ids sort by time, then by creation order")
    func order() {
        let early = UploadID(time: WallTime(milliseconds: 1_000), chance: .max)
        let late = UploadID(time: WallTime(milliseconds: 1_001), chance: 0)
        #expect(early < late)
        #expect(late < late.next(chance: 0))
        #expect(late.next(chance: 0).milliseconds == 1_001)
        #expect(early.text.utf8.count == 26)
    }

    @Test("the example of the ULID specification is reproduced", arguments: [(Int64(1_469_918_176_385), "01ARYZ6S41")])
    func vector(_ time: Int64, _ head: String) {
        #expect(UploadID(time: WallTime(milliseconds: time), chance: 0).text.hasPrefix(head))
    }

    @Test(
        "an id is parsed in any case and refused when invalid",
        arguments: ["", "01ARYZ6S41", "01ARYZ6S41U0000000000000I0"])
    func refused(_ text: String) {
        #expect(UploadID(text) == nil)
        let id = UploadID(time: WallTime(milliseconds: 5), chance: 77)
        #expect(UploadID(id.text.lowercased()) == id)
    }
}
