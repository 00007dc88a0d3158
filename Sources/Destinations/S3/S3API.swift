internal import Core
internal import Credentials
internal import Digests
internal import Synchronization
internal import Transport

/// A request to a bucket, before it is signed.
struct S3Request: Sendable {
    var method: String
    /// `nil` for the bucket itself.
    var key: FilePath?
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    var body: Request.Body = .none
    /// Hexadecimal SHA-256 of the body; `nil` for one that is not read before it is sent.
    var payload: String? = S3Message.emptyPayload
    var limits = Limits(whole: .seconds(60))
    /// In words, for a refusal.
    var what: String
}

/// Sends requests to one bucket, each signed anew: with the key, the region and the clock that count now.
struct S3API: Sendable {
    let asking: Asking
    let settings: S3Settings
    let keys: S3Keys
    private let learned: Learned

    /// What answers have taught, for all uploads of the destination.
    private final class Learned: Sendable {
        struct State {
            var region: String
            /// The service's clock is so far ahead of ours.
            var skew: Duration = .zero
            /// It gives no list of parts.
            var hasNoList = false
            /// The key in use is a temporary one.
            var isLent = false
        }

        let state: Mutex<State>
        init(_ region: String) { state = Mutex(State(region: region)) }
    }

    init(asking: Asking, settings: S3Settings, keys: S3Keys) {
        self.asking = asking
        self.settings = settings
        self.keys = keys
        learned = Learned(settings.region)
    }

    var hasNoList: Bool {
        get { learned.state.withLock { $0.hasNoList } }
        nonmutating set { learned.state.withLock { $0.hasNoList = newValue } }
    }

    var isSecure: Bool { WebAddress(settings.endpoint).scheme == "https" }
    /// Where the objects are, told from every other place.
    var server: String { "\(WebAddress(settings.endpoint).authority ?? "")/\(settings.bucket)" }

    private enum Correction { case region, clock, key }

    /// - Returns: The answer, whatever it says. A wrong region, a clock that differs and a key that has ended are mended once each.
    /// - Throws: ``Asking/Unanswered``; ``UploadError``; `CancellationError`.
    func send(
        _ request: S3Request, _ sent: @escaping @Sendable (Int64) -> Void = { _ in }
    ) async throws -> Response {
        var corrected: Set<Correction> = []
        while true {
            let (key, reading) = try await current()
            let (region, skew) = learned.state.withLock { state in
                state.isLent = key.token != nil
                return (state.region, state.skew)
            }
            let place = place(region, request.key)
            let message = S3Message(
                method: request.method, host: place.host, path: place.path, query: request.query,
                headers: request.headers, payload: request.payload ?? S3Message.unsignedPayload)
            let query = message.codedQuery
            let headers = S3Signature(key: key, region: region).headers(
                of: message, at: asking.clocks.wall().advanced(by: skew))
            let response = try await asking.ask(
                Request(
                    request.method, "\(place.scheme)://\(place.host)\(place.path)" + (query.isEmpty ? "" : "?" + query),
                    headers: headers, body: request.body, limits: request.limits), sent: sent
            ).response
            guard !(200..<300).contains(response.status), response.status != 404 else { return response }
            let verdict = verdict(response)
            if let right = verdict.region, right != region, verdict.isOfRegion, corrected.insert(.region).inserted {
                learned.state.withLock { $0.region = right }
            } else if let ahead = self.skew(response), abs((ahead - skew).inMilliseconds) > Self.tolerance,
                corrected.insert(.clock).inserted
            {
                learned.state.withLock { $0.skew = ahead }
            } else if verdict.isOfKey, key.token != nil || verdict.code != "AccessDenied",
                corrected.insert(.key).inserted
            {
                await keys.refused(reading)
            } else {
                return response
            }
        }
    }

    /// Services take signatures of fifteen minutes around their own time. (ms)
    private static let tolerance: Int64 = 300_000

    /// How far the service's clock is ahead of ours, by an answer that may be about that: to `HEAD` it has no words, and some
    /// servers say `AccessDenied`.
    private func skew(_ response: Response) -> Duration? {
        guard response.status == 400 || response.status == 403,
            let theirs = response.headers["Date"].flatMap({ httpDate($0) })
        else { return nil }
        return .milliseconds(theirs.milliseconds - asking.clocks.wall().milliseconds)
    }

    func verdict(_ response: Response) -> S3Verdict {
        S3Verdict(response, isLent: learned.state.withLock { $0.isLent }, now: asking.clocks.wall())
    }

    func refusal(_ response: Response, _ what: String) -> UploadError {
        let verdict = verdict(response)
        return asking.refused(
            what, response, verdict.remedy, words: verdict.code == nil ? nil : asking.withoutSecrets(verdict.words),
            code: verdict.code)
    }

    private func current() async throws -> (key: S3Key, reading: Int) {
        do {
            let current = try await keys.current()
            asking.remember([current.key.secret] + [current.key.token].compactMap { $0 })
            return current
        } catch {
            throw UploadError(
                asking.failure(.auth, "secret_unreadable", "\(error)", retryable: true), remedy: .authenticate)
        }
    }

    private func place(_ region: String, _ key: FilePath?) -> (scheme: String, host: String, path: String) {
        let address = WebAddress(settings.endpoint.replacing("{region}", with: region))
        let host = address.authority ?? ""
        let name = key.map { S3Message.path(of: $0) } ?? ""
        return (
            address.scheme ?? "https", settings.isVirtual ? "\(settings.bucket).\(host)" : host,
            (settings.isVirtual ? "/" : "/\(settings.bucket)" + (key == nil ? "" : "/")) + name
        )
    }

    /// Where a person finds an object.
    func address(of key: FilePath) -> String {
        let place = place(settings.region, key)
        return "\(place.scheme)://\(place.host)\(place.path)"
    }
}
