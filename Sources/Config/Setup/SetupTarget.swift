internal import Core

/// Where uploads go, from one answer: a folder, the address of a tus server, or a type of destination and its settings, as
/// in `s3 bucket=videos region=eu-central-1`.
package struct SetupTarget: Hashable, Sendable {
    package struct Setting: Hashable, Sendable {
        /// The full name, as in `video.folder`.
        package let name: String
        package let value: String
        fileprivate let kind: SettingKey.Kind
    }

    /// The secret that a person gives in addition.
    package enum Secret: Hashable, Sendable {
        case none
        case token(isRequired: Bool)
        /// The id and the key of an account with buckets.
        case key
    }

    package let type: String
    package let settings: [Setting]
    package let secret: Secret
    /// The type has no key for a token, which goes into a header then.
    private let hasTokenHeader: Bool

    /// - Throws: The problem, as a text that follows the name of the question.
    init(_ text: String, types: [DestinationSchema]) throws(ValueError) {
        if text.hasPrefix("/") {
            let path = try Reader<FilePath>.path.read(text).normalised
            try self.init("directory", [("path", path.text ?? text)], types)
            return
        }
        let words = try Self.words(text)
        guard let first = words.first, words.count > 1 || !first.contains("://") else {
            try self.init("tus", [("url", try Reader<String>.url.read(text))], types)
            return
        }
        let pairs = words.dropFirst().map { word -> (String, String?) in
            guard let sign = word.firstIndex(of: "=") else { return (word, nil) }
            return (String(word[..<sign]), String(word[word.index(after: sign)...]))
        }
        var given: [(String, String)] = []
        for (name, value) in pairs {
            guard let value, !value.isEmpty else {
                throw ValueError(
                    "has \(quoted(name)) after the type, and takes settings with their values, `name=value`")
            }
            given.append((name, value))
        }
        try self.init(first, given, types)
    }

    private init(_ name: String, _ given: [(String, String)], _ types: [DestinationSchema]) throws(ValueError) {
        guard let type = types.first(where: { $0.name == name }) else {
            let names = types.map(\.name)
            throw ValueError(
                "takes \(Self.expected(types)), not \(quoted(name))"
                    + (closest(to: name, among: names).map { "; did you mean `\($0)`?" } ?? ""))
        }
        let keys = type.keys.flatMap(\.flat)
        var settings: [Setting] = []
        for (name, value) in given {
            settings.append(Setting(name: name, value: value, kind: try Self.kind(of: name, keys, type)))
            guard settings.count(where: { $0.name == name }) == 1 else {
                throw ValueError("has `\(name)` twice")
            }
        }
        self.type = name
        self.settings = settings
        func has(_ key: String) -> Bool { settings.contains { $0.name == key || $0.name.hasPrefix(key + ".") } }
        let hasKey = keys.contains { $0.name == "secret_key" }
        let token = keys.first { $0.name == "token" && $0.kind == .secret }
        hasTokenHeader = token == nil && keys.contains { $0.name == "secrets" }
        if hasKey {
            // Other ways to the account than a key.
            secret = ["instance_metadata", "presign", "sts", "authorisation"].contains(where: has) ? .none : .key
        } else if let token {
            secret = .token(isRequired: token.isRequired)
        } else {
            secret = hasTokenHeader && !has("headers.Authorization") ? .token(isRequired: false) : .none
        }
        for key in keys where key.isRequired && key.kind != .secret && !has(key.name) && !key.name.contains(".") {
            throw ValueError("names `\(name)`, which needs `\(key.name)`: \(quoted(Self.example(of: name, key.name)))")
        }
    }

    private static func kind(
        of name: String, _ keys: [SettingKey], _ type: DestinationSchema
    ) throws(ValueError) -> SettingKey.Kind {
        let exact = keys.first { $0.name == name }
        // A name in a map: `tags.box=7`.
        let map = keys.first { key in
            switch key.kind {
            case .map, .headers, .fields, .labels: name.hasPrefix(key.name + ".")
            default: false
            }
        }
        guard let key = exact ?? map else {
            let near = closest(to: name, among: keys.map(\.name)).map { "; did you mean `\($0)`?" } ?? ""
            throw ValueError(
                "has `\(name)`, which is no setting of `\(type.name)`\(near); see `sluice destinations \(type.name)`")
        }
        switch key.kind {
        case .secret, .secrets:
            throw ValueError(
                "has `\(name)`, a secret, which does not stand here: it is asked for, or is in the file of --token-file"
            )
        case .map, .headers, .fields,
            .labels where exact != nil:
            throw ValueError("has `\(name)`, and takes one value of it, as in `\(name).NAME=VALUE`")
        default: return exact == nil ? .text : key.kind
        }
    }

    /// Words between spaces; quotes keep spaces together.
    private static func words(_ text: String) throws(ValueError) -> [String] {
        var words: [String] = []
        var word: String?
        var quote: Character?
        for character in text {
            if let open = quote {
                if character == open { quote = nil } else { word?.append(character) }
            } else if character == "\"" || character == "'" {
                quote = character
                word = word ?? ""
            } else if character == " " || character == "\t" {
                if let done = word { words.append(done) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        guard quote == nil else { throw ValueError("has a quote that does not end") }
        return words + (word.map { [$0] } ?? [])
    }

    static func expected(_ types: [DestinationSchema]) -> String {
        "an address like `https://nas.example/files/`, a folder like `/mnt/nas`, or a type and its settings like `s3 "
            + "bucket=videos region=eu-central-1` (\(types.map(\.name).joined(separator: ", ")))"
    }

    private static func example(of type: String, _ key: String) -> String {
        switch (type, key) {
        case ("s3", _): "s3 bucket=videos region=eu-central-1"
        case ("oss", _): "oss bucket=videos region=cn-shanghai"
        case (_, "url"): "\(type) url=https://media.example/upload"
        case (_, "path"): "\(type) path=/mnt/nas"
        default: "\(type) \(key)=…"
        }
    }

    // MARK: The configuration

    private subscript(_ name: String) -> String? { settings.first { $0.name == name }?.value }

    /// The bucket, the first label of the host, the last name of the path, or the type.
    var name: String {
        if let path = self["path"] { return Self.name(FilePath(path).normalised.name.text ?? "", else: "target") }
        if let bucket = self["bucket"] { return Self.name(bucket, else: "bucket") }
        guard let url = self["url"] else { return type }
        let authority = url.split(separator: "/", omittingEmptySubsequences: true).dropFirst().first ?? ""
        let host = authority.prefix { $0 != ":" }
        let isAddress = host.hasPrefix("[") || host.allSatisfy { $0.isNumber || $0 == "." }
        return isAddress ? "server" : Self.name(String(host.prefix { $0 != "." }), else: "server")
    }

    static func name(_ text: String, else other: String) -> String {
        let bytes = text.utf8.map { isNameByte($0) ? $0 : UInt8(ascii: "-") }.prefix(64)
        let name = String(decoding: bytes, as: UTF8.self)
        return name.contains { $0.isLetter || $0.isNumber } && yaml11Meaning(name) == nil ? name : other
    }

    /// The end of the name of the file with the secret.
    var secretEnding: String { secret == .key ? ".key" : ".token" }

    /// What the file with the secret contains: two words, which are an id and its key, become a credentials file.
    package func secretFile(_ given: [UInt8]) -> [UInt8] {
        guard secret == .key, let text = String(validating: given, as: UTF8.self) else { return given }
        let words = text.split { $0 == " " || $0 == "\t" || $0 == "\n" || $0 == "\r" }
        guard words.count == 2, !text.hasPrefix("{"), !text.hasPrefix("[") else { return given }
        return Array("[default]\naws_access_key_id = \(words[0])\naws_secret_access_key = \(words[1])".utf8)
    }

    /// The lines of the destination.
    func lines(secret file: FilePath?) -> [String] {
        var tree = Self.tree(settings[...], below: "")
        let note = "        # the secret is in that file"
        var end: [String] = []
        if let file {
            let source = WrittenValue.mapping([.init(key: "file", value: file.inFile)])
            switch secret {
            case .key: end.append("credentials: \(source.yaml)\(note)")
            case .token where hasTokenHeader:
                let header = WrittenValue.Field(key: "Authorization", value: .text("Bearer {secret:token}"))
                var headers: [WrittenValue.Field] = [header]
                if let at = tree.firstIndex(where: { $0.key == "headers" }) {
                    if case .mapping(let more) = tree[at].value { headers += more }
                    tree.remove(at: at)
                }
                end += [
                    "headers: \(WrittenValue.mapping(headers).yaml)",
                    "secrets: \(WrittenValue.mapping([.init(key: "token", value: source)]).yaml)\(note)",
                ]
            case .token: end.append("token: \(source.yaml)\(note)")
            case .none: break
            }
        }
        return ["type: \(type)"] + tree.map { "\(scalar($0.key)): \($0.value.yaml)" } + end
    }

    /// Settings with a common start of their names become one mapping.
    private static func tree(_ settings: ArraySlice<Setting>, below prefix: String) -> [WrittenValue.Field] {
        var fields: [WrittenValue.Field] = []
        for setting in settings {
            let rest = setting.name.dropFirst(prefix.utf8.count)
            let key = String(rest.prefix { $0 != "." })
            guard !fields.contains(where: { $0.key == key }) else { continue }
            if key.utf8.count == rest.utf8.count {
                fields.append(.init(key: key, value: setting.written))
            } else {
                let inner = prefix + key + "."
                fields.append(
                    .init(
                        key: key, value: .mapping(tree(settings.filter { $0.name.hasPrefix(inner) }[...], below: inner))
                    ))
            }
        }
        return fields
    }
}

extension SetupTarget.Setting {
    fileprivate var written: WrittenValue {
        switch kind {
        // A number or a flag in quotes would be a text. The loader reports another word.
        case .flag, .whole: yaml11Meaning(value) != nil || Int(value) != nil ? .plain(value) : .text(value)
        case .path: FilePath(value).inFile
        case .choices where value == SettingKey.auto: .text(value)
        case .wholes: .list(value.split(separator: ",").map { .plain(String($0)) })
        case .texts, .choices, .origins: .list(value.split(separator: ",").map { .text(String($0)) })
        default: .text(value)
        }
    }
}
