internal import Core
internal import Credentials
internal import Digests
internal import Transport

/// A video library of Bunny Stream. A video is created by its API, then its bytes are sent by tus, and each request for
/// them is signed for this one video.
///
/// Sources: https://docs.bunny.net/stream/tus-resumable-uploads and https://docs.bunny.net/stream/http-api
struct BunnyStream: Sendable {
    /// `LibraryId`.
    let library: String
    /// With the header `AccessKey`, which no request for bytes has.
    let api: AuthorizedClient
    /// `https://video.bunnycdn.com`.
    let base: String
    let limits: RequestLimits

    /// A signature is made for each attempt, and has to last as long as one.
    private static let validity: Int64 = 7 * 86_400

    private var videos: String { "\(base)/library/\(library)/videos" }

    /// The headers of requests for the bytes of a video.
    ///
    /// - Throws: ``UploadError`` where the key cannot be read.
    func headers(of video: String) async throws(UploadError) -> [String: String] {
        let key: String
        do { key = try await api.credentials.current().headers.first?.1 ?? "" } catch { throw api.unreadable(error) }
        api.remember([key])
        let end = api.clocks.wall().milliseconds / 1000 + Self.validity
        let signature = hexadecimal(Hasher.digest(.sha256, of: Array("\(library)\(key)\(end)\(video)".utf8)))
        return [
            "AuthorizationSignature": signature, "AuthorizationExpire": "\(end)", "VideoId": video,
            "LibraryId": library,
        ]
    }

    /// Creates a video without bytes.
    ///
    /// - Returns: Its id.
    func create(title: String, _ context: RequestContext) async throws -> String {
        let body = try JSONValue.object(["title": .text(title)]).bytes
        let response = try await send(
            Request(
                "POST", videos, headers: [("Content-Type", "application/json"), ("Accept", "application/json")],
                body: .bytes(body), limits: limits.small), context)
        guard (200..<300).contains(response.status) else { throw refused("the creation of a video", response) }
        guard let id = JSONValue.read(response.body)?["guid"]?.string,
            (1...128).contains(id.utf8.count), id.utf8.allSatisfy({ $0.isLetterOrDigit(or: "-_") })
        else {
            throw UploadError(
                api.failure(
                    .protocol, .unusableAnswer,
                    "\(api.host(base)) answered \(response.status) to the creation of a video without naming it",
                    retryable: true), remedy: .misconfigured)
        }
        return id
    }

    /// Removes a video with its bytes. One that does not exist is removed.
    func remove(_ video: String, _ context: RequestContext) async throws {
        let response = try await send(
            Request("DELETE", "\(videos)/\(video)", headers: [("Accept", "application/json")], limits: limits.small),
            context)
        guard (200..<300).contains(response.status) || response.status == 404 else {
            throw refused("the removal of a video", response)
        }
    }

    /// Asks for the library, which needs the key.
    func check(_ context: RequestContext) async throws {
        let response = try await send(
            Request(
                "GET", videos + "?page=1&itemsPerPage=1", headers: [("Accept", "application/json")],
                limits: limits.small), context)
        guard response.status == 200 else { throw refused("the lookup of the library", response) }
    }

    private func send(_ request: Request, _ context: RequestContext) async throws -> Response {
        do { return try await api.send(request, context).response } catch let error as AuthorizedClient.NoAnswerError {
            throw error.error
        }
    }

    private func refused(_ what: String, _ response: Response) -> UploadError {
        let wait = retryAfter(response.headers, now: api.clocks.wall())
        let remedy: Remedy =
            switch response.status {
            case 401, 403: .authenticate
            case 429: .rateLimit(after: wait)
            case 400, 422: .failUpload
            case 408, 425, 500...: .holdDestination(after: wait)
            default: .misconfigured
            }
        return api.refused(what, response, remedy)
    }

    /// - Returns: `nil` for any other preset.
    init?(_ settings: TusSettings, url: String, _ tools: DestinationTools) {
        guard settings.preset == .bunnyStream, let library = settings.library, let key = settings.apiKey else {
            return nil
        }
        self.library = library
        base = WebAddress(url).origin
        limits = settings.limits
        // Its key is the first of the headers.
        api = AuthorizedClient(tools, headers: [.init("AccessKey", key, key: "api_key")], origins: [base])
    }
}
