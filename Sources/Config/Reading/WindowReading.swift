internal import Core

/// Reads the `windows` of one place.
struct WindowReading {
    private let fields: MappingReader
    private let reading: SettingsReading

    init(_ fields: MappingReader, _ reading: SettingsReading) {
        self.fields = fields
        self.reading = reading
    }

    /// `nil` for no window.
    var rule: PauseRule? {
        let windows = windows
        guard let node = fields.node("windows"), !windows.isEmpty else { return nil }
        return .windows(windows, place: reading.place(at: node.start))
    }

    /// A window is a text, `sat,sun 08:00-12:00`, or a mapping that may exclude days.
    private var windows: [Window] {
        guard let items = fields.items("windows", expected: "a list of windows, like `[\"22:00-06:00\"]`") else {
            return []
        }
        if items.isEmpty {
            fields.error("lists no window, so nothing would ever be sent; remove it for no limit", "windows")
        }
        return items.enumerated().compactMap { index, item in
            let key = "\(fields.path(of: "windows"))[\(index)]"
            guard case .mapping = item.content else { return fields.findings.read(item, path: key, as: .window) }
            return window(MappingReader(item, .window, path: key, start: item.start, findings: fields.findings))
        }
    }

    private func window(_ item: MappingReader) -> Window? {
        item.require("between", "name the time of the day, like `between: 22:00-06:00`")
        var window = Window(from: 0, to: 1440)
        return Window.keys.read(item, into: &window, reading).contains("between") ? window : nil
    }
}

extension Window: SettingsValue {
    static let keys: [Key<Self>] = [
        // The time and its days. The days that are excluded are read after them.
        Key("between", \.self, .window) { .text($0.words) },
        Key(
            "except", \.except, { $1.list("except", as: .day).map { Set($0.map(\.value)) } },
            { days, _ in .value(.list(days.sorted().map { .text("\($0)") })) }
        ).takes(.list(.day)).printed { !$0.except.isEmpty },
    ]

    var inFile: WrittenValue { except.isEmpty ? .text(words) : Self.keys.inFile(of: self) }
}

extension Reader where Value == CivilDay {
    /// `2026-12-24`.
    static var day: Reader {
        Reader(expected: "a day, like `2026-12-24`", kind: .day) { text throws(ValueError) in
            let parts = text.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 3, parts.map(\.utf8.count) == [4, 2, 2],
                let year = Int(parts[0]), let month = Int(parts[1]), let day = Int(parts[2])
            else { throw .plain }
            guard let result = CivilDay(year: year, month: month, day: day) else {
                throw ValueError("there is no day \(quoted(text))")
            }
            return result
        }
    }
}

extension Reader where Value == Window {
    /// `22:00-06:00`, `sat,sun 00:00-24:00`, `mon-fri 18:00-08:00`.
    static var window: Reader {
        let expected = "a time of the day, with days before it if not all, like `22:00-06:00` or `mon-fri 18:00-08:00`"
        return Reader(expected: expected, kind: .window) { text throws(ValueError) in
            let parts = text.split(separator: " ")
            guard let times = parts.last, parts.count <= 2 else { throw .plain }
            let days = parts.count == 2 ? try self.days(parts[0]) : Set(Weekday.allCases)
            let ends = times.split(separator: "-", omittingEmptySubsequences: false)
            guard ends.count == 2, let from = minutes(ends[0]), let to = minutes(ends[1]) else { throw .plain }
            guard from < 1440 else {
                throw ValueError("begins at 24:00; the day begins at 00:00, and 24:00 is its end")
            }
            guard from != to else {
                throw ValueError("is empty; `00:00-24:00` is the whole day")
            }
            // Until the end of the day, or beyond it.
            return Window(days: days, from: from, to: to == 0 ? 1440 : to)
        }
    }

    /// Minutes since midnight, from `06:30`.
    private static func minutes(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
            parts.allSatisfy({ $0.utf8.allSatisfy(\.isDigit) }),
            let hour = Int(parts[0]), let minute = Int(parts[1]), minute < 60,
            hour < 24 || hour == 24 && minute == 0
        else { return nil }
        return hour * 60 + minute
    }

    /// `sat,sun`, `mon-fri`, `fri-mon`.
    private static func days(_ text: Substring) throws(ValueError) -> Set<Weekday> {
        var days: Set<Weekday> = []
        let all = Weekday.allCases
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false)
            var found: [Int] = []
            for end in ends {
                guard let index = all.firstIndex(where: { $0.rawValue == end.lowercased() }) else {
                    throw ValueError(
                        "\(quoted(String(end))) is not a day; there are: \(all.map(\.rawValue).joined(separator: ", "))"
                    )
                }
                found.append(index)
            }
            guard found.count <= 2, let first = found.first, let last = found.last else { throw .plain }
            for ahead in 0...((last - first + 7) % 7) { days.insert(all[(first + ahead) % 7]) }
        }
        return days
    }
}
