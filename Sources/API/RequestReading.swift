internal import Core

// Decoding of requests that other programs write by hand. Every key with a default may be left out, and a misspelt key
// must not turn "this destination" into "everything".

extension AddRequest {
    private enum Key: String, CodingKey, CaseIterable {
        case path, to, key, context, headers, url, again
        case uploadURL = "uploadUrl"
    }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(than: Key.self, in: decoder)
        let values = try decoder.container(keyedBy: Key.self)
        self.init(
            path: try values.decode(String.self, forKey: .path),
            to: try values.decodeIfPresent([String].self, forKey: .to) ?? [],
            key: try values.decodeIfPresent(String.self, forKey: .key),
            context: try values.decodeIfPresent([String: String].self, forKey: .context) ?? [:],
            headers: try values.decodeIfPresent([String: String].self, forKey: .headers) ?? [:],
            url: try values.decodeIfPresent(String.self, forKey: .url),
            uploadURL: try values.decodeIfPresent(String.self, forKey: .uploadURL),
            again: try values.decodeIfPresent(Bool.self, forKey: .again) ?? false)
    }
}

extension Selection {
    private enum Key: String, CodingKey, CaseIterable {
        case ids, all, folder, destination, duration, afterPart, priority
    }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(than: Key.self, in: decoder)
        let values = try decoder.container(keyedBy: Key.self)
        self.init(
            ids: try values.decodeIfPresent([String].self, forKey: .ids) ?? [],
            all: try values.decodeIfPresent(Bool.self, forKey: .all) ?? false,
            folder: try values.decodeIfPresent(String.self, forKey: .folder),
            destination: try values.decodeIfPresent(String.self, forKey: .destination),
            duration: try values.decodeIfPresent(Int64.self, forKey: .duration),
            afterPart: try values.decodeIfPresent(Bool.self, forKey: .afterPart) ?? false,
            priority: try values.decodeIfPresent(Int.self, forKey: .priority))
        if let priority, !Self.priorities.contains(priority) {
            throw Refusal(.badRequest, "`priority` takes a number from -1000 to 1000; higher goes first")
        }
    }
}

extension WebLinkRequest {
    private enum Key: String, CodingKey, CaseIterable { case role }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(than: Key.self, in: decoder)
        let values = try decoder.container(keyedBy: Key.self)
        self.init(role: try values.decodeIfPresent(ControlRole.self, forKey: .role) ?? .operate)
    }
}

extension SignInRequest {
    private enum Key: String, CodingKey, CaseIterable { case code }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(than: Key.self, in: decoder)
        let values = try decoder.container(keyedBy: Key.self)
        self.init(code: try values.decodeIfPresent(String.self, forKey: .code))
    }
}

extension FlushRequest {
    private enum Key: String, CodingKey, CaseIterable { case list, folder, destination }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(than: Key.self, in: decoder)
        let values = try decoder.container(keyedBy: Key.self)
        self.init(
            list: try values.decodeIfPresent(String.self, forKey: .list),
            folder: try values.decodeIfPresent(String.self, forKey: .folder),
            destination: try values.decodeIfPresent(String.self, forKey: .destination))
    }
}

extension AllowRequest {
    private enum Key: String, CodingKey, CaseIterable { case ids, folder, kinds, rules, duration }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(than: Key.self, in: decoder)
        let values = try decoder.container(keyedBy: Key.self)
        self.init(
            ids: try values.decodeIfPresent([String].self, forKey: .ids) ?? [],
            folder: try values.decodeIfPresent(String.self, forKey: .folder),
            kinds: try values.decodeIfPresent([String].self, forKey: .kinds) ?? [],
            rules: try values.decodeIfPresent([String].self, forKey: .rules),
            duration: try values.decode(Int64.self, forKey: .duration))
    }
}

extension LimitRequest {
    private enum Key: String, CodingKey, CaseIterable { case rate, duration }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(than: Key.self, in: decoder)
        let values = try decoder.container(keyedBy: Key.self)
        self.init(
            rate: try values.decodeIfPresent(Int64.self, forKey: .rate),
            duration: try values.decodeIfPresent(Int64.self, forKey: .duration))
    }
}

extension RescanRequest {
    private enum Key: String, CodingKey, CaseIterable { case folder, wait }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(than: Key.self, in: decoder)
        let values = try decoder.container(keyedBy: Key.self)
        self.init(
            folder: try values.decodeIfPresent(String.self, forKey: .folder),
            wait: try values.decodeIfPresent(Bool.self, forKey: .wait) ?? false)
    }
}

extension CheckRequest {
    private enum Key: String, CodingKey, CaseIterable { case folder, destination }

    package init(from decoder: any Decoder) throws {
        try refuseOtherKeys(than: Key.self, in: decoder)
        let values = try decoder.container(keyedBy: Key.self)
        self.init(
            folder: try values.decodeIfPresent(String.self, forKey: .folder),
            destination: try values.decodeIfPresent(String.self, forKey: .destination))
    }
}

private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

@_semantics("optimize.sil.specialize.generic.never")
private func refuseOtherKeys<Key: CodingKey & CaseIterable>(than known: Key.Type, in decoder: any Decoder) throws {
    let names = known.allCases.map(\.stringValue)
    let written = try decoder.container(keyedBy: AnyKey.self).allKeys.map(\.stringValue)
    if let strange = written.filter({ !names.contains($0) }).min() {
        throw Refusal(
            .badRequest, "no key `\(snakeCase(strange))`; there are: " + names.map(snakeCase).joined(separator: ", "))
    }
}

/// The form on the wire: the decoder has turned `after_part` into `afterPart`.
private func snakeCase(_ name: String) -> String {
    name.reduce(into: "") { $0 += $1.isUppercase ? "_\($1.lowercased())" : "\($1)" }
}
