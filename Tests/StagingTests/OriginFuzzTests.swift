import Core
import FoundationEssentials
import Linux
import TestKit
import TestTraits
import Testing

@testable import Staging

/// The damaged origin of a copy: it places the copy below its folder, or gives no result.
@Suite("Fuzz: attributes of a copy", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct OriginFuzzTests {
    @Test("attributes are absent or lead below the folder, and parse to the same value when written again")
    func origins() throws {
        let folder = TemporaryFolder()
        let path = try folder.write("1", [1, 2, 3])
        let copy = try Descriptor.open(path, for: .reading)
        let identity = FileIdentity(
            folder: "cam", relative: "front/clip.mp4", size: 3, modified: 4, inode: 5, born: 6, fileSystem: "disk")
        let whole = CopyOrigin(
            identity, root: "/drop", changed: 7,
            uploads: [.init(id: "01JD", destination: "nas", name: "a/b.mp4", key: "k", context: ["a": "b"])])
        let mutator = Mutator(
            [Array(try JSONEncoder().encode(whole))],
            words: [
                "\"", "\\u0000", "\\ud800", "{", "}", "[", "]", ":", ",", "null", "true", "1e400", "1.5", "2f", "00",
                "2e2e2f", "2e2f", "2f2f", "\"relative\":\"2e2e\",", "\"size\":-1,", "\"uploads\":[],", "é", "\0",
                String(repeating: "[", count: 600),
            ], limit: 3000)
        let fuzz = Fuzz("origins", rounds: 1000)
        var told = 0
        try fuzz.each(mutator) { round in
            // An empty attribute counts as one, too.
            try copy.setAttribute("user.sluice.origin", to: round.input, named: path)
            guard let origin = try CopyOrigin.read(path) else { return }
            try round.expect((origin.identity == nil) == (origin.paths == nil), "an identity without a place")
            guard let paths = origin.paths else { return }
            told += 1
            let place = paths.root.appending(paths.relative)
            try round.expect(place.relative(to: paths.root) == paths.relative, "the copy leads to \(place)")
            try round.expect(!place.bytes.contains(0), "the path contains a NUL: \(place)")
            origin.write(to: copy, named: path)
            try round.expect(try CopyOrigin.read(path) == origin, "the attributes change when written again")
        }
        if fuzz.rounds >= 1000 { #expect(told > fuzz.rounds / 20) }
    }
}
