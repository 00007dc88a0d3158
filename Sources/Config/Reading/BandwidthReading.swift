internal import Core

/// Reads `bandwidth` at any place: one rate, or a list of them with their conditions.
extension SettingsReading {
    func bandwidth(_ fields: MappingReader, in owner: Section) -> [RateRule] {
        guard let node = fields.node("bandwidth") else { return [] }
        if case .scalar = node.content {
            return fields.read("bandwidth", as: .rate).map { [.init(limit: $0.value, place: place(at: node.start))] }
                ?? []
        }
        let expected =
            "a rate, like `2 MB/s`, or a list like `[{limit: 2 MB/s, when: {between: \"08:00-18:00\"}}]`"
        guard let items = fields.items("bandwidth", expected: expected) else { return [] }
        return items.enumerated().compactMap { index, item in
            let key = "\(fields.path(of: "bandwidth"))[\(index)]"
            guard case .mapping = item.content else {
                return findings.read(item, path: key, as: .rate).map { .init(limit: $0, place: place(at: item.start)) }
            }
            if ReplacedKeys(findings).reportTimes(in: item, path: key) { return nil }
            let inner = MappingReader(item, .rate, path: key, start: item.start, findings: findings)
            inner.require("limit", "name the rate, like `limit: 2 MB/s`")
            var rule = RateRule(limit: nil)
            let readable = RateRule.keys.read(inner, into: &rule, self)
            rule.place = place(of: inner)
            rule.when = ConditionReading(self, in: owner).condition(of: inner)
            // A rule whose condition could not be read would always apply.
            return readable.contains("limit") && inner.has("when") == (rule.when != nil) ? rule : nil
        }
    }

    /// The place of a rule in messages: `sluice.yaml:12`.
    func place(of rule: MappingReader) -> String { place(at: rule.start) }

    func place(at location: ConfigLocation) -> String {
        "\(findings.sources[location.file].file.name.display):\(location.line)"
    }
}

extension RateRule: SettingsValue {
    static let keys: [Key<Self>] = [
        Key("name", \.name, .name), Key("limit", \.limit, .rate) { .rate($0) },
        Key("when", of: \.when) { when, _ in .value(when.inFile) }.takes(.oneOrList(.section("when"))),
    ]

    var inFile: WrittenValue {
        when == nil && name == nil ? .rate(limit) : Self.keys.inFile(of: self)
    }
}

/// Bytes a second from `2 MB/s`, `8 Mbit/s` or `0`, in the form of a configuration; `nil` for any other text, and for
/// no limit.
package func readRate(_ text: String) -> Int64? { (try? Reader<Int64?>.rate.read(text)) ?? nil }

/// Bytes from `5 GB`, `2GB` or `0`, in the form of a configuration; `nil` for any other text.
package func readBytes(_ text: String) -> Int64? { try? Reader<Int64>.bytes.read(text) }

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
