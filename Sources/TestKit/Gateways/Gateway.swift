package import Core
internal import Linux

/// Web servers and proxies of Debian, unpacked, that run for one test.
package enum Gateway: String, Sendable, CaseIterable {
    case caddy, lighttpd, microsocks, nginx, tinyproxy
    /// nginx that ends TLS before another server, whatever that speaks.
    case tls = "nginx-stream"

    /// Below the folder of its tool.
    private var place: FilePath {
        switch self {
        case .caddy: "usr/bin/caddy"
        case .lighttpd: "usr/sbin/lighttpd"
        case .microsocks: "usr/bin/microsocks"
        case .nginx, .tls: "usr/sbin/nginx"
        case .tinyproxy: "usr/bin/tinyproxy"
        }
    }

    /// The reason that a test which needs one gives when it is skipped.
    package static func need(_ servers: Gateway...) -> String {
        let names = servers.map(\.rawValue).joined(separator: " ")
        return "\(names) of Debian, unpacked under .build/tools: apt-get update, then scripts/test-tools \(names)"
    }

    /// Whether the machine has these, or can get them.
    package static func areHere(_ servers: Gateway...) async -> Bool {
        for server in servers where await server.program() == nil { return false }
        return true
    }

    private static let programs = [Gateway: Task<FilePath?, Never>](
        uniqueKeysWithValues: allCases.map { server in (server, Task { await server.found() }) })

    private func found() async -> FilePath? {
        // The test that needs it is skipped, and says how to get it.
        let found = try? await blocking { try Tools.debian(rawValue).appending(place) }
        return found.flatMap { (try? FileStatus(at: $0)) == nil ? nil : $0 }
    }

    private func program() async -> FilePath? { await Self.programs[self]?.value }

    package struct Missing: Error {
        package let server: Gateway
        package init(server: Gateway) { self.server = server }
    }

    /// Starts one.
    ///
    /// - Parameters:
    ///   - folder: For its files; of its own.
    ///   - network: Where it listens; the machine's own if `nil`.
    ///   - port: As before a restart; a free one if `nil`.
    ///   - site: The site that it serves at a port, in its own language: a `server` block of nginx, a block of Caddy, the
    ///     configuration of lighttpd or tinyproxy without its address; for microsocks, further arguments.
    /// - Returns: The process, and its port, which answers.
    package func start(
        in folder: FilePath, network: NetworkNamespace? = nil, port wanted: Int? = nil, site: (Int) throws -> String
    ) async throws -> (child: Child, port: Int) {
        guard let program = await program() else { throw Missing(server: self) }
        try Files.makeFolders(folder)
        return try await eventually("\(rawValue) has found a free port", every: .milliseconds(50)) {
            let port = try wanted ?? Loopback.freePort()
            let config = folder.appending("config")
            let site = try site(port)
            try Files.replace(config, with: Array(whole(site, folder, port, root(of: program)).utf8))
            let words =
                switch self {
                case .caddy: ["run", "--adapter", "caddyfile", "--config", config.display]
                case .lighttpd:
                    ["-D", "-f", config.display, "-m", "\(root(of: program).display)/usr/lib/lighttpd"]
                case .microsocks: ["-i", "127.0.0.1", "-p", "\(port)"] + site.split(separator: " ").map(String.init)
                case .nginx, .tls: ["-p", folder.display, "-c", config.display]
                case .tinyproxy: ["-d", "-c", config.display]
                }
            // Caddy writes into its home.
            let environment = ["HOME": folder.display]
            let (output, errors) = (folder.appending("out"), folder.appending("err"))
            let child =
                try network?.start(program, words, environment: environment, output: output, errors: errors)
                ?? Child(program, words, environment: environment, output: output, errors: errors)
            // Ended: another process took the port meanwhile, or the configuration is wrong.
            while child.ended == nil {
                let answers = try await blocking {
                    try network?.run { Loopback.answers(port) } ?? Loopback.answers(port)
                }
                if answers { return (child, port) }
                try await Alarms.shared.sleep(for: .milliseconds(20))
            }
            if try !child.standardError().contains("in use") { try child.requireRunning() }
            return nil
        }
    }

    /// The whole configuration: nothing that listens elsewhere, no file outside the folder, and no second process, which
    /// would outlive the first when that is killed.
    private func whole(_ site: String, _ folder: FilePath, _ port: Int, _ root: FilePath) -> String {
        let place = folder.display
        return switch self {
        case .lighttpd:
            "server.document-root = \"\(place)\"\nserver.bind = \"127.0.0.1\"\nserver.port = \(port)\n" + site
        case .microsocks: ""
        case .tinyproxy:
            "Port \(port)\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nLogFile \"\(place)/log\"\n" + site
        case .caddy:
            "{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system \(place)/storage\n}\n" + site
        case .tls:
            """
            load_module \(root.display)/usr/lib/nginx/modules/ngx_stream_module.so;
            daemon off; master_process off; pid \(place)/pid; error_log stderr notice;
            events { worker_connections 2000; }
            stream { \(site) }
            """
        case .nginx:
            """
            daemon off; master_process off; pid \(place)/pid; error_log stderr notice;
            events { worker_connections 2000; }
            http {
              access_log off;
              client_body_temp_path \(place)/body; proxy_temp_path \(place)/proxy;
              fastcgi_temp_path \(place)/f; uwsgi_temp_path \(place)/u; scgi_temp_path \(place)/s;
              \(site)
            }
            """
        }
    }

    private func root(of program: FilePath) -> FilePath {
        var root = program
        for _ in place.display.split(separator: "/") { root = root.parent }
        return root
    }
}
