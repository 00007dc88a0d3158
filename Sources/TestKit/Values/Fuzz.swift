internal import Core
internal import Glibc
internal import Linux

/// A test with damaged input of every kind, in many rounds.
///
/// Each round has its own seed, from which its input can be made again. A failure contains the seed, and then
/// `SLUICE_SEED=N SLUICE_FUZZ=1 swift test --filter NAME` runs only that round. `SLUICE_FUZZ` is the number of rounds
/// of the fastest targets; slower ones take a share of it. Without it the rounds are few and the same each time.
package struct Fuzz: Sendable {
    package let name: String
    package let rounds: Int
    private let first: UInt64

    /// - Parameters:
    ///   - name: For messages, and the name of the file in `SLUICE_FUZZ_TRACE`.
    ///   - usual: Rounds of an ordinary test run.
    ///   - share: The divisor of the number of rounds for this target when many are requested.
    package init(_ name: String, rounds usual: Int, share: Int = 1) {
        self.name = name
        let asked = Self.number("SLUICE_FUZZ")
        rounds = asked.map { max(1, Int(clamping: $0) / max(1, share)) } ?? usual
        first = Self.number("SLUICE_SEED") ?? (asked == nil ? 1 : Random.bytes(7).reduce(0) { $0 << 8 | UInt64($1) })
    }

    /// Whether more rounds than those of an ordinary run are requested.
    private static var isLong: Bool { number("SLUICE_FUZZ") != nil }

    /// The time limit of a suite of such tests: it must catch a hang of one round, and not depend on the requested
    /// number.
    package static var minutes: Int { isLong ? 600 : Patience.minutes(5) }

    /// One round.
    package struct Round: Sendable {
        package let seed: UInt64
        package let input: [UInt8]
        /// For further random numbers of the round.
        package var dice: Dice
        fileprivate let name: String

        package func expect(_ holds: Bool, _ what: @autoclosure () -> String) throws(Flaw) {
            if !holds { throw flaw(what()) }
        }

        package func flaw(_ what: String) -> Flaw { Flaw(name: name, seed: seed, input: input, what: what) }
    }

    /// A failed expectation, and its input.
    package struct Flaw: Error, Sendable, CustomStringConvertible {
        package let name: String
        package let seed: UInt64
        package let input: [UInt8]
        package let what: String
        package var description: String {
            "\(name): \(what)\nagain with: SLUICE_SEED=\(seed) SLUICE_FUZZ=1\ninput: \(escaped(input))"
        }
    }

    package func each(_ mutator: Mutator, _ body: (inout Round) throws -> Void) throws {
        let trace = Trace(name)
        for number in 0..<rounds {
            var round = round(number, mutator, trace)
            try body(&round)
        }
    }

    /// The same for an asynchronous body.
    package func each(
        _ mutator: Mutator, isolation: isolated (any Actor)? = #isolation, _ body: (inout Round) async throws -> Void
    ) async throws {
        let trace = Trace(name)
        for number in 0..<rounds {
            var round = round(number, mutator, trace)
            try await body(&round)
        }
    }

    private func round(_ number: Int, _ mutator: Mutator, _ trace: Trace) -> Round {
        let seed = first &+ UInt64(number)
        trace.note(seed)
        // Neighbouring seeds give different numbers, but the first of them would be shared with the last round's
        // second.
        var dice = Dice(seed: seed &* 0xD134_2543_DE82_EF95)
        let input = mutator.text(&dice)
        return Round(seed: seed, input: input, dice: dice, name: name)
    }

    private static func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }

    /// Writes the seed of the current round to a file in the folder `SLUICE_FUZZ_TRACE`, for a process that traps.
    private final class Trace {
        private let number: CInt

        init(_ name: String) {
            guard let folder = getenv("SLUICE_FUZZ_TRACE"), folder[0] != 0 else {
                number = -1
                return
            }
            number = open("\(String(cString: folder))/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        }

        deinit { if number >= 0 { close(number) } }

        func note(_ seed: UInt64) {
            guard number >= 0 else { return }
            let line = Array("SLUICE_SEED=\(padded(seed)) SLUICE_FUZZ=1\n".utf8)
            // A trace that cannot be written makes a crash harder to find and hides nothing.
            _ = line.withUnsafeBytes { pwrite(number, $0.baseAddress, $0.count, 0) }
        }

        private func padded(_ seed: UInt64) -> String {
            let digits = String(seed)
            return String(repeating: "0", count: 20 - digits.count) + digits
        }
    }
}

/// Whether `part` occurs in `text`, byte for byte: by `Character` an accent after it would hide it.
package func occurs(_ part: String, in text: String) -> Bool { text.utf8.firstRange(of: part.utf8) != nil }

/// Bytes in the form of a Swift string literal: printable ASCII unchanged, all else as `\xHH`.
package func escaped(_ bytes: [UInt8], limit: Int = 4096) -> String {
    var out = ""
    for byte in bytes.prefix(limit) {
        switch byte {
        case UInt8(ascii: "\n"): out += "\\n"
        case UInt8(ascii: "\r"): out += "\\r"
        case UInt8(ascii: "\t"): out += "\\t"
        case UInt8(ascii: "\\"): out += "\\\\"
        case 0x20..<0x7F: out.unicodeScalars.append(Unicode.Scalar(byte))
        default: out += "\\x" + hexadecimal([byte])
        }
    }
    return bytes.count > limit ? out + " … (\(bytes.count) bytes)" : out
}
