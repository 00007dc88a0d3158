package import Core
internal import Digests
internal import Glibc
package import Linux
internal import Synchronization

/// The sign-ins of browsers: one-time codes, cookies for reading, and tokens of pages for changes.
///
/// A session is a text with a signature that only this daemon can make, so it costs no memory and survives a restart.
/// It ends by signing out, with its time, with the token that it began with, and with the key.
package final class WebSessions: Sendable {
    /// What a text is good for: a cookie is never accepted as the token of a page.
    enum Purpose: String { case cookie, page }

    /// How a session began.
    enum Origin: String {
        /// By `sluice web`, on this machine.
        case code
        /// By a configured token.
        case token
    }

    struct Session: Hashable, Sendable {
        var client: ControlClientIdentity
        var origin: Origin
        /// Belongs to the secret of the token that it began with.
        var mark: String
        var until: WallTime
        /// Distinguishes it from every other one: the cookie and the page's token of one sign-in have the same.
        var id: String
    }

    private struct Code {
        var text: String
        var client: ControlClientIdentity
        var until: MonotonicTime
    }

    private let key: [UInt8]
    private let clocks: any Clocks
    private let codes = Mutex<[Code]>([])
    private let ended: EndedSessions
    /// Other daemons on this machine have cookies of other names: browsers do not tell ports apart.
    let cookieName: String

    static let lifetime: Duration = .seconds(7 * 86_400)
    /// A clock that is set back by less, as by a wrong time zone, ends no sign-in.
    static let clockTolerance: Duration = .seconds(3_600)
    static let codeLifetime: Duration = .seconds(60)
    /// The most codes at a time; the oldest gives way.
    private static let mostCodes = 16

    /// Sign-ins that end with this run.
    ///
    /// - Parameters:
    ///   - key: At least 32 secret bytes of this daemon.
    ///   - isSecure: Whether browsers send the cookie over TLS alone.
    package convenience init(key: [UInt8] = Random.bytes(32), isSecure: Bool, clocks: any Clocks) {
        self.init(key: key, ended: EndedSessions(clocks: clocks), isSecure: isSecure, clocks: clocks)
    }

    /// Sign-ins that survive a restart, by a key in the daemon's state folder, which is made when it is missing.
    package convenience init(in state: FilePath, isSecure: Bool, clocks: any Clocks) throws(SystemError) {
        self.init(
            key: try Self.key(in: state),
            ended: try EndedSessions(in: state.appending("web.ended"), clocks: clocks), isSecure: isSecure,
            clocks: clocks)
    }

    private init(key: [UInt8], ended: EndedSessions, isSecure: Bool, clocks: any Clocks) {
        self.key = key
        self.ended = ended
        self.clocks = clocks
        let name = hexadecimal(Hasher.digest(.sha256, of: Array("cookie name\n".utf8) + key).prefix(4))
        cookieName = (isSecure ? "__Host-" : "") + "sluice-" + name
    }

    static func key(in state: FilePath) throws(SystemError) -> [UInt8] {
        let file = state.appending("web.key")
        if let status = try FileStatus.ifPresent(at: file) {
            // Opening a pipe would wait for a writer.
            guard status.isRegular else { throw .notRegular(file) }
            let key = try Files.read(file, limit: 1 << 10)
            // A shorter one was cut by a full disk, or made by a person.
            if key.count >= 32 { return key }
        }
        let key = Random.bytes(32)
        try Files.replace(file, with: key, mode: 0o600)
        return key
    }

    // MARK: Codes

    /// A new code, good for one sign-in within a minute.
    func makeCode(for client: ControlClientIdentity) -> String {
        let text = hexadecimal(Random.bytes(16))
        let now = clocks.monotonic()
        codes.withLock { codes in
            codes.removeAll { $0.until <= now }
            if codes.count == Self.mostCodes { codes.removeFirst() }
            codes.append(Code(text: text, client: client, until: now.advanced(by: Self.codeLifetime)))
        }
        return text
    }

    /// The client that a code is for. A code is good once.
    func redeem(_ text: String) -> ControlClientIdentity? {
        let now = clocks.monotonic()
        let given = Array(text.utf8)
        return codes.withLock { codes in
            codes.removeAll { $0.until <= now }
            guard let index = codes.firstIndex(where: { isSameSecret(Array($0.text.utf8), given) }) else { return nil }
            return codes.remove(at: index).client
        }
    }

    // MARK: Sessions

    /// - Parameter secret: Of the token that it begins with; `nil` for a code.
    func begin(_ client: ControlClientIdentity, secret: [UInt8]?) -> Session {
        Session(
            client: client, origin: secret == nil ? .code : .token, mark: secret.map(mark) ?? "",
            until: clocks.wall().advanced(by: Self.lifetime), id: hexadecimal(Random.bytes(8)))
    }

    /// Ends a session for every browser and program that has one of its texts. Waits for the disk.
    ///
    /// - Throws: If it ended only until the next restart.
    func end(_ session: Session) throws(SystemError) { try ended.add(session) }

    func text(_ purpose: Purpose, of session: Session) -> String {
        let content = [
            session.client.role.rawValue, session.origin.rawValue, session.mark,
            String(session.until.milliseconds), session.id, hexadecimal(Array(session.client.name.utf8)),
        ].joined(separator: ".")
        return content + "." + signature(purpose, content)
    }

    /// - Returns: `nil` for one that this daemon has not made, that was changed, or that has ended.
    func session(_ purpose: Purpose, _ text: String) -> Session? {
        guard text.utf8.count < 1_024, let cut = text.lastIndex(of: ".") else { return nil }
        let content = String(text[..<cut])
        let given = Array(text[text.index(after: cut)...].utf8)
        guard isSameSecret(given, Array(signature(purpose, content).utf8)) else { return nil }
        let fields = content.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard fields.count == 6, let role = ControlRole(rawValue: fields[0]), let origin = Origin(rawValue: fields[1]),
            let until = Int64(fields[3]).map({ WallTime(milliseconds: $0) }), isNow(before: until),
            let name = bytes(hexadecimal: fields[5])
        else { return nil }
        let session = Session(
            client: ControlClientIdentity(name: String(decoding: name, as: UTF8.self), role: role), origin: origin,
            mark: fields[2], until: until, id: fields[4])
        return ended.contains(session) ? nil : session
    }

    /// Whether a session that ends then may be good now. One that began while the clock was ahead would be good for
    /// longer than any other.
    private func isNow(before until: WallTime) -> Bool {
        let now = clocks.wall()
        return until > now && until <= now.advanced(by: Self.lifetime + Self.clockTolerance)
    }

    /// Whether a session began with this secret.
    func matches(_ session: Session, secret: [UInt8]) -> Bool {
        isSameSecret(Array(session.mark.utf8), Array(mark(secret).utf8))
    }

    private func mark(_ secret: [UInt8]) -> String {
        hexadecimal(Hasher.authentication(.sha256, of: Array("token\n".utf8) + secret, key: key).prefix(8))
    }

    private func signature(_ purpose: Purpose, _ content: String) -> String {
        hexadecimal(Hasher.authentication(.sha256, of: Array("\(purpose.rawValue)\n\(content)".utf8), key: key))
    }
}

extension SystemError {
    /// For a name in the state folder that is a folder, a pipe or a link in place of a file.
    static func notRegular(_ path: FilePath) -> SystemError {
        SystemError(call: "open", subject: path.display, code: EINVAL, detail: "it is not a file")
    }
}
