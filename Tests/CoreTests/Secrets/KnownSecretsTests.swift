import Core
import TestKit
import Testing

@Suite("Known secrets")
struct KnownSecretsTests {
    @Test("a secret is hidden in whatever base 64 it is part of, with either alphabet, and in other encodings")
    func encodings() {
        let secret = "päss/word>?~x"
        let known = KnownSecrets()
        known.remember(secret)
        #expect(known.cover("it is \(secret).") == "it is ***.")
        for before in ["", "u", "us", "user:", "Bearer "] {
            for after in ["", "@", "@h", "@host"] {
                let coded = base64(Array((before + secret + after).utf8))
                for text in [coded, coded.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")]
                {
                    let covered = known.cover("sent \(text) twice")
                    #expect(covered.contains("***"), "\(text)")
                    // The characters at both ends depend on the neighbours too.
                    let left = covered.dropFirst(5).dropLast(6).replacing("***", with: "")
                    #expect(left.utf8.count <= (before.utf8.count + after.utf8.count + 4) * 4 / 3 + 4, "\(covered)")
                }
            }
        }
        #expect(known.cover("at p%C3%A4ss%2Fword%3E%3F~x") == "at ***")
    }

    @Test("short values are words of any message and stay; a value that is still used outlives many others")
    func bounds() {
        let known = KnownSecrets()
        known.remember("waiting")
        #expect(known.cover("upload is waiting") == "upload is waiting")
        known.remember("the-lasting-token")
        for number: UInt64 in 0..<1000 {
            known.remember(Self.value(number))
            known.remember("the-lasting-token")
        }
        #expect(known.cover("the-lasting-token \(Self.value(999))") == "*** ***")
        #expect(known.cover(Self.value(0)) == Self.value(0))
    }

    @Test("secrets of the configuration are hidden however many values came after them, until another one is loaded")
    func configured() {
        let known = KnownSecrets()
        let (file, command) = (SecretSource.file("/token"), SecretSource.command(["/bin/token"]))
        known.replaceConfiguration(texts: ["the-argument", "/srv/a b=the-folder", "short"], sources: [file, command])
        known.remember("the-token-in-the-file", from: file)
        known.remember("a-value-from-elsewhere", from: .environment("OTHER"))
        for number: UInt64 in 0..<300 { known.remember(Self.value(number), from: command) }
        let secrets = "the-argument the-token-in-the-file \(Self.value(299)) \(Self.value(290))"
        #expect(known.cover(secrets) == "*** *** *** ***")
        #expect(known.cover(Self.value(0)) == Self.value(0), "an old value of a command")
        #expect(known.cover("a-value-from-elsewhere") == "a-value-from-elsewhere")
        #expect(known.cover("/srv/a b=the-folder") == "***")
        #expect(known.cover("to the-folder, short") == "to the-folder, short", "parts of a text are words")

        known.replaceConfiguration(texts: ["a-newer-password"], sources: [file])
        #expect(known.cover("a-newer-password \(secrets)") == "*** *** *** *** ***", "a program may still use the old")
        for number: UInt64 in 300..<600 { known.remember(Self.value(number)) }
        #expect(known.cover("a-newer-password the-token-in-the-file the-argument") == "*** *** the-argument")
    }

    /// Values that have no long part in common.
    private static func value(_ number: UInt64) -> String {
        // Without the shift a multiple of 16 would have the digits of another value.
        let mixed = (number + 1) &* 0x9E37_79B9_7F4A_7C15
        return "value" + String((mixed ^ (mixed >> 31)) &* 0xBF58_476D_1CE4_E5B9, radix: 16)
    }

    @Test("any generated secret is hidden in any text, in each encoding", arguments: 0..<50 as Range<UInt64>)
    func generated(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        let letters = Array("abcdefXYZ0189-_.~!/+=%&\"'\\<> äß🎥")
        let known = KnownSecrets()
        let secret = String(
            (0..<Int.random(in: 12...40, using: &dice)).map { _ in letters.randomElement(using: &dice) ?? "a" })
        known.remember(secret)
        for (before, after) in [("", ""), ("token ", " is wrong"), ("{\"t\":\"", "\"}"), ("x", "y")] {
            for form in [secret, base64(Array(secret.utf8)), PercentCoding.encode(secret.utf8)] {
                let covered = known.cover(before + form + after)
                #expect(!covered.contains(form), "\(secret) in \(covered)")
                #expect(covered.hasPrefix(before) && covered.hasSuffix(after), "\(covered)")
            }
        }
    }
}
