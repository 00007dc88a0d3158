import Core
import Linux
import TestKit

/// Web servers of Debian, unpacked, that run for one test.
enum WebServer: String, Sendable, CaseIterable {
    case caddy, nginx

    /// The reason that a test which needs one gives when it is skipped.
    static func need(_ servers: WebServer...) -> String {
        let names = servers.map(\.rawValue).joined(separator: " ")
        return "\(names) of Debian, unpacked under .build/tools: apt-get update, then scripts/test-tools \(names)"
    }

    /// Whether the machine has these, or can get them.
    static func areHere(_ servers: WebServer...) async -> Bool {
        for server in servers where await server.program() == nil { return false }
        return true
    }

    private static let caddyProgram = Task { await found("caddy", "usr/bin/caddy") }
    private static let nginxProgram = Task { await found("nginx", "usr/sbin/nginx") }
    private static func found(_ tool: String, _ place: FilePath) async -> FilePath? {
        // The test that needs it is skipped, and says how to get it.
        let found = try? await blocking { try Tools.debian(tool).appending(place) }
        return found.flatMap { (try? FileStatus(at: $0)) == nil ? nil : $0 }
    }

    private func program() async -> FilePath? {
        switch self {
        case .caddy: await Self.caddyProgram.value
        case .nginx: await Self.nginxProgram.value
        }
    }

    struct Missing: Error { let server: WebServer }

    /// Starts one.
    ///
    /// - Parameters:
    ///   - folder: For its files; of its own.
    ///   - network: Where it listens; the machine's own if `nil`.
    ///   - port: As before a restart; a free one if `nil`.
    ///   - site: The site that it serves at a port, in its own language: a `server` block of nginx, a block of Caddy.
    /// - Returns: The process, and its port, which answers.
    func start(
        in folder: FilePath, network: NetworkNamespace? = nil, port wanted: Int? = nil, site: (Int) throws -> String
    ) async throws -> (child: Child, port: Int) {
        guard let program = await program() else { throw Missing(server: self) }
        try Files.makeFolders(folder)
        return try await eventually("\(rawValue) has found a free port", every: .milliseconds(50)) {
            let port = try wanted ?? Loopback.freePort()
            let config = folder.appending("config")
            try Files.replace(config, with: Array(whole(try site(port), folder).utf8))
            let words =
                switch self {
                case .caddy: ["run", "--adapter", "caddyfile", "--config", config.display]
                case .nginx: ["-p", folder.display, "-c", config.display]
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
    private func whole(_ site: String, _ folder: FilePath) -> String {
        let place = folder.display
        return switch self {
        case .caddy:
            "{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system \(place)/storage\n}\n" + site
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
}
