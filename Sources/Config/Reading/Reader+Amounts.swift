package import Core

// Amounts with units: bytes and lengths of time.

extension Reader where Value == Int64 {
    /// `20 GB`, `8 MiB`, `1.5 GB`, `0`. A bare number other than 0 is refused, since its unit is unknown.
    static var bytes: Reader {
        let expected = "an amount with its unit, like `20 GB` or `8 MiB`"
        return Reader(expected: expected, kind: .bytes) { text throws(ValueError) in
            if text == "0" { return 0 }
            let amount = try Amount.single(text)
            guard !amount.unit.isEmpty else {
                throw ValueError("takes \(expected), not \(text) without a unit")
            }
            guard let factor = byteUnits.first(where: { $0.name == amount.unit })?.bytes else {
                throw ValueError(
                    "\(quoted(amount.unit)) is not a unit of bytes"
                        + suggestion(for: amount.unit, among: byteUnits.map(\.name)),
                    offset: amount.unitOffset)
            }
            guard let bytes = amount.times(factor) else { throw ValueError("is more than 8 EiB") }
            return bytes
        }
    }
}

extension Reader where Value == Duration {
    /// `90s`, `2h`, `500ms`, `1h30m`, `0`. Each unit once, the larger first.
    static func duration(_ range: ClosedRange<Duration>) -> Reader {
        let expected = "a length of time with its unit, like `90s`, `1h30m` or `500ms`"
        return Reader(expected: expected, kind: .duration(range)) { text throws(ValueError) in
            let duration = text == "0" ? .zero : try sum(text, expected: expected)
            guard range.contains(duration) else {
                throw ValueError(
                    "takes a length of time from \(writtenTime(range.lowerBound)) to \(writtenTime(range.upperBound)), "
                        + "not \(quoted(text))")
            }
            return duration
        }
    }

    private static func sum(_ text: String, expected: String) throws(ValueError) -> Duration {
        var total: Int64 = 0
        var last = Int64.max
        var rest = Array(text.unicodeScalars)[...]
        repeat {
            let amount = try Amount.first(of: &rest)
            guard !amount.unit.isEmpty else {
                throw ValueError("takes \(expected), not \(text) without a unit")
            }
            guard let factor = timeUnits.first(where: { $0.name == amount.unit })?.milliseconds else {
                throw ValueError(
                    "\(quoted(amount.unit)) is not a unit of time; there are: ms, s, m (minutes), h, d",
                    offset: amount.unitOffset)
            }
            guard factor < last else { throw ValueError("has its units out of order; write the larger one first") }
            last = factor
            guard let part = amount.times(factor), case let (sum, isTooMuch) = total.addingReportingOverflow(part),
                !isTooMuch, sum < 1 << 53
            else { throw ValueError("is too long") }
            total = sum
            while rest.first == " " { rest.removeFirst() }
        } while !rest.isEmpty
        return .milliseconds(total)
    }
}

extension Reader where Value == Duration? {
    /// A length of time, or `never`, for which `0` may be written too.
    static func duration(atLeast least: Duration) -> Reader {
        Reader(expected: "a length of time like `7d`, or `never`", kind: .durationOrNever(least)) {
            text throws(ValueError) in
            if text == "never" || text == "0" { return nil }
            return try Reader<Duration>.duration(least ... .seconds(10 * 366 * 86_400)).read(text)
        }
    }
}

extension Reader where Value == RequestRate {
    /// `5/s`, `100/min`, `1000/h`.
    static var requestRate: Reader {
        let expected = "a number of requests and a time, like `5/s`, `100/min` or `1000/h`"
        let units = RequestRate.Unit.allCases.map(\.rawValue)
        return Reader(
            expected: expected,
            kind: .string(
                "number of requests, and `/s`, `/min` or `/h`",
                pattern: "^[1-9][0-9]{0,6}/(\(units.joined(separator: "|")))$")
        ) { text throws(ValueError) in
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2 else { throw ValueError("takes \(expected), not \(quoted(text))") }
            guard let unit = RequestRate.Unit(rawValue: parts[1]) else {
                throw ValueError(
                    "\(quoted(parts[1])) is not a unit; there are: \(units.joined(separator: ", "))",
                    offset: parts[0].unicodeScalars.count + 1)
            }
            guard let count = Int(parts[0]), (1...9_999_999).contains(count), String(count) == parts[0] else {
                throw ValueError("takes a number of requests from 1 to 9999999, not \(quoted(parts[0]))")
            }
            return RequestRate(count: count, per: unit)
        }
    }
}

extension Reader where Value == UnsureReleaseRule {
    /// `keep`, `delete`, `after 10m`.
    static var releaseUnsure: Reader {
        let expected = "`keep`, `delete`, or a length of time like `after 10m`"
        return Reader(expected: expected, kind: .releaseUnsure) { text throws(ValueError) in
            switch text {
            case "keep": return .keep
            case "delete": return .delete
            default:
                guard text.hasPrefix("after ") else { throw ValueError("takes \(expected), not \(quoted(text))") }
                let time = String(text.dropFirst(6).drop { $0 == " " })
                let range = Duration.seconds(1) ... .seconds(365 * 86_400)
                return .after(try Reader<Duration>.duration(range).read(time))
            }
        }
    }
}

extension UnsureReleaseRule {
    /// The form of the file.
    package var written: String {
        switch self {
        case .keep: "keep"
        case .delete: "delete"
        case .after(let time): "after \(writtenTime(time))"
        }
    }
}

extension Backoff {
    /// The form of a configuration: `retry: {first: 5s, max: 30m}`.
    package var written: String { "retry: " + Self.uploadKeys.inFile(of: self).yaml }
}

/// A number with up to three decimals, and its unit. Large enough for every `Int64` in the smallest unit.
private struct Amount {
    var thousandths: Int128
    var unit: String
    /// The offset of the unit, in Unicode scalars.
    var unitOffset: Int

    /// - Returns: `nil` on overflow.
    func times(_ factor: Int64) -> Int64? {
        Int64(exactly: thousandths * Int128(factor) / 1000)
    }

    /// The whole text as one amount.
    static func single(_ text: String) throws(ValueError) -> Amount {
        var rest = Array(text.unicodeScalars)[...]
        let amount = try first(of: &rest)
        guard rest.isEmpty else { throw .plain }
        return amount
    }

    /// Removes a number, spaces and a unit from the front.
    static func first(of rest: inout ArraySlice<Unicode.Scalar>) throws(ValueError) -> Amount {
        let whole = digits(&rest)
        var decimals: [Unicode.Scalar] = []
        if rest.first == "." {
            rest.removeFirst()
            decimals = digits(&rest)
            guard (1...3).contains(decimals.count) else { throw .plain }
        }
        guard !whole.isEmpty, whole.count <= 19 else { throw .plain }
        let padding = Array(repeating: Unicode.Scalar("0"), count: 3 - decimals.count)
        let text = String(String.UnicodeScalarView(whole + decimals + padding))
        guard let thousandths = Int128(text) else { throw .plain }
        while rest.first == " " { rest.removeFirst() }
        let offset = rest.startIndex
        let unit = rest.prefix { $0.properties.isAlphabetic || $0 == "/" }
        rest.removeFirst(unit.count)
        guard !unit.isEmpty || rest.isEmpty else { throw .plain }
        return Amount(thousandths: thousandths, unit: String(String.UnicodeScalarView(unit)), unitOffset: offset)
    }

    private static func digits(_ rest: inout ArraySlice<Unicode.Scalar>) -> [Unicode.Scalar] {
        let digits = rest.prefix { ("0"..."9").contains($0) }
        rest.removeFirst(digits.count)
        return Array(digits)
    }
}
