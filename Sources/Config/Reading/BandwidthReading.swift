internal import Core

/// Reads `bandwidth` at any place: one rate, or a list of them with their times.
extension SettingsReading {
    func bandwidth(_ fields: MappingReader) -> [PolicyRules.RateRule] {
        guard let node = fields.node("bandwidth") else { return [] }
        if case .scalar = node.content {
            return fields.read("bandwidth", as: .rate).map { [.init(limit: $0.value)] } ?? []
        }
        guard
            let items = fields.items(
                "bandwidth", expected: "a rate, like `2 MB/s`, or a list like `[{between: 08:00-18:00, limit: 2 MB/s}]`"
            )
        else { return [] }
        return items.enumerated().compactMap { index, item in
            let key = "\(fields.path(of: "bandwidth"))[\(index)]"
            guard case .mapping = item.content else {
                return findings.read(item, path: key, as: .rate).map { .init(limit: $0) }
            }
            let rule = MappingReader(item, .rate, path: key, start: item.start, findings: findings)
            rule.require("limit", "name the rate, like `limit: 2 MB/s`")
            var rate = PolicyRules.RateRule(limit: nil)
            let readable = PolicyRules.RateRule.keys.read(rule, into: &rate, self)
            if rule.has("between") {
                rate.window = window(rule)
            } else if rule.has("except") {
                rule.error("belongs to `between`; add that, or take this out", "except")
            }
            // A rule whose time could not be read would always apply.
            return readable.contains("limit") && rule.has("between") == (rate.window != nil) ? rate : nil
        }
    }
}

extension PolicyRules.RateRule: SettingsValue {
    static let keys: [Key<Self>] =
        [Key("limit", \.limit, .rate) { .rate($0) }] + Window.keys.map { $0.of(optional: \.window) }

    var inFile: WrittenValue { Self.keys.inFile(of: self) }
}

/// Bytes a second from `2 MB/s`, `8 Mbit/s` or `0`, in the form of a configuration; `nil` for any other text, and for
/// no limit.
package func readRate(_ text: String) -> Int64? { (try? Reader<Int64?>.rate.read(text)) ?? nil }

extension Reader where Value == Int64? {
    /// `2 MB/s`, `200 kB/s`, `8 Mbit/s`, `0`, `unlimited`. Bytes a second.
    static var rate: Reader {
        let expected = "a rate, like `2 MB/s`, `8 Mbit/s` or `unlimited`"
        return Reader(expected: expected, kind: .rate) { text throws(ValueError) in
            if text == "unlimited" { return nil }
            if text == "0" { return 0 }
            guard text.hasSuffix("/s") else {
                throw ValueError(
                    "takes \(expected), not \(quoted(text))"
                        + (text.last.map { $0.isLetter } ?? false ? "; a rate ends in `/s`" : ""))
            }
            let amount = String(text.dropLast(2))
            if amount.hasSuffix("bit") {
                let bits = String(amount.dropLast(3)) + "B"
                return try Reader<Int64>.bytes.read(bits) / 8
            }
            return try Reader<Int64>.bytes.read(amount)
        }
    }
}
