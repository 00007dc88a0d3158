import API
import Testing

@testable import Daemon

@Suite("Names in requests")
struct KnownNamesTests {
    private static let names = KnownNames(folders: ["cam", "door"], destinations: ["nas"])

    @Test("configured names and absent names are accepted")
    func known() throws {
        try Self.names.require(folder: "cam", destination: "nas")
        try Self.names.require(folder: nil, destination: nil)
    }

    @Test("an unknown name is refused, with the nearest name or all of them")
    func unknown() {
        #expect {
            try Self.names.require(folder: "doof", destination: nil)
        } throws: {
            guard let refusal = $0 as? Refusal else { return false }
            return refusal.code == .notFound && refusal.message.contains("did you mean `door`?")
        }
        #expect {
            try Self.names.require(folder: "kitchen-7", destination: nil)
        } throws: { ($0 as? Refusal)?.message.contains("cam, door") == true }
        #expect(throws: Refusal.self) { try Self.names.require(folder: "nas", destination: nil) }
    }

    @Test("the name of a pattern is refused with the names of its cards, and not as if it were misspelt")
    func pattern() {
        func refusal(_ names: KnownNames, _ folder: String) -> String? {
            do { try names.require(folder: folder, destination: nil) } catch { return error.message }
            return nil
        }
        let cards = (1...50).map { "card-\($0)" }
        let names = KnownNames(
            folders: cards + ["-"], destinations: ["nas"], patterns: ["card": Array(cards), "usb": []])
        #expect(
            refusal(names, "card")?.contains("stands for a folder on each card, so name one of these: card-1,") == true)
        #expect(refusal(names, "card")?.hasSuffix("card-40 and 10 more") == true)
        #expect(refusal(names, "usb")?.contains("no card was mounted yet") == true)
        #expect(refusal(names, "kitchen-floor")?.hasSuffix("and 11 more") == true)
        #expect(refusal(names, "card-7") == nil)
    }
}
