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
        Key("token", of: \.remote?.token) { $1.secret($0) }.takes(.secret),
        Key("hosts", of: \.remote?.hosts).takes(.list(.hostName)).printed { $0.remote?.hosts != [] },
        Key("trusted_proxies", of: \.remote?.trustedProxies).takes(.list(.proxy)).printed {
            $0.remote?.trustedProxies != []
        },
        Key("certificate", of: \.remote?.certificate?.chain).takes(.path),
        Key("key", of: \.remote?.certificate?.key).takes(.path),
    ]
}
