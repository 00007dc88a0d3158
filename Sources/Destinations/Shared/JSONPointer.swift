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
    /// - Returns: `nil` where nothing stands; a `null` is something.
    subscript(pointer: JSONPointer) -> JSONValue? {
        var place = self
        for step in pointer.steps {
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
