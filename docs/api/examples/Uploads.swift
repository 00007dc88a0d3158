// Sluice from a Swift program: HTTP over the daemon's Unix socket, or over TCP with a token.
//
//     swiftc Uploads.swift && ./Uploads add FILE [DESTINATION]
//
//     Uploads add FILE [DESTINATION]   uploads a file and waits for its end; status 0 when it is completed
//     Uploads failed                   the uploads that failed, one a line: id, path, why
//     Uploads retry                    begins all of them again
//     Uploads pause [SECONDS]          holds everything, for two hours
//     Uploads resume
//
// SLUICE_SOCKET: where the daemon listens, /run/sluice/control.sock if it is not set. Or SLUICE_ADDRESS (127.0.0.1:8484)
// and SLUICE_TOKEN_FILE with the token in it.

import Foundation
import Glibc

struct Upload: Decodable {
    struct Failure: Decodable { var message: String }
    var id: String
    var path: String
    var state: String
    var error: Failure?
}

struct Failure: Error, CustomStringConvertible {
    var description: String
}

/// One daemon, and what this program asks of it.
struct Sluice {
    private let environment = ProcessInfo.processInfo.environment

    /// The answer's body.
    func ask(_ method: String, _ path: String, _ body: String = "") throws -> Data {
        var whole = Data()
        try request(method, path, body) { piece in
            whole += piece
            return true
        }
        return whole
    }

    func value<T: Decodable>(_ type: T.Type, _ method: String, _ path: String, _ body: String = "") throws -> T {
        try JSONDecoder().decode(type, from: try ask(method, path, body))
    }

    /// Reads events until `each` returns false, or the stream ends. `each` gets number and type.
    func events(of id: String, since: Int64, each: (Int64, Substring) -> Bool) throws {
        var text = ""
        try request("GET", "events?id=\(id)&since=\(since)", "") { piece in
            // What the daemon writes is UTF-8; a piece may end within a character, which is in no line of these.
            text += String(decoding: piece, as: UTF8.self)
            while let end = text.range(of: "\n\n") {
                let lines = text[..<end.lowerBound].split(separator: "\n")
                func field(_ name: String) -> Substring? {
                    lines.first { $0.hasPrefix(name) }?.dropFirst(name.count)
                }
                if let seq = field("id: ").flatMap({ Int64($0) }), let type = field("event: "), !each(seq, type) {
                    return false
                }
                text.removeSubrange(..<end.upperBound)
            }
            return true
        }
    }

    /// Sends a request and hands on the body of its answer, piece by piece, until `each` wants no more.
    ///
    /// HTTP/1.0: the body ends where the connection does, and comes without chunks.
    private func request(_ method: String, _ path: String, _ body: String, each: (Data) throws -> Bool) throws {
        let socket = try connected()
        defer { close(socket) }
        let host = environment["SLUICE_ADDRESS"] ?? "localhost"
        var head = "\(method) /v1/\(path) HTTP/1.0\r\nHost: \(host)\r\nContent-Length: \(body.utf8.count)\r\n"
        if let file = environment["SLUICE_TOKEN_FILE"] {
            let token = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .newlines)
            head += "Authorization: Bearer \(token)\r\n"
        }
        var rest = Array((head + "\r\n" + body).utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw Failure(description: "the daemon hung up") }
            rest = rest.dropFirst(count)
        }
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        var answer = Data()
        var status: Int?
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            answer += buffer[..<count]
            if status == nil {
                guard let end = answer.range(of: Data("\r\n\r\n".utf8)) else { continue }
                let line = String(decoding: answer[..<end.lowerBound], as: UTF8.self).split(separator: " ")
                status = line.count > 1 ? Int(line[1]) : 0
                answer.removeSubrange(..<end.upperBound)
            }
            if let status, (200..<300).contains(status), !answer.isEmpty {
                if try !each(answer) { return }
                answer = Data()
            }
        }
        guard let status, (200..<300).contains(status) else {
            throw Failure(description: "\(status ?? 0): \(String(decoding: answer, as: UTF8.self))")
        }
    }

    private func connected() throws -> Int32 {
        if let address = environment["SLUICE_ADDRESS"] {
            let parts = address.split(separator: ":")
            var hints = addrinfo()
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            var found: UnsafeMutablePointer<addrinfo>?
            guard parts.count == 2, getaddrinfo(String(parts[0]), String(parts[1]), &hints, &found) == 0, let found
            else { throw Failure(description: "no such address: \(address)") }
            defer { freeaddrinfo(found) }
            let number = socket(found.pointee.ai_family, found.pointee.ai_socktype, 0)
            guard connect(number, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0 else {
                throw Failure(description: "\(address): \(String(cString: strerror(errno)))")
            }
            return number
        }
        let path = environment["SLUICE_SOCKET"] ?? "/run/sluice/control.sock"
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw Failure(description: "\(path) is too long for a socket")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw Failure(description: "\(path): \(String(cString: strerror(errno)))") }
        return number
    }
}

struct Uploads: Decodable {
    var uploads: [Upload]
    var count: Int?
}
struct Status: Decodable { var seq: Int64 }
struct Shown: Decodable { var upload: Upload }

/// Uploads a file and returns how that ended.
func add(_ file: String, to destination: String?) throws -> String {
    let sluice = Sluice()
    guard let real = realpath(file, nil) else { throw Failure(description: "\(file): no such file") }
    defer { free(real) }
    // A name may hold any byte, and so it is given in hexadecimal.
    let path = UnsafeBufferPointer(start: real, count: strlen(real)).map { byte in
        let digits = String(UInt8(bitPattern: byte), radix: 16)
        return digits.count == 1 ? "0" + digits : digits
    }.joined()
    let to = destination.map { "\"\($0)\"" } ?? ""
    // Before the upload is there: nothing can happen between these two that is not told afterwards.
    var seq = try sluice.value(Status.self, "GET", "status").seq
    let body = #"{"path":"\#(path)","to":[\#(to)],"context":{},"again":false}"#
    guard let id = try sluice.value(Uploads.self, "POST", "uploads", body).uploads.first?.id else {
        throw Failure(description: "nothing was added")
    }
    print(id, "added")
    var end: String?
    while end == nil {
        // When the stream breaks off, as when the daemon restarts, ask again after the last event.
        do {
            try sluice.events(of: id, since: seq) { number, type in
                seq = max(seq, number)
                if ["completed", "failed", "cancelled"].contains(type) { end = String(type) }
                return end == nil && type != "reset"
            }
            // What was asked for is no longer kept, or nothing has happened yet.
            let now = try sluice.value(Shown.self, "GET", "uploads/\(id)").upload.state
            if ["completed", "failed", "cancelled"].contains(now) { end = end ?? now }
        } catch { sleep(1) }
    }
    print(id, end ?? "")
    return end ?? ""
}

let words = CommandLine.arguments.dropFirst()
do {
    switch (words.first, words.count) {
    case ("add", 2...3):
        let end = try add(words[words.startIndex + 1], to: words.count == 3 ? words.last : nil)
        exit(end == "completed" ? 0 : 1)
    case ("failed", 1):
        for upload in try Sluice().value(Uploads.self, "GET", "uploads?list=failed&limit=1000").uploads {
            print(upload.id, upload.path, upload.error?.message ?? "")
        }
    case ("retry", 1):
        print(try Sluice().value(Uploads.self, "POST", "retry", #"{"ids":[],"all":true}"#).count ?? 0, "retried")
    case ("pause", 1...2):
        let seconds = words.count == 2 ? Int(words.last ?? "") ?? 7200 : 7200
        _ = try Sluice().ask("POST", "pause", #"{"ids":[],"all":true,"duration":\#(seconds)}"#)
    case ("resume", 1): _ = try Sluice().ask("POST", "resume", #"{"ids":[],"all":true}"#)
    default:
        print("usage: Uploads add FILE [DESTINATION] | failed | retry | pause [SECONDS] | resume")
        exit(64)
    }
} catch {
    print("Uploads: \(error)")
    exit(1)
}
