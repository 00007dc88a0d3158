internal import Core

/// Statuses as a person lists them: `200-299`, `404`.
struct FormStatuses: Hashable, Sendable {
    let ranges: [ClosedRange<Int>]

    struct Mistake: Error { let problem: String }

    init(_ texts: [String]) throws(Mistake) {
        var ranges: [ClosedRange<Int>] = []
        for text in texts {
            let ends = text.split(separator: "-", omittingEmptySubsequences: false).map {
                $0.utf8.count == 3 ? Int($0) : nil
            }
            guard ends.count <= 2, let low = ends.first ?? nil, let high = ends.last ?? nil, low >= 200, low <= high,
                high <= 599
            else {
                throw Mistake(problem: "takes statuses from 200 to 599, like `[200-299, 404]`, and has `\(text)`")
            }
            ranges.append(low...high)
        }
        self.ranges = ranges
    }

    func contains(_ status: Int) -> Bool { ranges.contains { $0.contains(status) } }
}

/// A condition on a JSON answer: `/success = true`, `/error absent`, `/data/fileUrl exists`.
struct FormCondition: Hashable, Sendable {
    enum Test: Hashable, Sendable {
        case exists, absent
        case equals(JSONValue)
    }

    let pointer: JSONPointer
    let test: Test

    static let forms = "`/success = true`, `/error absent` or `/data exists`"

    /// - Returns: `nil` for a text that is no condition.
    init?(_ text: String) {
        let words = text.split(separator: " ", maxSplits: 2).map(String.init)
        guard words.count >= 2, let pointer = JSONPointer(words[0]) else { return nil }
        self.pointer = pointer
        switch (words[1], words.count) {
        case ("exists", 2): test = .exists
        case ("absent", 2): test = .absent
        case ("=", 3): test = .equals(JSONValue.read(Array(words[2].utf8)) ?? .text(words[2]))
        default: return nil
        }
    }

    func holds(in document: JSONValue) -> Bool {
        let found = document[pointer]
        return switch test {
        case .exists: found != nil
        // A server that always writes its fields writes `null` where nothing is the matter.
        case .absent: found == nil || found == .null
        case .equals(let value): found == value
        }
    }
}

/// Which answers are of one kind: by their status, and by what their JSON says.
struct FormRule: Hashable, Sendable {
    var statuses: FormStatuses
    var conditions: [FormCondition]

    /// All of it holds: for success.
    func isMet(_ status: Int, _ document: JSONValue?) -> Bool {
        guard statuses.contains(status) else { return false }
        guard !conditions.isEmpty else { return true }
        guard let document else { return false }
        return conditions.allSatisfy { $0.holds(in: document) }
    }

    /// Any of it holds: for refusals.
    func isTouched(_ status: Int, _ document: JSONValue?) -> Bool {
        statuses.contains(status) || speaks(document)
    }

    /// A condition holds, whatever the status.
    func speaks(_ document: JSONValue?) -> Bool {
        document.map { document in conditions.contains { $0.holds(in: document) } } ?? false
    }
}
