package import Core
package import Transport

/// One configured remote. A value with addresses and credentials and no progress.
///
/// It keeps no permission to send: each call that may send requests takes the context that they are sent with.
package protocol Destination: Sendable {
    /// The first machine that its bytes reach, which decides their cost.
    var site: DestinationSite { get }
    /// Uploads the file to the remote and verifies it there. Continues from `order.checkpoint` where there is one.
    ///
    /// Cancelling the task stops the running request at once (abortively) and throws `CancellationError`; the
    /// checkpoint that was recorded last is then good for the next call.
    ///
    /// - Throws: ``UploadError`` with the remedy; `CancellationError`; errors of `reporter`, unchanged.
    func upload(
        _ order: UploadOrder, reporter: any UploadReporter, context: RequestContext
    ) async throws -> RemoteObject
    /// The digests that it will send with each part of a file of `size` bytes, so that staging computes them while it
    /// reads the file.
    func requestedDigests(forSize size: Int64) -> [PartDigests.RequestedDigest]
    /// The largest piece of a file of `size` bytes that cannot be divided, for a file that is not begun; `nil` where a
    /// request may end anywhere.
    ///
    /// - Parameter size: `nil`: for a file of any size that the settings are meant for.
    func uncutPiece(ofSize size: Int64?) -> IndivisibleRequest?
    /// The size of its requests, where a larger one has failed; `nil` where none has.
    var requestSize: RequestSize? { get }
    /// Restores the size that an earlier run has learned for the same remote.
    func recall(_ size: RequestSize)
    /// The files that it sends together; `nil` for none.
    var bundling: Bundling? { get }
    /// Uploads small files without an earlier attempt to the remote, as one piece of work, and verifies them there.
    ///
    /// Handles only the simple case: a file that is not in the answer is uploaded alone, which reports the reason.
    ///
    /// - Returns: The remote's objects, by the id of the order; when the task was cancelled, those that exist by then.
    /// - Throws: `CancellationError` when there are none; errors of `reporter`, unchanged.
    func upload(
        together orders: [UploadOrder], reporter: any BundleReporter, context: RequestContext
    ) async throws -> [String: RemoteObject]
    /// The part of its checkpoint that an upload keeps when it is sent again from its first byte because its staged
    /// copy was damaged, while the object that the checkpoint names is removed: the facts about further objects that
    /// the remote may have.
    func lasting(of checkpoint: Checkpoint) -> Checkpoint
    /// Frees the remote's space: removes the object that `checkpoint` names, finished or not. "Not there" is success.
    ///
    /// - Returns: `false` when the remote offers no removal, or none for a finished object (``Checkpoint/isFinished``).
    func discard(_ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError) -> Bool
    /// Why a file that is sent only to try the destination could not be removed again: a text after "no test file was
    /// sent:"; `nil` where it probably can. Asked before the file is sent, and changes nothing there.
    func obstacleToRemoving(test order: UploadOrder, context: RequestContext) async -> String?
    /// Removes the object of an order that was only a test, complete or not. "Not there" is success. No asset depends on it,
    /// which ``discard(_:context:)`` cannot know.
    ///
    /// - Parameter checkpoint: The last one of the upload.
    /// - Returns: `false` when the remote did not remove it.
    func remove(test order: UploadOrder, _ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError)
        -> Bool
    /// Asks, without side effects, whether the remote already holds exactly this content under the order's name.
    ///
    /// For `sluice rebuild`, when the record of sent files was lost.
    ///
    /// - Throws: ``UploadError`` when the remote cannot be asked now.
    func find(_ order: UploadOrder, context: RequestContext) async throws(UploadError) -> RemoteLookup
    /// Asks, without side effects, whether uploads would work: for `sluice check`.
    func check(context: RequestContext) async -> CheckResult
    /// The objection to a request header with this name for one upload's requests; `nil` for none.
    func objection(toHeader name: String) -> String?
    /// The objection to this address for the creation of one upload; `nil` for none.
    func objection(toURL url: String) -> String?
    /// The objection to this address of an upload that exists; `nil` for none.
    func objection(toUploadURL url: String) -> String?
    /// Whether ``querySizeLimit(context:)`` may have an answer.
    var limitsSize: Bool { get }
    /// The size of the largest file that it takes, as far as it is known; `nil` for none.
    var sizeLimit: Int64? { get }
    /// Asks for that size, without side effects.
    ///
    /// - Throws: ``UploadError`` when the remote cannot be asked now, which is no reason not to send.
    func querySizeLimit(context: RequestContext) async throws(UploadError) -> Int64?
    /// Whether ``space(context:)`` may have an answer.
    var reportsSpace: Bool { get }
    /// Asks how much space there is, without side effects.
    ///
    /// - Returns: `nil` when the remote does not tell.
    /// - Throws: ``UploadError`` when the remote cannot be asked now, which is no reason not to send.
    func space(context: RequestContext) async throws(UploadError) -> RemoteSpace?
}

extension Destination {
    package func requestedDigests(forSize size: Int64) -> [PartDigests.RequestedDigest] { [] }
    package func uncutPiece(ofSize size: Int64?) -> IndivisibleRequest? { nil }
    package var requestSize: RequestSize? { nil }
    package func recall(_ size: RequestSize) {}
    package var bundling: Bundling? { nil }
    package func upload(
        together orders: [UploadOrder], reporter: any BundleReporter, context: RequestContext
    ) async throws -> [String: RemoteObject] { [:] }
    package func lasting(of checkpoint: Checkpoint) -> Checkpoint { Checkpoint() }
    package var limitsSize: Bool { false }
    package var sizeLimit: Int64? { nil }
    package func querySizeLimit(context: RequestContext) async throws(UploadError) -> Int64? { nil }
    package var reportsSpace: Bool { false }
    package func obstacleToRemoving(test order: UploadOrder, context: RequestContext) async -> String? {
        "this type of destination cannot remove a finished file"
    }
    package func remove(
        test order: UploadOrder, _ checkpoint: Checkpoint, context: RequestContext
    ) async throws(UploadError) -> Bool { try await discard(checkpoint, context: context) }
    package func objection(toHeader name: String) -> String? { "it makes no requests that could have headers" }
    package func objection(toURL url: String) -> String? { "it creates no uploads at an address" }
    package func objection(toUploadURL url: String) -> String? { "it sends to no upload that exists" }
    package func space(context: RequestContext) async throws(UploadError) -> RemoteSpace? { nil }
}
