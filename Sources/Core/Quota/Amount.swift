/// An amount of bytes for people: `999 B`, `1.2 MB`, `118 MB`, in decimal units with three digits.
package func shownBytes(_ count: Int64) -> String {
    let names = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
    var value = Double(count)
    var step = 0
    // 999.5 would be shown as 1000.
    while value >= (step == 0 ? 1000 : 999.5) && step < names.count - 1 {
        value /= 1000
        step += 1
    }
    if step == 0 { return "\(count) B" }
    if value >= 99.95 { return "\(Int(value + 0.5)) \(names[step])" }
    let tenths = Int(value * 10 + 0.5)
    return "\(tenths / 10).\(tenths % 10) \(names[step])"
}

/// The units of amounts of bytes, in configurations and on the command line.
package let byteUnits: [(name: String, bytes: Int64)] = [
    ("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40),
]

/// Bytes from `20 GB`, `8 MiB`, `500`; `nil` for anything else.
package func byteCount(in text: String) -> Int64? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let unit = text.dropFirst(digits.count).drop { $0 == " " }
    guard let number = Int64(digits),
        let factor = unit.isEmpty ? 1 : byteUnits.first(where: { $0.name == unit })?.bytes
    else { return nil }
    let (bytes, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow ? nil : bytes
}

/// Seconds from `90s`, `2h`, `1h30m`, `1d`; `nil` for anything else, for zero, and for more than 10 years.
package func seconds(in text: String) -> Int64? {
    let factors: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
    var total: Int64 = 0
    var digits = ""
    for letter in text where letter != " " {
        if letter.isASCII && letter.isNumber {
            digits.append(letter)
        } else {
            guard let factor = factors[letter], let number = Int64(digits), number < 1_000_000_000, total < 1 << 60
            else { return nil }
            total += number * factor
            digits = ""
        }
    }
    return digits.isEmpty && (1...315_360_000).contains(total) ? total : nil
}

/// In milliseconds, longest first.
package let timeUnits: [(name: String, milliseconds: Int64)] = [
    ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
]

/// A duration in the form of a configuration: `1h30m`.
package func writtenTime(_ duration: Duration) -> String {
    var rest = duration.inMilliseconds
    var text = ""
    for (name, milliseconds) in timeUnits where rest >= milliseconds {
        text += "\(rest / milliseconds)\(name)"
        rest %= milliseconds
    }
    return text.isEmpty ? "0" : text
}

/// An amount in the form of a configuration, with the largest unit that gives a whole number: `20 GB`, `8 MiB`.
package func writtenBytes(_ bytes: Int64) -> String {
    if bytes == 0 { return "0" }
    let unit = byteUnits.filter { bytes % $0.bytes == 0 }.max { $0.bytes < $1.bytes }
    return unit.map { "\(bytes / $0.bytes) \($0.name)" } ?? "\(bytes) B"
}
