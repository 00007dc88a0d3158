/// Everything that a destination needs to continue after a crash: the remote's own name for the upload, and its
/// progress.
///
/// It is stored as a JSON object of texts. The engine and the dialect of a destination each declare the fields that
/// they use (``CheckpointField``), in a type of their own. A field that no type declares, such as one of a newer
/// program, stays as it is. Stored before the step that depends on it.
///
/// A checkpoint without fields says that nothing was begun: nothing is at the remote, and nothing is removed there
/// after a cancel.
package struct Checkpoint: Hashable, Sendable, Codable {
    /// The stored texts by the names of their fields.
    package private(set) var fields: [String: String]

    package init(_ fields: [String: String] = [:]) { self.fields = fields }

    package subscript<Value>(field: CheckpointField<Value>) -> Value {
        get { field.decode(fields[field.name]) }
        set { fields[field.name] = field.encode(newValue) }
    }

    // MARK: Fields that every destination may set

    /// Set for `Destination.discard` when the upload had been verified before it was cancelled.
    package var isFinished: Bool {
        get { self[CheckpointField.isFinished] }
        set { self[CheckpointField.isFinished] = newValue }
    }
    /// Set when the remote has more of the named object than may have left here: another writer sends to it, and it is
    /// never removed.
    package var isOfAnotherWriter: Bool {
        get { self[CheckpointField.isOfAnotherWriter] }
        set { self[CheckpointField.isOfAnotherWriter] = newValue }
    }
    /// The remote's name of a file that it had and does not find any more. Shown until there is another name; never the
    /// name of a complete file.
    package var nameNotFound: String? {
        get { self[CheckpointField.nameNotFound] }
        set { self[CheckpointField.nameNotFound] = newValue }
    }
    /// When the remote may drop the unfinished upload, by the clock of this machine; `nil` where it has not said so.
    package var expires: WallTime? {
        get { self[CheckpointField.expires].map { WallTime(milliseconds: $0) } }
        set { self[CheckpointField.expires] = newValue?.milliseconds }
    }

    // MARK: Several fields at once

    /// The fields with these names, as they are.
    package func keeping(_ names: [String]) -> Checkpoint { Checkpoint(fields.filter { names.contains($0.key) }) }

    package mutating func remove(_ names: [String]) { for name in names { fields[name] = nil } }

    /// Sets each field that `other` has.
    package mutating func merge(_ other: Checkpoint) { fields.merge(other.fields) { $1 } }

    /// Whether it has each field of `other`, with the same text.
    package func contains(_ other: Checkpoint) -> Bool { other.fields.allSatisfy { fields[$0.key] == $0.value } }

    /// The same texts under names that begin with `prefix`.
    package func adding(prefix: String) -> Checkpoint {
        Checkpoint(Dictionary(fields.map { (prefix + $0.key, $0.value) }) { $1 })
    }

    /// The fields whose names begin with `prefix`, under their names without it.
    package func removing(prefix: String) -> Checkpoint {
        let found = fields.filter { $0.key.hasPrefix(prefix) }
        return Checkpoint(Dictionary(found.map { (String($0.key.dropFirst(prefix.count)), $0.value) }) { $1 })
    }
}

/// One field of a checkpoint: its name in the stored JSON, and the form of its value as text.
///
/// A text that cannot be read counts as absent, and stays until another value is set.
package struct CheckpointField<Value>: Sendable {
    package let name: String
    fileprivate let decode: @Sendable (String?) -> Value
    /// `nil` removes the field.
    fileprivate let encode: @Sendable (Value) -> String?
}

extension CheckpointField where Value == Bool {
    /// - Parameter text: The text for `true`. Any text is read as `true`; `false` is the absence of the field.
    package init(_ name: String, text: String = "1") {
        self.init(name: name, decode: { $0 != nil }, encode: { $0 ? text : nil })
    }

    package static var isFinished: Self { Self("finished") }
    package static var isOfAnotherWriter: Self { Self("of_another") }
}

extension CheckpointField where Value == String? {
    package init(_ name: String) { self.init(name: name, decode: { $0 }, encode: { $0 }) }

    package static var nameNotFound: Self { Self("perhaps_twice") }
}

extension CheckpointField {
    /// A whole number in decimal digits.
    package init<Number: FixedWidthInteger & Sendable>(_ name: String) where Value == Number? {
        self.init(name: name, decode: { $0.flatMap { Number($0) } }, encode: { $0.map { "\($0)" } })
    }

    /// One of several words.
    package init<Word: RawRepresentable<String> & Sendable>(_ name: String) where Value == Word? {
        self.init(name: name, decode: { $0.flatMap { Word(rawValue: $0) } }, encode: { $0?.rawValue })
    }
}

extension CheckpointField where Value == Int64? {
    /// In ms since 1970. The database has it in a column too.
    package static var expires: Self { Self("expires") }
}

extension CheckpointField where Value == FilePath? {
    /// A path as ``FilePath/display`` writes it.
    package init(_ name: String) {
        self.init(name: name, decode: { $0.flatMap { FilePath(display: $0) } }, encode: { $0?.display })
    }
}

extension CheckpointField where Value == [String] {
    /// Lines of text; absent when there are none.
    package init(_ name: String) {
        self.init(
            name: name, decode: { $0?.split(separator: "\n").map(String.init) ?? [] },
            encode: { $0.isEmpty ? nil : $0.joined(separator: "\n") })
    }
}
