internal import Core
internal import Synchronization
internal import Transport

/// Makes requests ones that the service takes: with a key of ours, or by somebody who has one.
protocol S3Signing: Sendable {
    /// - Throws: ``UploadError``; `CancellationError`.
    func signed(_ request: S3Request) async throws -> S3Signed
    /// The key in use is known to be a temporary one.
    var isLent: Bool { get }
}

/// A request as it is sent.
struct S3Signed: Sendable {
    var url: String
    var headers: [(String, String)]
    /// What it is proven with: a server that repeats it in its answer shows it to nobody.
    var proof: String?
    /// What another signature may mend.
    enum Correction: Sendable { case region, clock, key }
    /// Looks at what was said no to.
    ///
    /// - Parameter corrected: What was mended already for this request.
    /// - Returns: What was mended now, so that the request is worth being signed and sent again; `nil` when nothing was.
    var mend: @Sendable (_ answer: Response, _ corrected: Set<Correction>) async -> Correction?
}

/// Signs with a key: with the key, the region and the clock that count now.
final class S3KeySigner: S3Signing {
    /// What answers have taught, for all uploads of the destination.
    private struct State {
        var region: String
        /// The service's clock is so far ahead of ours.
        var skew: Duration = .zero
        var isLent = false
    }

    private let keys: any S3KeySource
    private let asking: Asking
    private let settings: S3Settings
    private let state: Mutex<State>

    init(_ keys: any S3KeySource, asking: Asking, settings: S3Settings) {
        self.keys = keys
        self.asking = asking
        self.settings = settings
        state = Mutex(State(region: settings.region))
    }

    var isLent: Bool { state.withLock { $0.isLent } }

    func signed(_ request: S3Request) async throws -> S3Signed {
        let (key, reading) = try await current()
        let (region, skew) = state.withLock { state in
            state.isLent = key.token != nil
            return (state.region, state.skew)
        }
        let place = settings.place(of: request.key, in: region)
        let message = S3Message(
            method: request.method, host: place.host, path: place.path, query: request.query, headers: request.headers,
            payload: request.payload ?? S3Message.unsignedPayload, bucket: settings.bucket, key: request.key)
        let query = message.codedQuery
        let now = asking.clocks.wall().advanced(by: skew)
        let headers =
            settings.signing == .s3
            ? S3Signature(key: key, region: region).headers(of: message, at: now)
            : OSSSignature(key: key, region: region, version: settings.signing).headers(of: message, at: now)
        // Behind `Signature=`, or in OSS's first version behind the key's id.
        let mark = settings.signing == .v1 ? ":" : "Signature="
        let proof = headers.lazy.compactMap { name, value in
            name.lowercased() == "authorization" ? value.split(separator: mark).last.map(String.init) : nil
        }.first
        return S3Signed(url: place.url + (query.isEmpty ? "" : "?" + query), headers: headers, proof: proof) {
            answer, corrected in
            let verdict = S3Verdict(answer, isLent: key.token != nil, now: self.asking.clocks.wall())
            if let right = verdict.region, right != region, verdict.isOfRegion, !corrected.contains(.region) {
                self.state.withLock { $0.region = right }
                return .region
            }
            if let ahead = self.skew(answer), abs((ahead - skew).inMilliseconds) > Self.tolerance,
                !corrected.contains(.clock)
            {
                self.state.withLock { $0.skew = ahead }
                return .clock
            }
            let isOfKey = verdict.isOfKey && (key.token != nil || verdict.code != "AccessDenied")
            guard isOfKey || request.method == "HEAD" && verdict.isMute, !corrected.contains(.key) else { return nil }
            await self.keys.refused(reading)
            return .key
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

    private func current() async throws -> (key: S3Key, reading: Int) {
        do {
            let current = try await keys.current()
            asking.remember([current.key.id, current.key.secret] + [current.key.token].compactMap { $0 })
            return current
        } catch let error as UploadError { throw error } catch let error as CancellationError { throw error } catch {
            throw UploadError(
                asking.failure(.auth, "secret_unreadable", "\(error)", retryable: true), remedy: .authenticate)
        }
    }
}

extension Asking {
    /// Nobody answered, told as what that means: `what` stands behind the destination's name.
    func silence(_ what: String, _ error: Unanswered) -> UploadError {
        var told = error.error
        told.failure.message = "\(name): \(what): \(told.failure.message.dropFirst(name.count + 2))"
        return told
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
