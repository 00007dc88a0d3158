internal import Core

/// How one kind of remote is spoken to that takes a file under a temporary name and gives it its own in the end.
protocol WholeDialect: Sendable {
    /// Reaches the folder at the remote where the file of this name belongs.
    ///
    /// - Parameter isMaking: Makes what is missing of it.
    /// - Returns: `nil` when it is not there and not to be made.
    func reach(_ name: FilePath, isMaking: Bool) async throws -> (any WholePlace)?

    /// A failure that the engine found, in this destination's name.
    func failure(_ kind: Failure.Class, _ code: String, _ message: String, retryable: Bool) -> Failure
}

/// A folder at the remote, held for one attempt. Names are those of files in it.
///
/// Every call may throw ``UploadError`` and `CancellationError`.
protocol WholePlace: Sendable {
    /// Who stands under a name, told by size and content.
    func look(at name: FilePath, for file: StagedFile) async throws -> Standing

    /// How many bytes the temporary file has; `nil` when it is not there, or is nothing that may be gone on with.
    func length(of part: FilePath) async throws -> Int64?

    /// Sends the next bytes of the file to the temporary one, as many as it likes, and makes them durable there. From 0
    /// it is made anew.
    ///
    /// - Parameter spent: Told of what left: nothing of it goes through a socket of ours, where the ledger would see it.
    /// - Returns: The first byte that is still to be sent.
    func send(
        from offset: Int64, of order: UploadOrder, to part: FilePath, _ spent: @escaping Spent,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async throws -> Int64

    /// Whether the remote itself, asked anew, holds under the temporary name what was staged.
    func holds(_ file: StagedFile, as part: FilePath) async throws -> Bool

    /// Gives the temporary file its name. Durable when this returns.
    ///
    /// - Parameter isReplacing: Whatever stands under the name may go.
    /// - Returns: `false` when the name is taken by now.
    func rename(_ part: FilePath, to name: FilePath, isReplacing: Bool) async throws -> Bool

    /// Brings small files, each under its temporary name, looks at them as ``holds(_:as:)`` does, and gives them their
    /// names where those are free. Durable when this returns.
    ///
    /// - Parameter isWanted: Asked for each id before the first byte of that file.
    /// - Returns: The ids of those that have their name. Whatever goes wrong with one leaves it out, and a stop those that
    ///   have no name yet.
    func bring(
        _ pieces: [WholePiece], isWanted: @escaping @Sendable (String) -> Bool,
        _ spent: @escaping @Sendable (String, Int64) -> Void
    ) async throws -> Set<String>

    /// Makes durable what was found under its name.
    func settle(_ name: FilePath) async throws

    /// Removes a temporary file. Not there is fine.
    func remove(_ part: FilePath) async throws

    /// Where a person finds a name of this folder; no secret.
    func address(of name: FilePath) -> String

    /// What went wrong on the way without harm, for the person.
    var warnings: [String] { get }
}

/// One of the files that are brought together.
struct WholePiece: Sendable {
    let order: UploadOrder
    let part: FilePath
    let name: FilePath
}

/// Who stands under a name.
enum Standing: Sendable {
    case nobody
    /// A file of the same size and digest.
    case same
    /// Anything else. A folder or a link cannot be replaced.
    case other(isFile: Bool)
}

/// What is done when the name is held by another file.
enum TakenRule: String, Sendable, CaseIterable {
    case suffix, replace, fail
}

typealias Spent = @Sendable (Int64) -> Void
