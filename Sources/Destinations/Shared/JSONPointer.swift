/// A place in a JSON document (RFC 6901): `/data/fileUrl`.
struct JSONPointer: Hashable, Sendable {
    let source: String
    let steps: [String]

    /// - Returns: `nil` for a text that does not begin with `/`, or has a `~` that is neither `~0` nor `~1` (section 3).
    init?(_ source: String) {
        guard source.hasPrefix("/") else { return nil }
        guard
            source.split(separator: "~", omittingEmptySubsequences: false).dropFirst().allSatisfy({
                $0.first == "0" || $0.first == "1"
            })
        else { return nil }
        self.source = source
        steps = source.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map {
            String($0).replacing("~1", with: "/").replacing("~0", with: "~")
        }
    }
}

extension JSONValue {
    /// - Returns: `nil` where there is no value; a `null` is a value.
    subscript(pointer: JSONPointer) -> JSONValue? { at(pointer.steps[...]) }

    private func at(_ steps: ArraySlice<String>) -> JSONValue? {
        var place = self
        for step in steps {
            switch place {
            case .object(let fields):
                guard let next = fields[step] else { return nil }
                place = next
            case .list(let items):
                // Section 4: digits without zeros before them, and no sign.
                guard let index = Int(step), "\(index)" == step, items.indices.contains(index) else { return nil }
                place = items[index]
            default: return nil
            }
        }
        return place
    }
}

extension JSONValue {
    /// Returns the values at a pointer in which `*` matches every element of a list and every value of an object.
    ///
    /// - Returns: One entry for each place that the pointer matches, `nil` where there is no value; without `*` there
    ///   is one entry.
    func all(at pointer: JSONPointer) -> [JSONValue?] { all(pointer.steps[...]) }

    private func all(_ steps: ArraySlice<String>) -> [JSONValue?] {
        guard let star = steps.firstIndex(of: "*") else { return [at(steps)] }
        let inner: [JSONValue] =
            switch at(steps[..<star]) {
            case .list(let items): items
            case .object(let fields): Array(fields.values)
            default: []
            }
        return inner.flatMap { $0.all(steps[(star + 1)...]) }
    }
}
