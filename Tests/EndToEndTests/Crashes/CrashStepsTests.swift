import Core
import Linux
import TestKit
import Testing

/// The names that `SLUICE_TEST_CRASH` accepts, by the component and time that they belong to.
enum CrashSteps {
    /// In the order in which a file reaches them.
    static let onTheWay = [
        "arrived", "copied", "renamed", "staged", "claimed", "opening", "opened", "accepted", "verified", "completed",
    ]
    static let release = ["release-begun", "release-renamed", "release-done"]
    /// Only where verified sources are removed to free space.
    static let retention = ["expired"]
    /// Only where another version has the source's name when it is to be released.
    static let changed = ["source-changed"]
    /// Only where `move` leads to the same file system.
    static let within = ["release-moved"]
    /// Only where `move` leads to another file system.
    static let across = ["release-copied"]
    static let receiver = ["receiver-named", "receiver-renamed"]
    /// Only where a person ends an upload.
    static let byPerson = ["cancelled", "dismissed"]
    /// Only for the last copy of a file that is no longer sent.
    static let rescue = ["copy-rescued"]
    /// After every transaction.
    static let everywhere = ["committed"]
    /// Only with a `directory` destination: `ArchiveTests`.
    static let directory = ["part-synced", "part-verified", "part-renamed"]
    /// Only with a destination that accepts parts: `FormTests`.
    static let parts = ["part-answered", "parts-completed"]
    /// Only where bytes are handed over: `ReceivingTests`.
    static let receiving = ["receiving", "received", "taken"]
    /// Steps of `sluice rebuild`: `RebuildTests`.
    static let rebuild = [
        "rebuild-copy", "rebuild-restored", "rebuild-finished", "rebuild-aside", "rebuild-set-aside", "rebuild-done",
    ]
    /// Only with a hook: `HookTests`.
    static let hooks = ["hook-queued", "hook-delivered"]
    /// Only with a `before_upload`: `BeforeUploadTests`.
    static let beforeUpload = ["asked", "approved"]
    static let all =
        onTheWay + release + changed + retention + within + across + receiver + byPerson + rescue + everywhere
        + directory + rebuild + hooks + beforeUpload + parts + receiving
}

@Suite("Crash points")
struct CrashStepsTests {
    @Test("every crash point in the sources is tested, and every tested one exists")
    func complete() throws {
        let root = Repository.root.appending("Sources")
        var found: Set<String> = []
        for path in try Outcome.files(in: root, hidden: false) where path.fileExtension == "swift" {
            let text = String(decoding: try Files.read(root.appending(path)), as: UTF8.self)
            for line in text.split(separator: "\n") where line.contains("CrashPoint.reached(\"") {
                found.insert(String(line.drop { $0 != "\"" }.dropFirst().prefix { $0 != "\"" }))
            }
        }
        #expect(found == Set(CrashSteps.all))
    }
}
