internal import Core
internal import Glibc
internal import Linux
internal import Synchronization
internal import TestKit

/// A server that drops all received bytes, as fast as the kernel permits: for `PUT`, for tus 1.0 with creation and
/// concatenation, or as a bucket.
///
/// Bytes are dropped inside the kernel (`MSG_TRUNC`, tcp(7)), so that the sender is measured.
final class Sink: Sendable {
    struct State: Sendable {
        /// By upload: the length that was announced, and the offset.
        var uploads: [(length: Int64, offset: Int64)] = []
        /// Bytes of all bodies.
        var bytes: Int64 = 0
        /// The time when the first byte of the last creation came.
        var lastCreation: ContinuousClock.Instant?
    }

    let port: Int
    private let listener: CInt
    private let state = Mutex(State())
    private let bucket: SinkBucket?

    /// - Parameter bucket: Answers every request instead of tus.
    init(_ bucket: SinkBucket? = nil) throws {
        self.bucket = bucket
        let loopback = try Loopback()
        let listener = loopback.descriptor
        self.listener = listener
        port = loopback.port
        try startThread("sink") { [weak self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0, let self else { break }
                do { try startThread("sink-serve") { self.serve(connection) } } catch { close(connection) }
            }
            close(listener)
        }
    }

    deinit { shutdown(listener, CInt(SHUT_RDWR)) }

    var url: String { "http://127.0.0.1:\(port)" }
    var now: State { state.withLock { $0 } }

    private func serve(_ connection: CInt) {
        defer { close(connection) }
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        var head: [UInt8] = []
        while true {
            let got = recv(connection, &buffer, buffer.count, 0)
            guard got > 0 else { return }
            let arrival = ContinuousClock().now
            head += buffer[..<got]
            guard let end = Self.end(of: head) else { continue }
            guard answer(connection, String(decoding: head[..<end], as: UTF8.self), head.count - end, arrival) else {
                return
            }
            head = []
        }
    }

    /// - Parameter early: Bytes of the body that came with the head.
    private func answer(_ connection: CInt, _ head: String, _ early: Int, _ arrival: ContinuousClock.Instant) -> Bool {
        let lines = head.split(separator: "\r\n")
        let first = lines[0].split(separator: " ")
        func field(_ name: String) -> Int64? {
            lines.first { $0.lowercased().hasPrefix(name + ":") }
                .flatMap { Int64($0.drop { $0 != ":" }.dropFirst().drop { $0 == " " }) }
        }
        if lines.contains(where: { $0.lowercased() == "expect: 100-continue" }) {
            send(connection, "HTTP/1.1 100 Continue\r\n\r\n")
        }
        let number = first.count > 1 ? Int(first[1].drop { !$0.isNumber }) : nil
        var left = (field("content-length") ?? 0) - Int64(early)
        count(Int64(early), for: first[0] == "PATCH" ? number : nil)
        while left > 0 {
            let got = recv(connection, nil, Int(min(left, 1 << 20)), CInt(MSG_TRUNC))
            guard got > 0 else { return false }
            left -= Int64(got)
            count(Int64(got), for: first[0] == "PATCH" ? number : nil)
        }
        if let bucket, first.count > 1 {
            send(connection, bucket.answer(String(first[0]), String(first[1]), field("content-length") ?? 0))
            return true
        }
        switch first[0] {
        case "POST":
            let number = state.withLock { state in
                state.lastCreation = arrival
                let joined = Self.partialUploads(in: lines).compactMap { number in
                    state.uploads.indices.contains(number) ? state.uploads[number].offset : nil
                }
                let size = joined.reduce(0, +)
                state.uploads.append((field("upload-length") ?? size, size))
                return state.uploads.count - 1
            }
            send(
                connection,
                "HTTP/1.1 201 Created\r\nTus-Resumable: 1.0.0\r\nLocation: /u/\(number)\r\nContent-Length: 0\r\n\r\n")
        case "PATCH", "HEAD":
            guard let number, let upload = now.uploads.indices.contains(number) ? now.uploads[number] : nil else {
                send(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                return true
            }
            send(
                connection,
                "HTTP/1.1 \(first[0] == "HEAD" ? "200 OK" : "204 No Content")\r\nTus-Resumable: 1.0.0\r\n"
                    + "Upload-Offset: \(upload.offset)\r\nUpload-Length: \(upload.length)\r\n"
                    + "Cache-Control: no-store\r\n\(first[0] == "HEAD" ? "Content-Length: 0\r\n" : "")\r\n")
        default: send(connection, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        }
        return true
    }

    private func count(_ bytes: Int64, for upload: Int?) {
        state.withLock { state in
            state.bytes += bytes
            if let upload, state.uploads.indices.contains(upload) { state.uploads[upload].offset += bytes }
        }
    }

    private func send(_ connection: CInt, _ text: String) {
        let bytes = Array(text.utf8)
        // Answers are shorter than any socket's buffer; a closed connection is noticed by the next read.
        _ = Glibc.send(connection, bytes, bytes.count, CInt(MSG_NOSIGNAL))
    }

    /// The numbers of the uploads that a creation joins (tus 1.0, "Upload-Concat"): each address ends with one.
    private static func partialUploads(in lines: [Substring]) -> [Int] {
        guard let line = lines.first(where: { $0.lowercased().hasPrefix("upload-concat: final;") }) else { return [] }
        return line.drop { $0 != ";" }.dropFirst().split(separator: " ").compactMap { url in
            url.lastIndex(of: "/").flatMap { Int(url[$0...].dropFirst()) }
        }
    }

    private static func end(of head: [UInt8]) -> Int? {
        guard head.count >= 4 else { return nil }
        for index in 3..<head.count where head[index] == 10 && head[index - 2] == 10 && head[index - 1] == 13 {
            return index + 1
        }
        return nil
    }
}
