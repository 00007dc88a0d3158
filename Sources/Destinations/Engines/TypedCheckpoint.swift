internal import Core

/// The fields of a checkpoint that one engine or one dialect uses.
protocol CheckpointFields: Sendable {
    static var all: Self { get }
}

/// A checkpoint, read and written by the fields of one engine or one dialect as if they were its properties. All other
/// fields stay as they are.
@dynamicMemberLookup
protocol TypedCheckpoint: Hashable, Sendable {
    associatedtype Fields: CheckpointFields

    /// As it is stored.
    var stored: Checkpoint { get set }
    init(_ stored: Checkpoint)
}

extension TypedCheckpoint {
    static var fields: Fields { .all }

    init() { self.init(Checkpoint()) }

    subscript<Value>(dynamicMember field: KeyPath<Fields, CheckpointField<Value>>) -> Value {
        get { stored[Fields.all[keyPath: field]] }
        set { stored[Fields.all[keyPath: field]] = newValue }
    }

    /// The stored text, readable or not.
    func text<Value>(of field: KeyPath<Fields, CheckpointField<Value>>) -> String? {
        stored.fields[Fields.all[keyPath: field].name]
    }

    /// Whether there is a value, readable or not.
    func has<Value>(_ field: KeyPath<Fields, CheckpointField<Value>>) -> Bool { text(of: field) != nil }

    /// Adds one. Absent counts as 0.
    @discardableResult
    mutating func increment(_ field: KeyPath<Fields, CheckpointField<Int64?>>) -> Int64 {
        stored.increment(Fields.all[keyPath: field])
    }

    /// The same checkpoint, by the fields of another type.
    subscript<Other: TypedCheckpoint>(as type: Other.Type) -> Other {
        get { Other(stored) }
        set { stored = newValue.stored }
    }
}

extension Checkpoint {
    @discardableResult
    fileprivate mutating func increment(_ field: CheckpointField<Int64?>) -> Int64 {
        // Only a damaged checkpoint contains a larger number.
        let next = min(max(self[field] ?? 0, 0), 1 << 40) + 1
        self[field] = next
        return next
    }
}

/// The checkpoint of an engine that sends a file in several requests: it has ``EngineFields`` in addition to its own.
protocol EngineCheckpoint: TypedCheckpoint {}

extension EngineCheckpoint {
    subscript<Value>(dynamicMember field: KeyPath<EngineFields, CheckpointField<Value>>) -> Value {
        get { stored[EngineFields.all[keyPath: field]] }
        set { stored[EngineFields.all[keyPath: field]] = newValue }
    }

    func text<Value>(of field: KeyPath<EngineFields, CheckpointField<Value>>) -> String? {
        stored.fields[EngineFields.all[keyPath: field].name]
    }

    func has<Value>(_ field: KeyPath<EngineFields, CheckpointField<Value>>) -> Bool { text(of: field) != nil }

    @discardableResult
    mutating func increment(_ field: KeyPath<EngineFields, CheckpointField<Int64?>>) -> Int64 {
        stored.increment(EngineFields.all[keyPath: field])
    }
}

/// Fields that ``OffsetCheckpoint`` and ``PartsCheckpoint`` have in common.
struct EngineFields: CheckpointFields {
    static let all = EngineFields()

    // MARK: Creation, and starting again

    /// A creation was begun, and no answer to it is known.
    let isCreating = CheckpointField<Bool>("creating")
    /// Number of creations without an answer so far: the remote may hold as many unfinished uploads.
    let orphans = CheckpointField<Int64?>("orphans")
    /// Times that the upload was started again from its first byte because of the remote's answers.
    let restarts = CheckpointField<Int64?>("restarts")
    /// Answers in a row that the remote does not know the upload.
    let goneAnswers = CheckpointField<Int64?>("gone_seen")
    /// Answers in a row that the bytes arrived damaged.
    let damagedAnswers = CheckpointField<Int64?>("damaged")
    /// The file was sent once more after the outcome of the first time remained unknown.
    let wasReuploaded = CheckpointField<Bool>("reuploaded")
    /// The generation of the upload in which it was given up.
    let givenUpIn = CheckpointField<Int?>("ended_in")

    // MARK: The answer to the last bytes

    /// The status that refused the file.
    let refusedStatus = CheckpointField<Int?>("refused_status")
    /// The message of that refusal, as it is shown.
    let refusedMessage = CheckpointField<String?>("refused_words")
    /// The generation of the upload at that time.
    let refusedIn = CheckpointField<Int?>("refused_in")
    /// That refusal is the remote's own final answer to the whole upload: no byte of it is sent again.
    let isFinalAnswer = CheckpointField<Bool>("final_answer")
    /// The message of an answer that says nothing about the file, such as a gateway's.
    let unclearEnd = CheckpointField<String?>("unclear_end")
    /// The status of a refusal after which a person had the file sent again.
    let refusedBefore = CheckpointField<String?>("refused_before")
    /// The file was taken for complete without confirmation from the remote, as configured.
    let isAssumedComplete = CheckpointField<Bool>("assumed")

    // MARK: Additional objects at the remote

    /// The end was sent again, or the upload was started again, after the remote may have completed the file.
    let mayBeDoubled = CheckpointField<Bool>("doubled")
    /// The remote had the last part under this name before it left here.
    let wasHeldBefore = CheckpointField<Bool>("held_before")
    /// Times that the upload was started again although every byte had left, because the remote said several times that
    /// it lacks some.
    let wholeLosses = CheckpointField<Int64?>("whole_lost")
    /// ``Checkpoint/isOfAnotherWriter``.
    let isOfAnotherWriter = CheckpointField<Bool>.isOfAnotherWriter
    /// The remote's names of uploads that were given up because of another writer, with commas between them.
    let leftToOthers = CheckpointField<String?>("left_to_others")
    /// ``Checkpoint/nameNotFound``.
    let nameNotFound = CheckpointField<String?>.nameNotFound
}
