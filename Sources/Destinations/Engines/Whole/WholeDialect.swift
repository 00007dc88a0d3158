internal import Core

/// The protocol of one kind of remote that takes a file under a temporary name and renames it at the end.
protocol WholeDialect: Sendable {
    /// Opens the folder at the remote to which the file of this name belongs.
    ///
    /// - Parameter isMaking: Creates the missing folders.
    /// - Returns: `nil` when the folder is missing and is not created.
    func openFolder(_ name: FilePath, isMaking: Bool) async throws -> (any RemoteDirectory)?

    /// Makes a failure that the engine found, in this destination's name.
    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure
}

/// A folder at the remote, opened for one attempt. Names are names of files in it.
///
/// Every call may throw ``UploadError`` and `CancellationError`.
protocol RemoteDirectory: Sendable {
    /// Compares the file under a name with ours, by size and content.
    func status(at name: FilePath, for file: StagedFile) async throws -> RemoteNameState

    /// The size of the temporary file; `nil` when it is missing, or cannot be continued.
    func length(of part: FilePath) async throws -> Int64?

    /// Appends the next bytes of the file to the temporary one, as many as the place chooses, and makes them durable.
    /// From offset 0 it makes a new temporary file.
    ///
    /// - Parameter spent: Called with the bytes that left. They do not go through a socket of ours, so the ledger would
    ///   not see them.
    /// - Returns: The first byte that is still to be sent.
    func send(
        from offset: Int64, of order: UploadOrder, to part: FilePath, _ spent: @escaping Spent,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async throws -> Int64

    /// Whether the remote itself holds the staged content under the temporary name. The remote is queried again for
    /// this.
    func holds(_ file: StagedFile, as part: FilePath) async throws -> Bool

    /// Renames the temporary file to its name. Durable when this returns.
    ///
    /// - Parameter isReplacing: A file under the name may be replaced.
    /// - Returns: `false` when the name is taken by now.
    func rename(_ part: FilePath, to name: FilePath, isReplacing: Bool) async throws -> Bool

    /// Uploads small files, each under its temporary name, checks them like ``holds(_:as:)`` does, and gives them their
    /// names where those are free. Durable when this returns.
    ///
    /// - Parameter isWanted: Called for each id before the first byte of that file.
    /// - Returns: The ids of the files that have their name. A file with an error is left out, and a stop leaves out
    ///   the files that have no name yet.
    func sendBundle(
        _ pieces: [BundledFile], isWanted: @escaping @Sendable (String) -> Bool,
        _ spent: @escaping @Sendable (String, Int64) -> Void
    ) async throws -> Set<String>

    /// Makes a file durable that was found under its name.
    func makeDurable(_ name: FilePath) async throws

    /// Removes a temporary file. A missing file is no error.
    func remove(_ part: FilePath) async throws

    /// The address where a person finds a file of this folder. It contains no secret.
    func address(of name: FilePath) -> String

    /// Harmless problems on the way, to be shown to a person.
    var warnings: [String] { get }
}

/// One of the files that are uploaded together.
struct BundledFile: Sendable {
    let order: UploadOrder
    let part: FilePath
    let name: FilePath
}

/// The state of a name at the remote.
enum RemoteNameState: Sendable {
    case free
    /// A file of the same size and digest.
    case same
    /// Anything else. A folder or a link cannot be replaced.
    case other(isFile: Bool)
}

/// The rule for a name that another file holds.
enum NameConflictRule: String, Sendable, CaseIterable {
    case suffix, replace, fail
}

typealias Spent = @Sendable (Int64) -> Void
