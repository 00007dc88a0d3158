/// A D-Bus value, with the letter of its type. Reading it as another type gives `nil`.
///
/// The kinds and their letters are those of the D-Bus specification, "Type system".
enum BusValue: Hashable, Sendable {
    /// `y`, `b`, `n`, `q`, `i`, `u`, `x`, `t`, `d` or `h`, in the width of the type.
    case number(UInt8, UInt64)
    /// `s`, `o` or `g`.
    case text(UInt8, String)
    /// `ay`.
    case bytes([UInt8])
    /// Any other array, or the fields of a structure.
    case list([BusValue])
    case dictionary([Entry])
    indirect case variant(BusValue)

    struct Entry: Hashable, Sendable {
        let key: BusValue
        let value: BusValue
    }

    var unsigned: UInt32? {
        if case .number(UInt8(ascii: "u"), let bits) = self { UInt32(truncatingIfNeeded: bits) } else { nil }
    }

    var signed: Int32? {
        if case .number(UInt8(ascii: "i"), let bits) = self { Int32(truncatingIfNeeded: bits) } else { nil }
    }

    /// The elements of an array, or the fields of a structure.
    var elements: [BusValue]? {
        if case .list(let values) = self { values } else { nil }
    }

    var boolValue: Bool? {
        if case .number(UInt8(ascii: "b"), let bits) = self { bits != 0 } else { nil }
    }

    var string: String? {
        if case .text(UInt8(ascii: "s"), let text) = self { text } else { nil }
    }

    /// `nil` also for `/`, which services use when there is no such object.
    var object: String? {
        if case .text(UInt8(ascii: "o"), let path) = self, path != "/" { path } else { nil }
    }

    /// The paths of an `ao`; elements that are no path are left out.
    var objects: [String]? {
        if case .list(let values) = self { values.compactMap(\.object) } else { nil }
    }

    /// An `a{s…}`, its variants unwrapped.
    var byName: [String: BusValue]? { keyed { $0.string } }

    /// An `a{o…}`.
    var byObject: [String: BusValue]? { keyed { $0.object } }

    private func keyed(by name: (BusValue) -> String?) -> [String: BusValue]? {
        guard case .dictionary(let entries) = self else { return nil }
        var found: [String: BusValue] = [:]
        for entry in entries {
            guard let key = name(entry.key) else { return nil }
            if case .variant(let inner) = entry.value { found[key] = inner } else { found[key] = entry.value }
        }
        return found
    }

    /// The value without entries of dictionaries that have other names than these.
    func keeping(_ names: Set<String>) -> BusValue {
        guard case .dictionary(let entries) = self else { return self }
        return .dictionary(
            entries.compactMap { entry in
                if let name = entry.key.string, !names.contains(name) { return nil }
                return Entry(key: entry.key, value: entry.value.keeping(names))
            })
    }
}
