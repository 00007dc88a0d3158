internal import Core
internal import Synchronization
internal import Transport

/// `method_override`: whether PATCH and DELETE travel as POST with `X-HTTP-Method-Override` (tus 1.0, "Headers").
enum MethodOverridePolicy: String, Sendable, CaseIterable {
    /// Where a gateway blocks the method, and the server obeys the header.
    case auto
    case never, always
}

/// Whether the server is known to obey the header. Shared by all uploads to a destination; ``TusCheckpoint`` keeps it
/// over a restart.
final class MethodOverride: Sendable {
    private let used = Atomic(false)
    private let mistaken = Atomic(false)

    var isUsed: Bool {
        get { used.load(ordering: .relaxed) }
        set { used.store(newValue, ordering: .relaxed) }
    }

    /// The server made something of such a request that was not asked for: it gets no other in this run.
    var isMistaken: Bool {
        get { mistaken.load(ordering: .relaxed) }
        set { mistaken.store(newValue, ordering: .relaxed) }
    }
}

/// The requests of an upload that a gateway may block: PATCH and DELETE, as themselves or as POST.
///
/// A server that does not know the header may take the POST for something else and answer with success. Therefore such
/// an answer alone is never progress: HEAD decides.
struct TusMethods {
    let dialect: TusDialect

    private var policy: MethodOverridePolicy { dialect.settings.methodOverride }
    private var override: MethodOverride { dialect.server.override }

    func isOverridden(_ checkpoint: OffsetCheckpoint) -> Bool {
        switch policy {
        case .never: false
        case .always: true
        case .auto: override.isUsed || checkpoint.tus.isMethodOverridden
        }
    }

    func request(
        _ method: String, _ url: String, headers: [(String, String)], body: Request.Body = .none, limits: Limits,
        isOverridden: Bool
    ) -> Request {
        guard isOverridden else { return Request(method, url, headers: headers, body: body, limits: limits) }
        return Request(
            "POST", url, headers: headers + [("X-HTTP-Method-Override", method)], body: body, limits: limits)
    }

    /// A request for no bytes at `offset`, which changes nothing.
    func emptyPatch(_ url: String, at offset: Int64, isOverridden: Bool) -> Request {
        request(
            "PATCH", url,
            headers: [
                TusDialect.version, ("Upload-Offset", "\(offset)"), TusDialect.bytesType, ("Content-Length", "0"),
            ], body: .bytes([]), limits: dialect.settings.limits.small, isOverridden: isOverridden)
    }

    // MARK: PATCH

    /// Whether a gateway may have blocked PATCH with this answer, so that the next request is worth a try.
    func mayAdopt(after answer: Response, _ checkpoint: OffsetCheckpoint) -> Bool {
        policy == .auto && !override.isMistaken && !isOverridden(checkpoint) && isBlocked(answer)
    }

    /// Tries without bytes whether the server obeys the header, after an answer with which a gateway may have blocked
    /// PATCH. HEAD has to work at the same address, before and after.
    ///
    /// - Returns: Whether bytes can be sent in this form from now on.
    func adopt(
        after answer: Response, at offset: Int64, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint
    ) async -> Bool {
        guard mayAdopt(after: answer, checkpoint), let url = checkpoint.url,
            await isAt(offset, order, checkpoint)
        else { return false }
        let carried = await dialect.client.sendBody(
            emptyPatch(url, at: offset, isOverridden: true), dialect.context, sent: { _ in })
        guard case .success(let probe) = carried.result else { return false }
        if isOfCreation(probe.response) { override.isMistaken = true }
        guard accepts(probe.response), dialect.offset(in: probe.response) == offset,
            await isAt(offset, order, checkpoint)
        else { return false }
        (override.isUsed, checkpoint.tus.isMethodOverridden) = (true, true)
        let host = dialect.host(url)
        dialect.log("\(host) is sent bytes with POST and X-HTTP-Method-Override, since PATCH is blocked on the way")
        return true
    }

    /// The server or its gateway refuses this form now.
    func forget(_ checkpoint: inout OffsetCheckpoint) {
        (override.isUsed, checkpoint.tus.isMethodOverridden) = (false, false)
    }

    /// The offset that counts from a success in this form. For bytes before the end of the file it is asked for with
    /// HEAD; at the end the engine asks anyway.
    func acceptedOffset(_ response: Response, isEnd: Bool) -> Int64? {
        isEnd && accepts(response) ? dialect.offset(in: response) : nil
    }

    /// 405 and 501 are about the method. 400 and 403 are so only as the page of a gateway: the server itself answers
    /// with a header of tus, or with a text.
    private func isBlocked(_ response: Response) -> Bool {
        switch response.status {
        case 405, 501: true
        case 400, 403: response.isWebPage && !response.hasTusHeader
        default: false
        }
    }

    private func accepts(_ response: Response) -> Bool {
        (200..<300).contains(response.status) && !response.isWebPage && !isOfCreation(response)
    }

    /// A server that does not know the header may create an upload.
    private func isOfCreation(_ response: Response) -> Bool {
        response.status == 201 || (200..<300).contains(response.status) && response.headers["Location"] != nil
    }

    private func isAt(_ offset: Int64, _ order: UploadOrder, _ checkpoint: OffsetCheckpoint) async -> Bool {
        var copy = checkpoint
        guard case .at(offset)? = try? await dialect.locate(order, &copy) else { return false }
        return true
    }

    // MARK: DELETE

    /// - Returns: `false` when the server does not support removal.
    func remove(_ url: String, _ checkpoint: OffsetCheckpoint) async throws -> Bool {
        if let announced = try await dialect.capabilities.current(dialect), announced.lacks(.termination) {
            return false
        }
        if isOverridden(checkpoint) { return try await removeWithPost(url) }
        let answer = try await dialect.followRedirects(delete(url, isOverridden: false)).response
        switch dialect.verdict(.DELETE, answer) {
        case .success: return true
        case .stop(let remedy): throw dialect.refused("the removal", answer, remedy)
        default: break
        }
        guard policy == .auto, !override.isMistaken, isBlocked(answer), try await isThere(url) else { return false }
        return try await removeWithPost(url)
    }

    private func delete(_ url: String, isOverridden: Bool) -> Request {
        request(
            "DELETE", url, headers: [TusDialect.version], limits: dialect.settings.limits.small,
            isOverridden: isOverridden)
    }

    private func removeWithPost(_ url: String) async throws -> Bool {
        let answer = try await dialect.followRedirects(delete(url, isOverridden: true)).response
        if isOfCreation(answer) { override.isMistaken = true }
        switch dialect.verdict(.DELETE, answer) {
        case .success: return try await !isThere(url)
        case .stop(let remedy): throw dialect.refused("the removal", answer, remedy)
        default: return false
        }
    }

    private func isThere(_ url: String) async throws -> Bool {
        let answer = try await dialect.followRedirects(
            Request("HEAD", url, headers: [TusDialect.version], limits: dialect.settings.limits.small)
        ).response
        switch dialect.verdict(.HEAD, answer) {
        case .success: return true
        case .gone: return false
        case .stop(let remedy): throw dialect.refused("the lookup of an upload that was removed", answer, remedy)
        default: throw dialect.refused("the lookup of an upload that was removed", answer, .retry(after: nil))
        }
    }
}
