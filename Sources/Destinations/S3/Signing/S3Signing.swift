internal import Core
internal import Credentials
internal import Synchronization
internal import Transport

/// Signs requests, with a key of ours or by an external signer.
protocol S3Signing: Sendable {
    /// - Parameter context: For the requests that are needed to sign it.
    /// - Throws: ``UploadError``; `CancellationError`.
    func signed(_ request: S3Request, _ context: RequestContext) async throws -> S3Signed
    /// The key in use is known to be a temporary one.
    var isTemporary: Bool { get }
    /// Reports that bytes of a file were in flight for this long.
    func carried(for time: Duration) async
}

extension S3Signing {
    func carried(for time: Duration) async {}
}

/// A request as it is sent.
struct S3Signed: Sendable {
    var url: String
    var headers: [(String, String)]
    /// The signature or key of the request: a server that repeats it in its answer must not have it shown.
    var proof: String?
    /// Faults that another signature corrects.
    enum Correction: Sendable { case region, clock, key }
    /// Examines a refusal.
    ///
    /// - Parameter corrected: Corrections that were already made for this request.
    /// - Returns: The correction that was made now, so that the request is worth being signed and sent again; `nil`
    ///   when there was none.
    var correct: @Sendable (_ answer: Response, _ corrected: Set<Correction>) async -> Correction?
}

/// Signs with the present key, region and clock.
final class S3KeySigner: S3Signing {
    /// Facts learned from answers, for all uploads of the destination.
    private struct State {
        var region: String
        var isTemporary = false
    }

    private let keys: any S3KeySource
    private let client: AuthorizedClient
    private let settings: S3Settings
    private let state: Mutex<State>
    private let clock: ServiceClock

    init(_ keys: any S3KeySource, client: AuthorizedClient, settings: S3Settings, clock: ServiceClock = ServiceClock())
    {
        self.clock = clock
        self.keys = keys
        self.client = client
        self.settings = settings
        state = Mutex(State(region: settings.region))
    }

    var isTemporary: Bool { state.withLock { $0.isTemporary } }

    func signed(_ request: S3Request, _ context: RequestContext) async throws -> S3Signed {
        let (key, reading) = try await client.key(of: keys, context)
        let region = state.withLock { state in
            state.isTemporary = key.token != nil
            return state.region
        }
        let place = settings.place(of: request.key, in: region)
        let message = S3Message(
            method: request.method, host: place.host, path: place.path, query: request.query, headers: request.headers,
            payload: request.payload ?? S3Message.unsignedPayload, bucket: settings.bucket, key: request.key)
        let query = message.codedQuery
        let ahead = clock.ahead
        let now = client.clocks.wall().advanced(by: ahead)
        let headers =
            settings.signing == .s3
            ? S3Signature(key: key, region: region).headers(of: message, at: now)
            : OSSSignature(key: key, region: region, version: settings.signing).headers(of: message, at: now)
        // The signature stands after `Signature=`, or in OSS's first version after the key's id.
        let mark = settings.signing == .v1 ? ":" : "Signature="
        let proof = headers.lazy.compactMap { name, value in
            name.lowercased() == "authorization" ? value.split(separator: mark).last.map(String.init) : nil
        }.first
        return S3Signed(url: place.url + (query.isEmpty ? "" : "?" + query), headers: headers, proof: proof) {
            answer, corrected in
            let verdict = S3Verdict(answer, isTemporary: key.token != nil, now: self.client.clocks.wall())
            if let right = verdict.region, right != region, verdict.concernsRegion, !corrected.contains(.region) {
                self.state.withLock { $0.region = right }
                return .region
            }
            if !corrected.contains(.clock),
                self.clock.isCorrected(by: answer, now: self.client.clocks.wall(), ahead: ahead)
            {
                return .clock
            }
            let isHead = request.method == "HEAD"
            guard !corrected.contains(.key),
                await self.keys.renew(key, reading, after: verdict, isHead: isHead, context)
            else { return nil }
            return .key
        }
    }

    func carried(for time: Duration) async { await keys.carried(for: time) }
}

extension AuthorizedClient {
    /// Returns the present key, which no message shows from then on.
    func key(of source: any S3KeySource, _ context: RequestContext) async throws -> (key: S3Key, reading: Int) {
        do {
            let current = try await source.current(context)
            remember([current.key.id, current.key.secret] + [current.key.token].compactMap { $0 })
            return current
        } catch  where error is SecretError || error is S3Keys.UnusableKeyError {
            throw unreadable(error)
        }
    }

    /// Makes the error for a request without an answer: `what` follows the destination's name.
    func silence(_ what: String, _ error: NoAnswerError) -> UploadError {
        var renamed = error.error
        renamed.failure.message = "\(name): \(what): \(renamed.failure.message.dropFirst(name.count + 2))"
        return renamed
    }
}

extension S3Settings {
    /// Where an object is, or the bucket itself.
    struct Place: Sendable {
        var scheme: String
        var host: String
        var path: String
        var url: String { "\(scheme)://\(host)\(path)" }
    }

    func place(of key: FilePath?, in region: String) -> Place {
        let address = WebAddress(endpoint.replacing("{region}", with: region))
        let host = address.authority ?? ""
        let name = key.map { S3Message.path(of: $0) } ?? ""
        return Place(
            scheme: address.scheme ?? "https", host: isVirtual && !hasOwnHost ? "\(bucket).\(host)" : host,
            path: (isVirtual ? "/" : "/\(bucket)" + (key == nil ? "" : "/")) + name)
    }
}
