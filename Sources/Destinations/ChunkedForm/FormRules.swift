internal import Core

/// Statuses in the form in which a person lists them: `200-299`, `404`.
struct FormStatuses: Hashable, Sendable {
    let ranges: [ClosedRange<Int>]

    struct SyntaxError: Error { let problem: String }

    init(_ texts: [String]) throws(SyntaxError) {
        var ranges: [ClosedRange<Int>] = []
        for text in texts {
            let ends = text.split(separator: "-", omittingEmptySubsequences: false).map {
                $0.utf8.count == 3 ? Int($0) : nil
            }
            guard ends.count <= 2, let low = ends.first ?? nil, let high = ends.last ?? nil, low >= 200, low <= high,
                high <= 599
            else {
                throw SyntaxError(problem: "takes statuses from 200 to 599, like `[200-299, 404]`, and has `\(text)`")
            }
            ranges.append(low...high)
        }
        self.ranges = ranges
    }

    func contains(_ status: Int) -> Bool { ranges.contains { $0.contains(status) } }
}

/// A condition on a JSON answer: `/success = true`, `/error absent`, `/files/*/error empty`, `/status not error, 400-599`.
struct FormCondition: Hashable, Sendable {
    enum Test: Hashable, Sendable {
        case exists, absent
        case equals(JSONValue)
        /// The field is missing or has no meaningful value. Also true without JSON.
        case empty
        /// None of these values stands there. Also true without JSON.
        case not([Refused])
    }

    /// A value that must not stand at a place.
    enum Refused: Hashable, Sendable {
        /// A word in lower case.
        case word(String)
        case numbers(ClosedRange<Int64>)

        init(_ text: String) {
            let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
            if ends.count == 2, let low = ends[0], let high = ends[1], low <= high {
                self = .numbers(low...high)
            } else {
                self = .word(text.lowercased())
            }
        }

        func matchesAll(by value: JSONValue) -> Bool {
            switch self {
            case .word(let word): value.plainWord == word
            case .numbers(let range): value.whole.map { range.contains($0) } ?? false
            }
        }
    }

    /// How many of the values that a `*` matches have to pass the test.
    enum Extent: Sendable { case every, any }

    let pointer: JSONPointer
    let test: Test

    static let forms =
        "`/success = true`, `/error absent`, `/error empty`, `/status not error, 400-599` or `/data exists`"

    /// - Returns: `nil` for a text that is not a condition.
    init?(_ text: String) {
        let words = text.split(separator: " ", maxSplits: 2).map(String.init)
        guard words.count >= 2, let pointer = JSONPointer(words[0]) else { return nil }
        self.pointer = pointer
        switch (words[1], words.count) {
        case ("exists", 2): test = .exists
        case ("absent", 2): test = .absent
        case ("empty", 2): test = .empty
        case ("=", 3): test = .equals(JSONValue.read(Array(words[2].utf8)) ?? .text(words[2]))
        case ("not", 3):
            let values = words[2].split(separator: ",", omittingEmptySubsequences: false).map { trimmed(String($0)) }
            guard !values.contains(nil) else { return nil }
            test = .not(values.compactMap { $0 }.map { Refused($0) })
        default: return nil
        }
    }

    /// - Parameter extent: For a pointer with `*`. Where it matches nothing, only conditions that require a value fail.
    func holds(in document: JSONValue, _ extent: Extent = .every) -> Bool {
        let found = document.all(at: pointer)
        switch extent {
        case .any: return found.contains { holds($0) }
        case .every: return (!found.isEmpty || holdsWithoutValue) && found.allSatisfy { holds($0) }
        }
    }

    private func holds(_ found: JSONValue?) -> Bool {
        switch test {
        case .exists: found != nil
        // A server that always writes its fields writes `null` for no error.
        case .absent: found == nil || found == .null
        case .equals(let value): found == value
        case .empty: found?.saysNothing ?? true
        case .not(let refused): found.map { found in !refused.contains { $0.matchesAll(by: found) } } ?? true
        }
    }

    private var holdsWithoutValue: Bool {
        switch test {
        case .exists, .equals: false
        case .absent, .empty, .not: true
        }
    }

    /// Whether an answer without JSON meets the condition.
    var holdsWithoutJSON: Bool {
        switch test {
        case .exists, .equals, .absent: false
        case .empty, .not: true
        }
    }
}

extension JSONValue {
    /// Whether a value in an error field means that there is no error.
    fileprivate var saysNothing: Bool {
        switch self {
        case .null, .bool(false), .whole(0), .text(""), .text("0"), .list([]), .object([:]): true
        default: false
        }
    }

    /// The text of a single value, in lower case.
    fileprivate var plainWord: String? {
        switch self {
        case .null: "null"
        case .bool(let flag): "\(flag)"
        case .whole(let number): "\(number)"
        case .text(let text): text.lowercased()
        case .number, .list, .object: nil
        }
    }
}

/// Defines one kind of answers, by their status and their JSON.
struct FormRule: Hashable, Sendable {
    var statuses: FormStatuses
    var conditions: [FormCondition]

    /// All conditions hold: for success.
    func isMet(_ status: Int, _ body: FormReply) -> Bool {
        guard statuses.contains(status) else { return false }
        guard !conditions.isEmpty else { return true }
        return switch body {
        case .json(let document): conditions.allSatisfy { $0.holds(in: document) }
        case .other: conditions.allSatisfy(\.holdsWithoutJSON)
        case .cut: false
        }
    }

    /// Whether the body contradicts success. An empty answer does not.
    func isDenied(by body: FormReply) -> Bool {
        switch body {
        case .json(let document): conditions.contains { $0.isOfErrors && !$0.holds(in: document) }
        case .other: false
        case .cut: !conditions.isEmpty
        }
    }

    /// Any condition holds: for refusals.
    func matchesAny(_ status: Int, _ body: FormReply) -> Bool {
        statuses.contains(status) || speaks(body)
    }

    /// Whether any condition holds, regardless of the status.
    func speaks(_ body: FormReply) -> Bool {
        guard case .json(let document) = body else { return false }
        return conditions.contains { $0.holds(in: document, .any) }
    }
}

extension FormCondition {
    /// The condition requires no value, and only forbids some.
    fileprivate var isOfErrors: Bool {
        switch test {
        case .absent, .empty, .not: true
        case .exists, .equals: false
        }
    }
}
