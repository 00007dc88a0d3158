internal import CCurl
internal import Core

/// Kept connections, apart for each interface and for each set of settings. Owned by the loop's thread.
///
/// When it looks for a kept connection, libcurl knows neither which sockets we have bound, nor which addresses a person
/// has given for a name. Its share handles are documented for this: connections and known names are looked for in the
/// easy handle's share (CURLSHOPT_SHARE(3), CURL_LOCK_DATA_CONNECT and CURL_LOCK_DATA_DNS).
struct ConnectionPools {
    private struct Key: Hashable {
        let interface: String?
        let settings: ConnectionSettings

        init(_ request: Request) {
            interface = request.interface
            settings = request.connection
        }

        /// Its connections belong to the multi handle.
        var isPlain: Bool { interface == nil && settings == ConnectionSettings() }
    }

    /// Settings change when the configuration or a secret does. The pools of old ones are closed when there are more.
    private static let most = 32

    private var pools: [Key: UnsafeMutableRawPointer] = [:]

    /// - Parameter running: The running requests, whose pools stay.
    /// - Returns: `false` without memory.
    mutating func set(
        for request: Request, _ easy: UnsafeMutableRawPointer, inUse running: [Request]
    ) -> Bool {
        let key = Key(request)
        if key.isPlain { return true }
        guard let pool = pools[key] ?? make(key, running) else { return false }
        sluice_set_pointer(easy, CURLOPT_SHARE, pool)
        return true
    }

    private mutating func make(_ key: Key, _ running: [Request]) -> UnsafeMutableRawPointer? {
        if pools.count >= Self.most {
            let used = Set(running.map { Key($0) })
            for other in pools.keys where !used.contains(other) { close(other) }
        }
        guard let pool = curl_share_init() else { return nil }
        guard sluice_share(pool, CURL_LOCK_DATA_CONNECT) == CURLSHE_OK,
            sluice_share(pool, CURL_LOCK_DATA_DNS) == CURLSHE_OK
        else {
            curl_share_cleanup(pool)
            return nil
        }
        pools[key] = pool
        return pool
    }

    /// Closes the kept connections of an interface. No transfer uses it any more.
    mutating func close(interface: String) { for key in pools.keys where key.interface == interface { close(key) } }

    mutating func closeAll() { for key in pools.keys { close(key) } }

    private mutating func close(_ key: Key) {
        if let pool = pools.removeValue(forKey: key) { curl_share_cleanup(pool) }
    }
}
