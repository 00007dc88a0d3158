internal import Core

// Keys of the sections that the daemon has once.

extension StagingSettings {
    static let keys: [Key<Self>] = [
        Key("path", \.path, .path), Key("copy", \.copy), Key("max_size", \.maxSize, .bytes),
        Key("keep_free", \.keepFree, .bytes), Key("concurrency", \.concurrency, .whole(1...8)),
        Key("memory", \.memory),
    ]
}

extension MetricsSettings {
    static let keys: [Key<Self>] = [
        Key("textfile", \.textfile, .path), Key("status_file", \.statusFile, .path),
        Key("every", \.every, .duration(.seconds(5) ... .seconds(3600))),
    ]
}

extension ListRetention {
    static let keys = [
        key("completed", \.completed.time, minCompleted), key("failed", \.failed.time, minFailed),
        key("cancelled", \.cancelled.time, .seconds(1)), key("history", \.history, .seconds(1)),
    ]

    private static func key(_ name: String, _ path: Property<Self, Duration?>, _ least: Duration) -> Key<Self> {
        Key(name, path, .duration(atLeast: least)) { $0?.inFile ?? .plain("never") }
    }
}

extension ControlSettings {
    static let keys: [Key<Self>] = [
        Key("socket", \.socket, .path), Key("listen", of: \.remote?.listen).takes(.listen),
        Key("tokens", of: { $0.remote?.tokens }) { $1.tokens($0) }.takes(.list(.section("control.tokens[]"))),
        Key("tls", of: { $0.remote?.tls }) { $1.tlsFiles($0) }.takes(.section("control.tls")),
        Key("web", of: \.remote?.servesPage).takes(.flag), Key("thumbnails", \.thumbnails, .flag),
        Key("hosts", of: \.remote?.hosts).takes(.list(.host)).printed { $0.remote?.hosts != [] },
        Key("trusted_proxies", of: \.remote?.trustedProxies).takes(.list(.proxy)).printed {
            $0.remote?.trustedProxies != []
        },
        Key("insecure_http", of: \.remote?.allowsPlainHTTP).takes(.flag).printed {
            $0.remote?.allowsPlainHTTP == true
        },
    ]
}

extension ControlToken {
    static let keys: [Key<Self>] = [
        Key("name", \.name, .name),
        Key("role", \.role),
        Key("secret", of: \.secret) { $1.secret($0) }.takes(.secret),
    ]
}

extension RemoteControlSettings.TLSFiles {
    static let keys: [Key<Self>] = [Key("certificate", \.chain, .path), Key("key", \.key, .path)]
}
