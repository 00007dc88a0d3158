internal import Core
internal import Credentials
internal import Linux
internal import Transport

/// The connection settings of one destination, with their secrets, which are read when they are needed and again when a
/// proxy refuses them.
struct DestinationConnection: ConnectionSource {
    private let settings: ConnectionSettings
    private let secrets: CredentialProvider
    private let hasSecrets: Bool
    /// Takes the credentials for proxies.
    private let sent: SentCredentials
    private let files = UsableCertificateFiles()

    /// By their keys in the configuration.
    private enum Name: String {
        case proxyPassword = "http.proxy_password"
        case clientKey = "http.client_key"
        case clientKeyPassword = "http.client_key_password"
    }

    init(_ http: HTTPSettings, reader: SecretReader, remembering sent: SentCredentials) {
        self.sent = sent
        var settings = http.connection
        settings.proxyUser = http.proxyUser
        self.settings = settings
        let named: [(Name, SecretSource?)] = [
            (.proxyPassword, http.proxyPassword), (.clientKey, http.clientKey),
            (.clientKeyPassword, http.clientKeyPassword),
        ]
        let sources = named.compactMap { name, source in
            source.map { CredentialProvider.Header(name.rawValue, $0, key: name.rawValue) }
        }
        // They are not values of headers: a key has several lines.
        secrets = CredentialProvider(sources, reader: reader, areSent: false)
        hasSecrets = !sources.isEmpty
    }

    func settings(for request: Request) async throws(TransportError) -> ConnectionSettings {
        // A request that stays on this machine or link.
        guard request.mayUseProxy else { return ConnectionSettings() }
        let settings = try await currentSettings(for: request)
        if let proxy = settings.proxy(for: WebAddress(request.url)) { remember(proxy, settings) }
        return settings
    }

    /// A proxy may repeat what it was sent, as a server may.
    private func remember(_ proxy: ProxyServer, _ settings: ConnectionSettings) {
        let login =
            proxy.origin == .configuration
            ? settings.proxyUser.map { "\($0):\(settings.proxyPassword ?? "")" } : proxy.login
        if let login { sent.remember(header: "Proxy-Authorization", "Basic " + base64(Array(login.utf8))) }
    }

    private func currentSettings(for request: Request) async throws(TransportError) -> ConnectionSettings {
        guard hasSecrets else {
            try await checkFiles(for: request)
            return settings
        }
        let values: [(String, String)]
        do { values = try await secrets.current().headers } catch {
            throw TransportError(kind: .secret, detail: "\(error)", url: request.url)
        }
        try await checkFiles(for: request)
        var settings = settings
        for (name, value) in values {
            switch Name(rawValue: name) {
            case .proxyPassword:
                guard ProxyServer.mayBeSent(value) else {
                    throw TransportError(
                        kind: .secret,
                        detail: "`\(name)` has a line break or another control character, which no password of a proxy "
                            + "may have: write it alone, in one line", url: request.url)
                }
                settings.proxyPassword = value
            case .clientKey: settings.clientKey = value
            case .clientKeyPassword: settings.clientKeyPassword = value
            case nil: break
            }
        }
        return settings
    }

    /// Before a connection: a file that libcurl cannot use would look like a server that is not trusted. The files may come
    /// later than the configuration.
    private func checkFiles(for request: Request) async throws(TransportError) {
        var wanted: [(key: String, file: FilePath, kind: TransportError.Kind)] = []
        if WebAddress(request.url).scheme == "https" {
            if let file = request.caFile {
                wanted.append(("ca_file", file, .tls))
            } else if let file = settings.caFile {
                wanted.append(("http.ca_file", file, .tls))
            }
            if request.showsIdentity, let file = settings.clientCertificate {
                wanted.append(("http.client_certificate", file, .clientCertificate))
            }
        }
        if settings.proxy(for: WebAddress(request.url))?.scheme == .https, let file = settings.proxyCAFile {
            wanted.append(("http.proxy_ca_file", file, .tls))
        }
        if wanted.isEmpty { return }
        do {
            try await blocking { [wanted, files] in
                for (key, file, kind) in wanted {
                    guard let problem = files.problem(of: file) else { continue }
                    throw TransportError(kind: kind, detail: "`\(key)` \(file.display) \(problem)", url: request.url)
                }
            }
        } catch let error as TransportError { throw error } catch {
            throw TransportError(kind: .other, detail: "\(error)", url: request.url)
        }
    }

    func proxyRefused() async { await secrets.discard() }
}
