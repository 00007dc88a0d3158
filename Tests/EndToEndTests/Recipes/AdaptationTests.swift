import Core
import TestKit
import Testing

/// The lists of replacements by which tests differ from a recipe.
@Suite("Replacements in recipes", .timeLimit(.minutes(Patience.minutes(1))))
struct AdaptationTests {
    @Test("each text is replaced wherever it is, and one that is not there fails the test")
    func missing() throws {
        let text = "path: /srv/camera\nmove: /srv/camera/done\n"
        let made = try Adaptation.of(text, replacing: [("/srv/camera", "/tmp/x"), ("done", "kept")])
        #expect(made == "path: /tmp/x\nmove: /tmp/x/kept\n")
        #expect(throws: Adaptation.Missing.self) { try Adaptation.of(text, replacing: [("/srv/cameras", "/tmp/x")]) }
        let fixture = try DaemonFixture(source: .keep, binary: "/bin/false")
        #expect(throws: Adaptation.Missing.self) { try fixture.use(recipe: "remux", replacing: [("/srv/camera", "/")]) }
        try fixture.use(recipe: "remux", replacing: [("/srv/recordings", "/tmp/x")])
        #expect(fixture.wholeConfiguration?.contains("path: /tmp/x\n") == true)
    }
}
