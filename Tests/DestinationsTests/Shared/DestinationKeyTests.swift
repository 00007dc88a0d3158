import Core
import Testing

@testable import Destinations

@Suite("Tables of keys of destinations")
struct DestinationKeyTests {
    private enum Flavour: String, CaseIterable { case sweet, sour, salty }

    private struct Cake: DeclaredSettings {
        var size: Int64 = 16 << 20
        var pieces = 4
        var isWarm = false
        var time: Duration = .seconds(600)
        var flavour = Flavour.sweet
        var second: Flavour?
        var name: String?
        var guests: [String] = []
        var recipe: FilePath?
        var secret: SecretSource?
        var plate = Plate()
        var layers = 0

        static let defaults = Cake()
        static let keys = DestinationKey<Cake>.table {
            DestinationKey("size", \.size, "Its size; {default} by default.")
            DestinationKey("pieces", \.pieces, as: .whole(1...9), "{default} by default.")
            DestinationKey("warm", \.isWarm, "`{default}` by default.")
            DestinationKey("time", \.time, "{default} by default.")
            DestinationKey("flavour", \.flavour, among: [.sweet, .sour], "`sweet` (default) or `sour`.")
            DestinationKey("second", \.second, "The second one.")
            DestinationKey("name", \.name, "Its name.")
            DestinationKey("guests", \.guests, "Who gets some.")
            DestinationKey("recipe", \.recipe, "The recipe.")
            DestinationKey("secret", \.secret, required: true, "The secret.")
            DestinationKey("table", [DestinationKey("plate", Plate.keys.map { $0.of(\.plate) }, "A.")], "B.")
            DestinationKey("layers", .texts, "Names.") { $1.layers = [String].of($0)?.count ?? 0 }
            DestinationKey("notes", .text, "Read elsewhere.")
        }
    }

    private struct Plate: DeclaredSettings {
        var width: Duration = .seconds(60)

        static let defaults = Plate()
        static let keys = [DestinationKey<Plate>("width", \.width, "{default} by default.")]
    }

    @Test("the declaration has the name, the kind and the default of each key")
    func declarations() {
        let flat = Cake.keys.map(\.setting).flatMap(\.flat)
        #expect(
            flat.map { "\($0.name): \($0.kind)\($0.isRequired ? "!" : ""), \($0.summary)" } == [
                "size: size, Its size; 16 MiB by default.", "pieces: whole(ClosedRange(1...9)), 4 by default.",
                "warm: flag, `false` by default.", "time: duration, 10 min by default.",
                "flavour: choice([\"sweet\", \"sour\"]), `sweet` (default) or `sour`.",
                "second: choice([\"sweet\", \"sour\", \"salty\"]), The second one.", "name: text, Its name.",
                "guests: texts, Who gets some.", "recipe: path, The recipe.", "secret: secret!, The secret.",
                "table.plate.width: duration, 60 s by default.", "layers: texts, Names.",
                "notes: text, Read elsewhere.",
            ])
    }

    @Test("each value is stored in its property, and all others are the defaults")
    func reading() {
        let none = Cake.keys.settings([:])
        #expect(none.size == 16 << 20 && none.pieces == 4 && none.second == nil && none.plate.width == .seconds(60))
        let cake = Cake.keys.settings([
            "size": .bytes(3), "pieces": .whole(2), "warm": .flag(true), "time": .duration(.seconds(1)),
            "flavour": .text("sour"), "second": .text("salty"), "name": .text("a"), "guests": .texts(["b", "c"]),
            "recipe": .path("/r"), "secret": .secret(.literal("s")), "table.plate.width": .duration(.seconds(2)),
            "layers": .texts(["d", "e", "f"]), "notes": .text("g"),
        ])
        #expect(cake.size == 3 && cake.pieces == 2 && cake.isWarm && cake.time == .seconds(1))
        #expect(cake.flavour == .sour && cake.second == .salty && cake.name == "a" && cake.guests == ["b", "c"])
        #expect(cake.recipe == "/r" && cake.secret == .literal("s") && cake.plate.width == .seconds(2))
        #expect(cake.layers == 3)
    }

    @Test("a value of another kind, and a word that is none, change nothing")
    func otherKinds() {
        let cake = Cake.keys.settings([
            "size": .whole(3), "flavour": .text("bitter"), "second": .flag(true), "width": .duration(.seconds(2)),
            "table.width": .duration(.seconds(2)),
        ])
        #expect(cake.size == 16 << 20 && cake.flavour == .sweet && cake.second == nil)
        #expect(cake.plate.width == .seconds(60))
    }

    @Test("no description has a placeholder for a default")
    func placeholders() {
        for type in DestinationTable.builtIn.map(\.type) {
            for key in type.keys.flatMap(\.flat) {
                #expect(!key.summary.contains("{default}"), "\(type.name).\(key.name)")
            }
        }
    }

    /// `the word` (default), and (`the word`, default).
    private static func compare<Owner>(_ keys: [DestinationKey<Owner>]) -> Int {
        var compared = 0
        for key in keys {
            guard let fallback = key.fallback,
                let named = key.setting.summary.firstMatch(of: /`([^`]+)`(?: once)?(?:,| \() ?default\)/)
            else { continue }
            #expect(String(named.1) == fallback, "\(key.setting.name)")
            compared += 1
        }
        return compared
    }

    @Test("a description of words names the default that the settings have")
    func words() {
        #expect(Self.compare(Cake.keys) == 1)
        #expect(Self.compare(S3.keys) == 1)
        #expect(Self.compare(OSS.keys) == 1)
        #expect(Self.compare(ApsaraSettings.keys) == 1)
        #expect(Self.compare(VimeoSettings.keys) == 2)
        #expect(Self.compare(TusSettings.keys) == 4)
        #expect(Self.compare(FormTransfer.keys) == 2)
        #expect(Self.compare(DirectorySettings.keys) == 1)
    }
}
