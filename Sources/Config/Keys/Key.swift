internal import Core

/// A property of the owner of a value.
typealias Property<Owner, Value> = any WritableKeyPath<Owner, Value> & Sendable

/// One key of a section: how its value is read, printed and compared.
///
/// A section declares its keys once, in a table. The known keys, the reader, `sluice config` and the comparison at a
/// reload follow from the table.
///
/// Its functions are not specialized: a copy of each for every type of value would take a tenth of a megabyte of the
/// program, and a configuration is read seldom.
struct Key<Owner>: Sendable {
    let name: String
    /// Stores the value of the file in the owner. Returns whether there is a readable one.
    let read: @Sendable (MappingReader, inout Owner, SettingsReading) -> Bool
    /// The value in the form of the file; `nil` where there is nothing to print.
    let piece: @Sendable (Owner, EffectivePieces) -> EffectivePiece?
    /// Whether `sluice config` prints it.
    private var isPrinted: @Sendable (Owner) -> Bool = { _ in true }
    let differs: @Sendable (Owner, Owner) -> Bool
    /// The key before it in `sluice config`, where that is not its neighbour in the table.
    private var earlier: String?
    /// The form of its value; `nil` only in a declaration that is not complete.
    private(set) var kind: ValueKind?
}

extension Key {
    /// A key whose value is a property. A file that leaves it out leaves the property as it is.
    ///
    /// - Parameter piece: `nil` for a value that is not printed.
    @_semantics("optimize.sil.specialize.generic.never")
    init<Value: Equatable & Sendable>(
        _ name: String, _ path: Property<Owner, Value>,
        _ take: @escaping @Sendable (SettingsReading, MappingReader) -> Value?,
        _ piece: @escaping @Sendable (Value, EffectivePieces) -> EffectivePiece?
    ) {
        self.init(
            name: name,
            read: { fields, owner, reading in
                guard let value = take(reading, fields) else { return false }
                owner[keyPath: path] = value
                return true
            }, piece: { piece($0[keyPath: path], $1) }, differs: { $0[keyPath: path] != $1[keyPath: path] })
    }

    /// A key that is not printed while it has no value.
    @_semantics("optimize.sil.specialize.generic.never")
    init<Value: Equatable & Sendable>(
        _ name: String, optional path: Property<Owner, Value?>,
        _ take: @escaping @Sendable (SettingsReading, MappingReader) -> Value?,
        _ piece: @escaping @Sendable (Value, EffectivePieces) -> EffectivePiece?
    ) {
        self.init(
            name, path, { take($0, $1).map { .some($0) } }, { value, pieces in value.flatMap { piece($0, pieces) } })
    }

    /// A key whose value is one scalar.
    ///
    /// - Parameter written: The form of the file, for a type that is written in several ways.
    @_semantics("optimize.sil.specialize.generic.never")
    init<Value: Equatable & Sendable>(
        _ name: String, _ path: Property<Owner, Value>, _ reader: Reader<Value>,
        written: @escaping @Sendable (Value) -> WrittenValue
    ) {
        self.init(name, path, { $1.read(name, as: reader)?.value }, { value, _ in .value(written(value)) })
        kind = reader.kind
    }

    @_semantics("optimize.sil.specialize.generic.never")
    init<Value: Equatable & Sendable>(
        _ name: String, _ path: Property<Owner, Value?>, _ reader: Reader<Value>,
        written: @escaping @Sendable (Value) -> WrittenValue
    ) {
        self.init(name, optional: path, { $1.read(name, as: reader)?.value }, { value, _ in .value(written(value)) })
        kind = reader.kind
    }

    @_semantics("optimize.sil.specialize.generic.never")
    init<Value: SettingsValue>(_ name: String, _ path: Property<Owner, Value>, _ reader: Reader<Value>) {
        self.init(name, path, reader) { $0.inFile }
    }

    @_semantics("optimize.sil.specialize.generic.never")
    init<Value: SettingsValue>(_ name: String, _ path: Property<Owner, Value?>, _ reader: Reader<Value>) {
        self.init(name, path, reader) { $0.inFile }
    }

    /// A key that takes one of the words of an enum.
    @_semantics("optimize.sil.specialize.generic.never")
    init<Word: RawRepresentable<String> & CaseIterable & Equatable & Sendable>(
        _ name: String, _ path: Property<Owner, Word>
    ) {
        self.init(name, path, { $1.read(name, as: .choice)?.value }, { word, _ in .value(.plain(word.rawValue)) })
        kind = .word(Word.allCases.map(\.rawValue))
    }

    @_semantics("optimize.sil.specialize.generic.never")
    init<Word: RawRepresentable<String> & CaseIterable & Equatable & Sendable>(
        _ name: String, _ path: Property<Owner, Word?>
    ) {
        self.init(
            name, optional: path, { $1.read(name, as: .choice)?.value }, { word, _ in .value(.plain(word.rawValue)) })
        kind = .word(Word.allCases.map(\.rawValue))
    }

    @_semantics("optimize.sil.specialize.generic.never")
    init<Item: SettingsValue>(_ name: String, _ path: Property<Owner, [Item]>, listOf reader: Reader<Item>) {
        self.init(
            name, path, { $1.list(name, as: reader)?.map(\.value) }, { items, _ in .value(items.inFile) })
        kind = .list(reader.kind)
    }

    /// A list that is not printed while it is empty.
    @_semantics("optimize.sil.specialize.generic.never")
    init<Item: SettingsValue>(
        _ name: String, unlessEmpty path: Property<Owner, [Item]>,
        _ take: @escaping @Sendable (SettingsReading, MappingReader) -> [Item]?
    ) {
        self.init(name, path, take) { items, _ in items.isEmpty ? nil : .value(items.inFile) }
    }

    /// A key that is read together with another one.
    @_semantics("optimize.sil.specialize.generic.never")
    init<Value: Equatable & Sendable>(
        _ name: String, of value: @escaping @Sendable (Owner) -> Value?,
        _ piece: @escaping @Sendable (Value, EffectivePieces) -> EffectivePiece?
    ) {
        self.init(
            name: name, read: { _, _, _ in false },
            piece: { owner, pieces in value(owner).flatMap { piece($0, pieces) } }, differs: { value($0) != value($1) })
    }

    @_semantics("optimize.sil.specialize.generic.never")
    init<Value: SettingsValue>(_ name: String, of value: @escaping @Sendable (Owner) -> Value?) {
        self.init(name, of: value) { value, _ in .value(value.inFile) }
    }

    /// A section inside the section.
    ///
    /// - Parameters:
    ///   - conditional: Further keys of it, which `check` reads where they apply.
    ///   - check: Reports values that do not fit together. Gets the names of the keys that had a readable value.
    @_semantics("optimize.sil.specialize.generic.never")
    init(
        _ name: String, _ section: Section, _ keys: [Key], conditional: [Key] = [],
        check: @escaping @Sendable (MappingReader, inout Owner, Set<String>, SettingsReading) -> Void = { _, _, _, _ in
        }
    ) {
        let all = keys + conditional
        self.init(
            name: name,
            read: { fields, owner, reading in
                let inner = fields.fields(name, section)
                let readable = keys.read(inner, into: &owner, reading)
                check(inner, &owner, readable, reading)
                return fields.has(name)
            },
            piece: { owner, pieces in
                let fields = all.pieces(of: owner, pieces)
                return fields.isEmpty ? nil : .mapping(fields, known: section.keys)
            }, differs: { old, new in all.contains { $0.differs(old, new) } }, kind: .section(section.path))
    }

    /// The same key for an owner that contains this one.
    @_semantics("optimize.sil.specialize.generic.never")
    func of<Outer>(_ path: Property<Outer, Owner>, below section: String? = nil) -> Key<Outer> {
        Key<Outer>(
            name: section.map { "\($0).\(name)" } ?? name, read: { [read] in read($0, &$1[keyPath: path], $2) },
            piece: { [piece] in piece($0[keyPath: path], $1) },
            isPrinted: { [isPrinted] in isPrinted($0[keyPath: path]) },
            differs: { [differs] in differs($0[keyPath: path], $1[keyPath: path]) }, earlier: earlier, kind: kind)
    }

    /// The same key for an owner that may contain this one, and reads it by itself.
    @_semantics("optimize.sil.specialize.generic.never")
    func of<Outer>(optional value: @escaping @Sendable (Outer) -> Owner?) -> Key<Outer> {
        Key<Outer>(
            name: name, read: { _, _, _ in false },
            piece: { [piece] owner, pieces in value(owner).flatMap { piece($0, pieces) } },
            isPrinted: { [isPrinted] in value($0).map(isPrinted) ?? false },
            differs: { [differs] in
                switch (value($0), value($1)) {
                case (let old?, let new?): differs(old, new)
                case (nil, nil): false
                default: true
                }
            }, earlier: earlier, kind: kind)
    }

    /// States the form of its value, where neither its reader nor its words do.
    @_semantics("optimize.sil.specialize.generic.never")
    func takes(_ kind: ValueKind) -> Key {
        var key = self
        key.kind = kind
        return key
    }

    /// Prints it only while a condition holds.
    @_semantics("optimize.sil.specialize.generic.never")
    func printed(where condition: @escaping @Sendable (Owner) -> Bool) -> Key {
        var key = self
        key.isPrinted = condition
        return key
    }

    /// Prints it after the key of this name.
    @_semantics("optimize.sil.specialize.generic.never")
    func printed(after name: String) -> Key {
        var key = self
        key.earlier = name
        return key
    }

    /// The value for people, without secrets.
    @_semantics("optimize.sil.specialize.generic.never")
    func text(of owner: Owner) -> String {
        guard case .value(let value, _, _)? = piece(owner, EffectivePieces(hides: true)) else {
            return "none"
        }
        return value.text
    }

    /// The keys of a table that have a value to print, in the order of `sluice config`.
    @_semantics("optimize.sil.specialize.generic.never")
    fileprivate static func printed(_ table: [Key], of owner: Owner) -> [Key] {
        var keys = table.filter { $0.earlier == nil }
        for key in table {
            guard let earlier = key.earlier else { continue }
            let index = keys.firstIndex { $0.name == earlier }
            keys.insert(key, at: index.map { $0 + 1 } ?? keys.endIndex)
        }
        return keys.filter { $0.isPrinted(owner) }
    }
}

// Tables of keys.

extension Array {
    /// Reads each key of a section. Returns the names of those that had a readable value.
    @_semantics("optimize.sil.specialize.generic.never")
    @discardableResult
    func read<Owner>(_ fields: MappingReader, into owner: inout Owner, _ reading: SettingsReading) -> Set<String>
    where Element == Key<Owner> {
        var readable: Set<String> = []
        for key in self where key.read(fields, &owner, reading) { readable.insert(key.name) }
        return readable
    }

    /// The keys with their values in the form of the file, in the order of `sluice config`.
    @_semantics("optimize.sil.specialize.generic.never")
    func pieces<Owner>(of owner: Owner, _ pieces: EffectivePieces) -> EffectivePieces.Fields
    where Element == Key<Owner> {
        Key.printed(self, of: owner).compactMap { key in key.piece(owner, pieces).map { (key.name, $0) } }
    }

    /// The same on one line.
    ///
    /// - Parameter pieces: Needed only for values that may contain a secret.
    @_semantics("optimize.sil.specialize.generic.never")
    func inFile<Owner>(of owner: Owner, _ pieces: EffectivePieces = EffectivePieces(hides: false)) -> WrittenValue
    where Element == Key<Owner> {
        .mapping(
            self.pieces(of: owner, pieces).compactMap { key, piece in
                if case .value(let value, _, _) = piece { WrittenValue.Field(key: key, value: value) } else { nil }
            })
    }

    /// The names of the keys whose values are not the same.
    @_semantics("optimize.sil.specialize.generic.never")
    func changed<Owner>(from old: Owner, to new: Owner) -> [String] where Element == Key<Owner> {
        filter { $0.differs(old, new) }.map(\.name)
    }
}

/// Prints a value as a section.
///
/// - Parameter origin: The origin of values that the file does not set.
@_semantics("optimize.sil.specialize.generic.never")
func section<Value>(
    _ section: Section, _ keys: [Key<Value>], otherwise origin: String = "default"
) -> @Sendable (Value, EffectivePieces) -> EffectivePiece? {
    { value, pieces in
        .mapping(keys.pieces(of: value, pieces).map { ($0.key, $0.piece.withOrigin(origin)) }, known: section.keys)
    }
}
