internal import Core

/// The meaning of an answer, by the configured rules first and then by its status.
///
/// The table is `FormVerdictTests.table`. No other code evaluates a status of a form.
enum FormVerdict: Hashable, Sendable {
    case success
    /// Start again from the first part.
    case startOver
    /// The server does not know the upload of its own token any more.
    case gone
    /// The digest did not match.
    case damaged
    case stop(Remedy)

    /// The kind of request.
    enum Question: Sendable { case open, part, finish, abort, probe }

    /// - Parameters:
    ///   - wantsJSON: Only JSON can be a success: the caller reads a value from it.
    ///   - isPage: The body is a web page.
    ///   - isOfPath: An intermediary may have answered in place of the server.
    ///   - wait: `Retry-After`.
    init(
        _ question: Question, status: Int, _ body: FormReply, _ settings: FormSettings, wantsJSON: Bool, isPage: Bool,
        isOfPath: Bool = false, wait: Duration?
    ) {
        let mayBeFile = question == .part || question == .finish
        let isMet = settings.success.isMet(status, body)
        // A login portal answers 200 to everything.
        if isPage, isMet || (200..<300).contains(status) {
            self = .stop(.misconfigured)
        } else if isMet, !wantsJSON || body.document != nil {
            self = .success
        } else if mayBeFile, settings.restart.matchesAny(status, body) {
            self = settings.open != nil && (status == 404 || status == 410) ? .gone : .startOver
        } else if settings.permanent.speaks(body) {
            self = .stop(.failUpload)
        } else if question == .part, status == 422 || status == 460, settings.sendsDigest {
            self = .damaged
        } else {
            let isPermanent = settings.permanent.statuses.contains(status) && !isOfPath
            self = .stop(Self.byStatus(status, isPermanent: isPermanent, wait))
        }
    }

    /// Statuses with which servers refuse a request without looking at its body: the credentials, the address or the
    /// length are wrong.
    private static let unread: Set<Int> = [401, 403, 404, 405, 407, 410, 411, 413, 414, 415, 417, 431]

    /// Whether a status that is no success means that the server has done nothing with a block. A gateway may answer
    /// for a server that took it, and its 2xx answer says nothing about the block.
    ///
    /// - Parameter isOnlyRepeated: A block that comes again replaces itself. Otherwise only a certain answer counts.
    static func hadNoEffect(_ status: Int, isOnlyRepeated: Bool) -> Bool {
        guard isOnlyRepeated else { return unread.contains(status) }
        return (300..<500).contains(status) && !IntermediaryStatus.mayBeForwarded.contains(status)
    }

    private static func byStatus(_ status: Int, isPermanent: Bool, _ wait: Duration?) -> Remedy {
        switch status {
        case 401, 403: return .authenticate
        case 407: return .holdDestination(after: nil)
        // The address is wrong, and the file is not to blame.
        case 300..<400, 404, 405, 410, 411, 501: return .misconfigured
        // Other clients treat this as final, but it may be temporary. It uses up attempts and holds no other upload.
        case 500 where isPermanent: return .refused(after: wait)
        case 408, 421, 425: return .retry(after: wait ?? .seconds(1))
        case 429: return .rateLimit(after: wait)
        case 507: return .outOfSpace(after: wait)
        case let status where IntermediaryStatus.all.contains(status): return .holdDestination(after: wait)
        case 500...: return .holdDestination(after: wait)
        // The status was a success, but the JSON was not, or there was no JSON.
        case 200..<300: return .refused(after: wait)
        default: return .failUpload
        }
    }
}
