package import Core
internal import FoundationEssentials
internal import Glibc
package import Linux

/// Runs ffmpeg's `ffprobe` for formats that our readers do not know. Used where it is installed, and never required.
package struct FFProbe: Sendable {
    private let program: FilePath
    private let timeout: Duration
    /// Maximum size of its output in bytes.
    private static let limit = 256 << 10

    /// - Parameter timeout: It is killed after this long.
    package init(program: FilePath, timeout: Duration = .seconds(20)) {
        self.program = program
        self.timeout = timeout
    }

    /// The first program with that name in the folders of `PATH`; `nil` when there is none.
    package static func installed(path: String? = getenv("PATH").map { String(cString: $0) }) -> FFProbe? {
        Program.installed("ffprobe", path: path).map { FFProbe(program: $0) }
    }

    /// Its metadata of a file; empty when it has none, takes too long or fails. Waits on this thread.
    ///
    /// It only reads the file: no protocol except `file` is allowed, so that no playlist can make it access the
    /// network.
    package func facts(of file: borrowing Descriptor) -> MediaFacts { file.withNumber { facts(of: $0) } }

    /// The program inherits the open file, so that a replaced path has no effect.
    private func facts(of file: CInt) -> MediaFacts {
        let words = [
            program.display, "-v", "error", "-protocol_whitelist", "file", "-print_format", "json", "-show_entries",
            "format=duration:format_tags=creation_time,make,model:stream=codec_type,width,height",
            "file:/proc/self/fd/\(file)",
        ]
        // For a file that is no recording it fails, which is no error here.
        let program = Program(
            words: words.map { Array($0.utf8) }, environment: ["LC_ALL=C"], folder: ".", passedDescriptor: file)
        guard let answer = try? program.collectOutput(atMost: Self.limit, within: timeout) else { return MediaFacts() }
        return Self.facts(from: answer)
    }

    static func facts(from answer: [UInt8]) -> MediaFacts {
        // Its output comes from another program: an unreadable output gives no metadata.
        guard (try? checkJSON(answer)) != nil, let answer = try? JSONDecoder().decode(Answer.self, from: Data(answer))
        else { return MediaFacts() }
        let video = answer.streams?.first { $0.codec_type == "video" }
        // For data that it only recognises by the file's name it reports a picture without a size.
        if let video, (video.width ?? 0) <= 0 || (video.height ?? 0) <= 0 { return MediaFacts() }
        var facts = MediaFacts()
        if let seconds = answer.format?.duration.flatMap({ Double($0) }), seconds > 0, seconds <= 366 * 86_400 {
            facts.duration = Int64(seconds * 1000)
        }
        let tags = answer.format?.tags ?? [:]
        facts.recorded = tags["creation_time"].flatMap { MediaFactsReader.moment($0.utf8) }
        facts.make = tags["make"].flatMap { MediaFactsReader.text($0.utf8) }
        facts.model = tags["model"].flatMap { MediaFactsReader.text($0.utf8) }
        if let video {
            facts.width = video.width.flatMap { MediaFactsReader.pixels(UInt64(max(0, $0))) }
            facts.height = video.height.flatMap { MediaFactsReader.pixels(UInt64(max(0, $0))) }
        }
        return facts
    }

    /// The names of its own output.
    private struct Answer: Decodable {
        struct Format: Decodable {
            var duration: String?
            var tags: [String: String]?
        }
        struct Stream: Decodable {
            var codec_type: String?
            var width: Int?
            var height: Int?
        }
        var format: Format?
        var streams: [Stream]?
    }
}
