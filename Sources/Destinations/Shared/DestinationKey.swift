internal import Core

/// A person's settings for a destination, or a part of them, whose keys a table declares.
protocol DeclaredSettings: Sendable {
    /// The values of keys that are not set.
    static var defaults: Self { get }
}

/// One key of a destination: its name, kind and description, and the property that its value sets.
///
/// A kind of destination declares its keys once, in a table. What `Config` reads, what `sluice destinations` prints, and
/// the settings follow from it.
///
/// Its functions are not specialized: seven copies of each, for the seven kinds of settings, would take 150 kB of the
/// program, and they run once.
struct DestinationKey<Owner: Sendable>: Sendable {
    typealias Property<Value> = any WritableKeyPath<Owner, Value> & Sendable

    let setting: SettingKey
    /// The default for people; `nil` where there is none or it depends on other keys.
    private(set) var fallback: String?
    /// Stores a person's value. The first argument contains all values, and the second the names of the sections around
    /// the key, each with a dot.
    fileprivate let store: @Sendable ([String: SettingValue], _ prefix: String, inout Owner) -> Void
}

extension DestinationKey {
    /// A key whose value sets no property, or several.
    ///
    /// - Parameter store: Nothing for a key that is read together with others.
    @_semantics("optimize.sil.specialize.generic.never")
    init(
        _ name: String, _ kind: SettingKey.Kind, required: Bool = false, mayBeNone: Bool = false, _ summary: String,
        store: @escaping @Sendable (SettingValue, inout Owner) -> Void = { _, _ in }
    ) {
        self.init(setting: SettingKey(name, kind, required: required, mayBeNone: mayBeNone, summary)) {
            values, prefix, owner in
            if let value = values[prefix + name] { store(value, &owner) }
        }
    }

    /// A key whose value is a property.
    ///
    /// - Parameter summary: Contains `{default}` for the default.
    @_semantics("optimize.sil.specialize.generic.never")
    init<Value: SettingProperty>(
        _ name: String, _ path: Property<Value>, as kind: SettingKey.Kind = Value.kind, required: Bool = false,
        _ summary: String
    ) where Owner: DeclaredSettings {
        self.init(name, path, kind, required, Owner.defaults[keyPath: path].shownDefault, summary) { Value.of($0) }
    }

    /// A key that takes one of the words of an enum.
    @_semantics("optimize.sil.specialize.generic.never")
    init<Word: RawRepresentable<String> & CaseIterable & Sendable>(
        _ name: String, _ path: Property<Word>, among words: [Word] = Array(Word.allCases), _ summary: String
    ) where Owner: DeclaredSettings {
        self.init(
            name, path, .choice(words.map(\.rawValue)), false, Owner.defaults[keyPath: path].rawValue, summary
        ) { String.of($0).flatMap { Word(rawValue: $0) } }
    }

    @_semantics("optimize.sil.specialize.generic.never")
    init<Word: RawRepresentable<String> & CaseIterable & Sendable>(
        _ name: String, _ path: Property<Word?>, among words: [Word] = Array(Word.allCases), required: Bool = false,
        _ summary: String
    ) where Owner: DeclaredSettings {
        self.init(
            name, path, .choice(words.map(\.rawValue)), required, Owner.defaults[keyPath: path]?.rawValue, summary
        ) { value in String.of(value).flatMap { Word(rawValue: $0) }.map { .some($0) } }
    }

    @_semantics("optimize.sil.specialize.generic.never")
    private init<Value>(
        _ name: String, _ path: Property<Value>, _ kind: SettingKey.Kind, _ isRequired: Bool, _ fallback: String?,
        _ summary: String, _ value: @escaping @Sendable (SettingValue) -> Value?
    ) {
        let summary = summary.replacing("{default}", with: fallback ?? "none")
        self.init(name, kind, required: isRequired, summary) { written, owner in
            if let value = value(written) { owner[keyPath: path] = value }
        }
        self.fallback = fallback
    }

    /// A section with keys of its own.
    @_semantics("optimize.sil.specialize.generic.never")
    init(_ name: String, _ keys: [DestinationKey], _ summary: String) {
        self.init(setting: SettingKey(name, .section(keys.map(\.setting)), summary)) { values, prefix, owner in
            for key in keys { key.store(values, "\(prefix)\(name).", &owner) }
        }
    }

    /// The same key for settings that contain these.
    @_semantics("optimize.sil.specialize.generic.never")
    func of<Outer>(_ path: DestinationKey<Outer>.Property<Owner>) -> DestinationKey<Outer> {
        DestinationKey<Outer>(setting: setting, fallback: fallback) { [store] in store($0, $1, &$2[keyPath: path]) }
    }
}

// Tables of keys.

extension DestinationKey {
    /// A table of keys, one or several in each statement. (The compiler needs minutes for an array literal of them.)
    @_semantics("optimize.sil.specialize.generic.never")
    static func table(@Table _ keys: () -> [DestinationKey]) -> [DestinationKey] { keys() }

    @resultBuilder enum Table {
        static func buildExpression(_ key: DestinationKey) -> [DestinationKey] { [key] }
        static func buildBlock(_ keys: [DestinationKey]...) -> [DestinationKey] { keys.flatMap { $0 } }
        static func buildArray(_ keys: [[DestinationKey]]) -> [DestinationKey] { keys.flatMap { $0 } }
    }
}

extension Array {
    /// Sets the properties whose keys have a value.
    @_semantics("optimize.sil.specialize.generic.never")
    func apply<Owner>(_ values: [String: SettingValue], to owner: inout Owner) where Element == DestinationKey<Owner> {
        for key in self { key.store(values, "", &owner) }
    }

    /// The defaults, and a person's values in place of them.
    @_semantics("optimize.sil.specialize.generic.never")
    func settings<Owner: DeclaredSettings>(_ values: [String: SettingValue]) -> Owner
    where Element == DestinationKey<Owner> {
        var owner = Owner.defaults
        apply(values, to: &owner)
        return owner
    }
}

// MARK: Values

/// A type of property that the value of one key sets.
protocol SettingProperty: Sendable {
    static var kind: SettingKey.Kind { get }
    /// - Returns: `nil` for a value of another kind.
    static func of(_ value: SettingValue) -> Self?
    /// As a default in a description; `nil` for no default.
    var shownDefault: String? { get }
}

extension SettingProperty where Self: CustomStringConvertible {
    var shownDefault: String? { "\(self)" }
}

extension Bool: SettingProperty {
    static let kind = SettingKey.Kind.flag
    static func of(_ value: SettingValue) -> Bool? { if case .flag(let flag) = value { flag } else { nil } }
}

extension Int: SettingProperty {
    static let kind = SettingKey.Kind.whole(0 ... .max)
    static func of(_ value: SettingValue) -> Int? { if case .whole(let number) = value { number } else { nil } }
}

/// An amount of bytes.
extension Int64: SettingProperty {
    static let kind = SettingKey.Kind.size
    static func of(_ value: SettingValue) -> Int64? { if case .bytes(let bytes) = value { bytes } else { nil } }
    var shownDefault: String? { shownSize(self) }
}

extension Duration: SettingProperty {
    static let kind = SettingKey.Kind.duration
    static func of(_ value: SettingValue) -> Duration? { if case .duration(let time) = value { time } else { nil } }
    var shownDefault: String? { inWords }
}

extension String: SettingProperty {
    static let kind = SettingKey.Kind.text
    static func of(_ value: SettingValue) -> String? { if case .text(let text) = value { text } else { nil } }
}

/// A value of a list.
protocol SettingListItem: CustomStringConvertible {
    static var kindOfList: SettingKey.Kind { get }
    static func list(_ value: SettingValue) -> [Self]?
}

extension Array: SettingProperty where Element: SettingListItem {
    static var kind: SettingKey.Kind { Element.kindOfList }
    static func of(_ value: SettingValue) -> [Element]? { Element.list(value) }
    var shownDefault: String? { isEmpty ? nil : map(\.description).joined(separator: ", ") }
}

extension String: SettingListItem {
    static let kindOfList = SettingKey.Kind.texts
    static func list(_ value: SettingValue) -> [String]? { if case .texts(let texts) = value { texts } else { nil } }
}

extension Int: SettingListItem {
    /// Ports.
    static let kindOfList = SettingKey.Kind.wholes(1...65_535)
    static func list(_ value: SettingValue) -> [Int]? { if case .wholes(let ports) = value { ports } else { nil } }
}

extension FilePath: SettingProperty {
    static let kind = SettingKey.Kind.path
    static func of(_ value: SettingValue) -> FilePath? { if case .path(let path) = value { path } else { nil } }
    var shownDefault: String? { display }
}

extension SecretSource: SettingProperty {
    static let kind = SettingKey.Kind.secret
    static func of(_ value: SettingValue) -> SecretSource? {
        if case .secret(let secret) = value { secret } else { nil }
    }
    var shownDefault: String? { nil }
}

extension [String: SecretSource]: SettingProperty {
    static let kind = SettingKey.Kind.map
    static func of(_ value: SettingValue) -> [String: SecretSource]? {
        if case .map(let map) = value { map } else { nil }
    }
    var shownDefault: String? { nil }
}

extension Optional: SettingProperty where Wrapped: SettingProperty {
    static var kind: SettingKey.Kind { Wrapped.kind }
    static func of(_ value: SettingValue) -> Wrapped?? { Wrapped.of(value).map { .some($0) } }
    var shownDefault: String? { flatMap(\.shownDefault) }
}

/// Values of several keys that are judged together.
extension [String: SettingValue] {
    func text(_ key: String) -> String? { self[key].flatMap { String.of($0) } }
    func texts(_ key: String) -> [String]? { self[key].flatMap { [String].of($0) } }
    func bytes(_ key: String) -> Int64? { self[key].flatMap { Int64.of($0) } }
    func flag(_ key: String) -> Bool? { self[key].flatMap { Bool.of($0) } }
    func whole(_ key: String) -> Int? { self[key].flatMap { Int.of($0) } }
    func secret(_ key: String) -> SecretSource? { self[key].flatMap { SecretSource.of($0) } }
    func map(_ key: String) -> [String: SecretSource]? { self[key].flatMap { [String: SecretSource].of($0) } }
    func path(_ key: String) -> FilePath? { self[key].flatMap { FilePath.of($0) } }
    func template(_ key: String) -> Template? {
        if case .template(let template)? = self[key] { template } else { nil }
    }

    func word<Word: RawRepresentable<String>>(_ key: String) -> Word? { text(key).flatMap { Word(rawValue: $0) } }

    func has(_ key: String) -> Bool { self[key] != nil }
}

/// An address to which paths are appended.
func withoutSlash(_ address: String) -> String { address.hasSuffix("/") ? String(address.dropLast()) : address }

/// `100 KiB`, `16 MiB`.
func shownSize(_ bytes: Int64) -> String { bytes < 1 << 20 ? "\(bytes >> 10) KiB" : "\(bytes >> 20) MiB" }
