internal import Core

// What a request may leave out, and what it may not say: a misspelt `folder` must not pause everything.

extension AddRequest {
    private enum Key: String, CodingKey, CaseIterable { case path, to, key, context, again }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(Key.allCases.map(\.rawValue), decoder)
        let keys = try decoder.container(keyedBy: Key.self)
        self.init(
            path: try keys.decode(String.self, forKey: .path),
            to: try keys.decodeIfPresent([String].self, forKey: .to) ?? [],
            key: try keys.decodeIfPresent(String.self, forKey: .key),
            context: try keys.decodeIfPresent([String: String].self, forKey: .context) ?? [:],
            again: try keys.decodeIfPresent(Bool.self, forKey: .again) ?? false)
    }
}

extension Selection {
    private enum Key: String, CodingKey, CaseIterable { case ids, all, folder, destination, duration }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(Key.allCases.map(\.rawValue), decoder)
        let keys = try decoder.container(keyedBy: Key.self)
        self.init(
            ids: try keys.decodeIfPresent([String].self, forKey: .ids) ?? [],
            all: try keys.decodeIfPresent(Bool.self, forKey: .all) ?? false,
            folder: try keys.decodeIfPresent(String.self, forKey: .folder),
            destination: try keys.decodeIfPresent(String.self, forKey: .destination),
            duration: try keys.decodeIfPresent(Int64.self, forKey: .duration))
    }
}

private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

private func refuseOtherKeys(_ known: [String], _ decoder: any Decoder) throws {
    let written = try decoder.container(keyedBy: AnyKey.self).allKeys
    guard let strange = written.filter({ !known.contains($0.stringValue) }).min(by: { $0.stringValue < $1.stringValue })
    else { return }
    let near = closest(to: strange.stringValue, among: known).map { "did you mean `\($0)`?" }
    throw DecodingError.dataCorrupted(
        DecodingError.Context(
            codingPath: [strange],
            debugDescription: "no key is called `\(strange.stringValue)`: "
                + (near ?? "there are " + known.joined(separator: ", "))))
}
