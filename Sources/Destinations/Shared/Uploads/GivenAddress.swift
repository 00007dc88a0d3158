internal import Core
internal import Transport

/// The address that a person gave for the creation of one upload, in place of the destination's own.
struct GivenAddress: Sendable {
    let url: String
    /// The destination's own address.
    let endpoint: String

    /// Why it cannot be used; `nil` for no reason. The credentials of its requests, and the routes that they may take,
    /// were decided for one origin.
    var objection: String? {
        let (target, home) = (WebAddress(url), WebAddress(endpoint).origin)
        guard (1...2048).contains(url.utf8.count), url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            target.scheme == "http" || target.scheme == "https", !target.host.isEmpty
        else { return "it must be an http or https address of at most 2048 printable ASCII characters" }
        if target.hasUser { return "it has a user name in it; `token` and `headers` of the destination are for that" }
        if target.origin != home {
            return "it is of \(FilePath(target.origin).display), and the destination is \(FilePath(home).display): "
                + "configure a destination for that server"
        }
        return nil
    }

    /// The error of an upload whose address cannot be used any more: the configuration may have changed since the
    /// address was given.
    func refusal(_ client: AuthorizedClient) -> UploadError? {
        objection.map { objection in
            UploadError(
                client.failure(
                    .config, .urlRefused, "the address that was given for this upload cannot be used: \(objection)",
                    retryable: false), remedy: .failUpload)
        }
    }
}
