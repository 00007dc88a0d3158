internal import Core
internal import Synchronization
internal import Transport

/// One bucket: how it is accessed, and the facts that all uploads to it have learned.
struct S3Bucket: Sendable {
    let client: AuthorizedClient
    let settings: S3Settings
    let signer: any S3Signing
    /// The configuration keys that give the right to ask, named in messages.
    let rights: String
    let learned = Learned()
    let forbiddenQuestions: S3ForbiddenQuestions
    let creations = CreationBackoff()
    /// The size of requests with bytes of files that the path takes.
    let requestSize = ChunkSize(.max)

    /// Facts learned from answers, for all uploads of the destination.
    final class Learned: Sendable {
        /// The service gives no list of parts.
        let hasNoList = Atomic(false)
        /// An ETag was the MD5 of the sent bytes: then all ETags of the same kind are, of whole files or of parts.
        let wholeTagsAreMD5 = Atomic(false)
        let partTagsAreMD5 = Atomic(false)
        /// The ETag of a multipart object was computed from the parts' ETags: then all are.
        let tagsAreJoined = Atomic(false)
        /// Keys to which uploads of this program are in progress, with the upload's id.
        let names = Mutex<[FilePath: String]>([:])
        /// Numbers by id of the upload: names with smaller numbers are taken by other files.
        let searches = Mutex<[String: Int]>([:])
        /// Keys that are known to exist, with the digest of their content.
        let existingKeys = Mutex<[FilePath: [UInt8]]>([:])
    }

    /// - Parameter log: Writes one line to the log.
    init(
        client: AuthorizedClient, settings: S3Settings, signer: any S3Signing, rights: String,
        log: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        forbiddenQuestions = S3ForbiddenQuestions(log: log)
        self.client = client
        self.rights = rights
        self.settings = settings
        self.signer = signer
    }

    /// Requests are signed by an external signer, which may refuse to sign some.
    var isPresigned: Bool { signer is S3Presigner }
    /// No digest of a body is sent in a header of its own, for one of two reasons: the connection protects the bytes,
    /// or the request is signed externally, and such a signature covers no body.
    var isSecure: Bool { isPresigned || WebAddress(settings.endpoint).scheme == "https" }
    /// The identity of the bucket: host and bucket name.
    var server: String { "\(WebAddress(settings.endpoint).authority ?? "")/\(settings.bucket)" }

    /// How files are cut into parts.
    func partition(isSingle: Bool) -> S3PartLayout {
        S3PartLayout(settings: settings, isSecure: isSecure, isSingle: isSingle, largest: requestSize.cap)
    }

    /// Whether a new upload of a file of this size is one request.
    func isSingle(_ size: Int64) -> Bool {
        size <= min(settings.singleUpTo, max(requestSize.cap, settings.preset.smallestPart))
    }

    /// Ends the reservations of keys by these uploads.
    func release(of ids: Set<String>) { learned.names.withLock { $0 = $0.filter { !ids.contains($0.value) } } }
}
