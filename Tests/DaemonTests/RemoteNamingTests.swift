import Core
import Linux
import Staging
import TestKit
import Testing

@testable import Daemon

@Suite("Remote names")
struct RemoteNamingTests {
    /// 2026-11-20 08:09:10 UTC; the tests set no time zone, so only values that are the same everywhere are tested.
    let naming = RemoteNaming(
        folder: "cam", relative: FilePath(bytes: Array("sub/clip\u{E4}.mp4".utf8) + [0xFF]), size: 42,
        modified: 1_795_162_150_000_000_000, sha256: [0xAB, 0xCD], id: "7")

    @Test(
        "every placeholder is filled in, byte for byte",
        arguments: [
            ("{folder}/{relative}", "cam/sub/clip\\xff"), ("{size}-{id}-{sha256}", "42-7-abcd"), ("{dir}", "sub"),
            ("{year}-{month}", "2026-11"), ("{recorded:%Y%%}", "2026%"), ("{{{folder}}}", "{cam}"),
        ])
    func filled(_ template: String, _ expected: String) throws {
        let made = FilePath(bytes: naming.fill(try Template(template))).display
        #expect(made == expected.replacing("clip\\xff", with: "clip\u{E4}.mp4\\xff"))
    }

    @Test(
        "placeholders take facts from the recording",
        arguments: [
            ("{recorded:%Y}", "2024"), ("{duration}_{width}x{height}", "1m05s_64x48"), ("{camera}", "Acme _5{"),
            ("{modified:%Y}", "2026"),
        ])
    func facts(_ template: String, _ expected: String) throws {
        var naming = naming
        naming.facts = MediaFacts(
            recorded: WallTime(milliseconds: 1_714_558_830_000), duration: 65_400, width: 64, height: 48, make: "Acme",
            model: "/5{")
        #expect(naming.fill(try Template(template)) == Array(expected.utf8))
        // The target of a move keeps them, and leaves the rest for the day of the move.
        let target = try Template("/done/\(template)/{id}{{/{modified:%m}")
        guard case .move(let settled) = naming.settled(.move(to: target)) else { throw NotSettled() }
        #expect(!settled.namesMediaFacts)
        var later = naming
        later.facts = MediaFacts()
        #expect(later.fill(settled) == naming.fill(target))
    }

    private struct NotSettled: Error {}

    @Test("without facts, the file's time replaces the recording's and other facts are empty")
    func noFacts() throws {
        let template = try Template("{recorded:%Y-%m}|{duration}{width}{height}{camera}|{modified:%Y-%m}")
        #expect(naming.fill(template) == Array("2026-11||2026-11".utf8))
    }

    @Test("a camera name with path components cannot leave the folder")
    func climbing() throws {
        var naming = naming
        naming.facts = MediaFacts(model: "../..")
        #expect(naming.target(try Template("/done/{camera}/{id}")) == MoveTarget(base: "/done", relative: "_../7"))
    }

    @Test(
        "a remote name is relative and cannot climb above its root, whatever produced it",
        arguments: [
            ("/{folder}//x/./{name}", "cam/x/a"), ("../../{name}", "a"), ("{dir}/{name}", "a"), ("{dir}", "a"),
        ])
    func remote(_ template: String, _ expected: String) throws {
        let naming = RemoteNaming(folder: "cam", relative: "a", size: 1, modified: 0)
        #expect(naming.remoteName(try Template(template)) == FilePath(expected))
    }
}
