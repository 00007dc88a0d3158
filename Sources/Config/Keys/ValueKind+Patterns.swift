internal import Core

// Regular expressions for amounts, in the form that JSON Schema requires (ECMA-262).

extension ValueKind {
    static let sharePattern = "^(100|[1-9][0-9]?)%$"

    private static let number = "[0-9]{1,19}(\\.[0-9]{1,3})? *"

    /// An amount of bytes: `20 GB`, `1.5 GB`, `0`.
    static let bytesPattern = "^(0|\(number)(\(byteUnits.map(\.name).joined(separator: "|"))))$"

    /// A length of time: each unit once, the larger first; `0`.
    static let durationPattern = "^(0|\(durationParts))$"
    static let durationOrNeverPattern = "^(0|never|\(durationParts))$"

    static let durationParts =
        "(?=[0-9])" + timeUnits.map { "(\(number)\($0.name)(?![a-z]) *)?" }.joined()

    /// A rate in bytes or in bits: `2 MB/s`, `8 Mbit/s`, `0`, `unlimited`.
    static let ratePattern: String = {
        let units = byteUnits.flatMap { [$0.name, $0.name.dropLast() + "bit"] }
        return "^(0|unlimited|\(number)(\(units.joined(separator: "|")))/s)$"
    }()
}
