internal import Core

/// Reads `quotas` at any place.
extension SettingsReading {
    func quotas(_ fields: MappingReader, in owner: Section) -> [Quota] {
        let items = fields.items("quotas", expected: "a list of quotas, like `[{per: day, bytes: 20 GB}]`") ?? []
        var read: [(index: Int, quota: Quota)] = []
        for (index, item) in items.enumerated() {
            let key = "\(fields.path(of: "quotas"))[\(index)]"
            guard case .mapping = item.content else {
                findings.error(
                    "takes a quota, like `{per: day, bytes: 20 GB}`, not \(item.kindName)", at: item.start, key: key)
                continue
            }
            if ReplacedKeys(findings).reportNetwork(in: item, path: key) { continue }
            let rule = MappingReader(item, .quota, path: key, start: item.start, findings: findings)
            guard let quota = quota(rule, in: owner) else { continue }
            if let name = quota.name, read.contains(where: { $0.quota.name == name }) {
                rule.error("another quota of this list is called \(quoted(name))", "name")
            }
            for (earlier, other) in read where other.period == quota.period && other.when == quota.when {
                let isSame = other.direction == quota.direction
                let twice = [("bytes", isSame ? other.bytes : nil, quota.bytes), ("files", other.files, quota.files)]
                for (name, one, another) in twice where one != nil && another != nil {
                    rule.error(
                        "is counted by quotas[\(earlier)] already, over the same time; keep the smaller one",
                        name)
                }
            }
            read.append((index, quota))
        }
        return read.map(\.quota)
    }

    private func quota(_ fields: MappingReader, in owner: Section) -> Quota? {
        fields.require("per", "name its period: `hour`, `day`, `week` or `month`")
        var quota = Quota(period: .day)
        quota.place = place(of: fields)
        let readable = Quota.keys.read(fields, into: &quota, self)
        quota.when = ConditionReading(self, in: owner).condition(of: fields)
        if fields.has("when") {
            fields.require("name", "the count of a quota with a condition has a name, like `name: lte-plan`")
        } else if fields.has("name") {
            fields.error("names the count of a quota with a condition; add `when`, or take this out", "name")
        }
        if quota.count == .interface { InterfaceCountCheck(fields: fields, owner: owner).check(&quota) }
        if readable.contains("direction"), fields.has("files"), !fields.has("bytes") {
            fields.error("applies to `bytes`; files count when they start", "direction")
        }
        if !fields.has("bytes"), !fields.has("files") {
            fields.findings.error(
                "limits nothing; add `bytes`, like `bytes: 20 GB`, or `files`, like `files: 500`", at: fields.start,
                key: fields.path)
        }
        if let bytes = quota.bytes, bytes > 0, bytes < Quota.minConfigured {
            fields.error(
                "is too little for any file to start; the minimum is \(Quota.minConfigured >> 10) KiB, and 0 stops all transfers",
                "bytes")
        }
        if quota.when == nil {
            for (name, most) in [("bytes", quota.bytes), ("files", quota.files)] where most == 0 {
                fields.warning("stops all transfers; remove the quota, or raise it", name)
            }
        }
        let isNamed = fields.has("when") == (quota.when != nil) && (quota.when != nil) == (quota.name != nil)
        return readable.contains("per") && (quota.bytes != nil || quota.files != nil) && isNamed ? quota : nil
    }

    fileprivate func period(_ fields: MappingReader) -> Period? {
        guard let span = fields.read("per", as: Reader<Period.Span>.choice)?.value else { return nil }
        switch span {
        case .hour, .day:
            if fields.has("starts_on") {
                fields.error(
                    "belongs to `per: week` and `per: month`; "
                        + (span == .day ? "a day begins at midnight" : "an hour begins at minute 0"),
                    "starts_on")
            }
            return span == .day ? .day : .hour
        case .week:
            return .week(startsOn: fields.read("starts_on", as: Reader<Weekday>.firstOfWeek)?.value ?? .mon)
        case .month:
            return .month(startsOn: fields.read("starts_on", as: Reader<Int>.firstOfMonth)?.value ?? 1)
        }
    }
}

/// Checks a quota with `count: interface`: all programs share an interface, whatever folder or destination their bytes
/// are about.
private struct InterfaceCountCheck {
    let fields: MappingReader
    let owner: Section

    func check(_ quota: inout Quota) {
        if owner.path != Section.policy.path {
            fields.error("`interface` counts the bytes of all programs; such a quota belongs under `policy`", "count")
        }
        if fields.has("direction"), quota.direction != .both {
            fields.error("counts both directions with `count: interface`; take it out", "direction")
        }
        quota.direction = .both
        if fields.has("files") {
            fields.error(
                "other programs send no files that could be counted; take it out, or take `count` out", "files")
        }
        guard let when = quota.when else {
            if !fields.has("when") {
                fields.error(
                    "needs a condition that says which interfaces, like `when: {interface: \"wwan*\"}`", "count")
            }
            return
        }
        if !when.dependsOnNetwork {
            fields.error(
                "asks for no network, so it does not say which interfaces count; add `network` or `interface`", "when")
        }
        if when.asksForUpload {
            fields.error(
                "asks for a folder, a destination (`lan` too) or a file, and the bytes of other programs belong to none; "
                    + "take that out, or take `count: interface` out", "when")
        }
    }
}

extension Quota: SettingsValue {
    static let keys: [Key<Self>] = [
        Key("name", \.name, .name),
        Key("per", \.period, { $0.period($1) }) { period, _ in .value(.plain(period.written.span.rawValue)) }
            .takes(.word(Period.Span.allCases.map(\.rawValue))),
        Key("starts_on", of: \.period.written.start) { start, _ in .value(start) }
            .takes(.either([.word(Weekday.allCases.map(\.rawValue)), .whole(1...31)])),
        Key("bytes", \.bytes, .bytes), Key("files", \.files, .files) { .number($0) },
        Key("direction", \.direction).printed { $0.bytes != nil && $0.count == .ours },
        Key("count", \.count).printed { $0.count != .ours },
        Key("when", of: \.when) { when, _ in .value(when.inFile) }.takes(.oneOrList(.section("when"))),
    ]

    var inFile: WrittenValue { Self.keys.inFile(of: self) }
}

extension Period {
    /// The words of `per`.
    fileprivate enum Span: String, CaseIterable { case hour, day, week, month }

    /// The word of `per`, and the value of `starts_on`.
    fileprivate var written: (span: Span, start: WrittenValue?) {
        switch self {
        case .hour: (.hour, nil)
        case .day: (.day, nil)
        case .week(let first): (.week, .plain(first.rawValue))
        case .month(let first): (.month, .number(Int64(first)))
        }
    }
}

extension Reader where Value == Int64 {
    /// A number of files.
    fileprivate static var files: Reader {
        let whole = Reader<Int>.whole(0...1_000_000_000)
        return Reader(expected: whole.expected, isPlain: whole.isPlain, kind: whole.kind) { text throws(ValueError) in
            Int64(try whole.read(text))
        }
    }
}

extension Reader where Value == Weekday {
    fileprivate static var firstOfWeek: Reader {
        let expected = "one of \(Weekday.allCases.map(\.rawValue).joined(separator: ", "))"
        return Reader(expected: expected) { text throws(ValueError) in
            if let day = Weekday(rawValue: text) { return day }
            if Int(text) != nil {
                throw ValueError("takes \(expected), not \(quoted(text)); days of the month belong to `per: month`")
            }
            // `monday`, `Mon`.
            let short = Weekday(rawValue: String(text.lowercased().prefix(3)))
            throw ValueError(
                "takes \(expected), not \(quoted(text))" + (short.map { "; did you mean `\($0.rawValue)`?" } ?? ""))
        }
    }
}

extension Reader where Value == Int {
    fileprivate static var firstOfMonth: Reader {
        let expected = "a day of the month from 1 to 31"
        return Reader(expected: expected, isPlain: true) { text throws(ValueError) in
            if let day = Int(text), String(day) == text, (1...31).contains(day) { return day }
            let isWeekday = Weekday(rawValue: String(text.lowercased().prefix(3))) != nil
            throw ValueError(
                "takes \(expected), not \(quoted(text))" + (isWeekday ? "; days of the week belong to `per: week`" : "")
            )
        }
    }
}
