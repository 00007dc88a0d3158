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
}
