package import Core
internal import Glibc
package import Linux

/// Makes small pictures of recordings and photos, by ffmpeg where it is installed.
///
/// Files of strangers are decoded, and decoders have faults. So ffmpeg is held to the one open file that it is lent
/// (``Linux/Confinement/Decoder``), and of its output only a small JPEG without metadata is used.
package struct ThumbnailMaker: Sendable {
    /// Why there is no picture, each with a text that follows "no picture: ".
    package enum Failure: Error, Hashable, Sendable {
        /// ffmpeg did not start. That says nothing about the file.
        case unavailable(String)
        /// The file has no picture that ffmpeg can decode within its limits.
        case unreadable(String)
        /// It was killed at a limit, perhaps because the machine was busy or short of memory. That says little about the
        /// file.
        case overdue(String)
        case stopped
    }

    /// The longest side of a picture in pixels.
    package static let side = 320
    /// The largest picture in bytes. One of noise takes 60 KB.
    package static let mostBytes = 128 << 10

    private static let decoder = Confinement.Decoder(memory: 256 << 20, processorTime: .seconds(10))
    private static let memory = "\(decoder.memory >> 20) MiB"
    /// Formats that consist of their own bytes: no playlists, no lists of other files, no devices.
    private static let formats =
        "mov,matroska,avi,mpegts,mpeg,mpegvideo,flv,asf,ogg,mxf,wtv,dv,ivf,h264,hevc,mjpeg,gif,apng,jpeg_pipe,png_pipe,"
        + "webp_pipe,bmp_pipe,tiff_pipe"

    /// For a picture on a small machine.
    package static let usualLimit = Duration.seconds(10)

    private let program: FilePath
    private let limit: Duration

    /// - Parameter limit: It is killed after this long.
    package init(program: FilePath, limit: Duration) {
        self.program = program
        self.limit = limit
    }

    /// With the ffmpeg in `PATH`; `nil` when there is none.
    package static func installed(limit: Duration = usualLimit) -> ThumbnailMaker? {
        Program.installed("ffmpeg").map { ThumbnailMaker(program: $0, limit: limit) }
    }

    /// Why this machine makes no pictures at all; `nil` when it does. Starts ffmpeg, and waits on this thread.
    package static func obstacle() -> String? {
        let support = Confinement.Support.here
        guard support.holdsDecoders else {
            let missing = [
                support.landlockABI == 0
                    ? "Landlock (Linux 5.13 or later, with `landlock` among the names in /sys/kernel/security/lsm)"
                    : nil,
                support.filtersCalls ? nil : "filters of system calls (seccomp)",
            ]
            return "ffmpeg is not run without its sandbox, and this process has no "
                + missing.compactMap { $0 }.joined(separator: " and no ")
        }
        guard let maker = installed() else { return "ffmpeg is not installed" }
        do throws(Failure) { _ = try maker.run(["-version"], nil, atMost: 64 << 10, isStopped: { false }) } catch {
            return error.text
        }
        return nil
    }

    /// A JPEG picture of a file: its first frame. Waits on this thread.
    ///
    /// - Parameter isStopped: Called several times a second; when it returns true, ffmpeg is killed.
    package func picture(
        of file: borrowing Descriptor, isStopped: () -> Bool
    ) throws(Failure) -> [UInt8] {
        let side = Self.side
        let output = try file.withNumber { number throws(Failure) in
            // One thread each to decode, to filter and to encode: the memory of more is not there.
            let words = [
                "-nostdin", "-v", "quiet", "-protocol_whitelist", "pipe,fd,file", "-format_whitelist", Self.formats,
                "-max_pixels", "100000000", "-threads", "1",
                // Opened again by its number: ffmpeg before version 6 cannot seek in a descriptor, and the index of
                // many recordings is at their end.
                "-i", "file:/proc/self/fd/\(number)", "-an", "-sn", "-dn", "-frames:v", "1", "-filter_threads", "1",
                "-vf",
                // Of a line, the shorter side keeps one pixel.
                "scale=w='clip(round(\(side)*iw/ih),1,\(side))':h='clip(round(\(side)*ih/iw),1,\(side))',"
                    + "format=yuvj420p",
                "-map_metadata", "-1",
                "-threads", "1", "-c:v", "mjpeg", "-q:v", "4", "-f", "mjpeg", "pipe:1",
            ]
            return try run(words, number, atMost: Self.mostBytes, isStopped: isStopped)
        }
        if output.isEmpty { throw .unreadable("ffmpeg finds no picture in the file") }
        guard let picture = JPEG.reduced(output, side: side) else {
            throw .unreadable("ffmpeg made no picture of the expected form")
        }
        return picture
    }

    private func run(
        _ words: [String], _ file: CInt?, atMost most: Int, isStopped: () -> Bool
    ) throws(Failure) -> [UInt8] {
        let program = Program(
            // Without this variable glibc reserves 64 MiB of the limited addresses for each thread.
            words: ([program.display] + words).map { Array($0.utf8) }, environment: ["MALLOC_ARENA_MAX=1"],
            folder: "/", passedDescriptor: file, confinement: Confinement(Self.decoder))
        do throws(Program.Problem) {
            return try program.collectOutput(atMost: most, within: limit, isStopped: isStopped)
        } catch {
            switch error.ending {
            // 127: the loader of shared libraries.
            case nil, .status(127): throw .unavailable("ffmpeg does not start in its sandbox: \(error)")
            case .overdue: throw .overdue("ffmpeg took longer than \(limit.components.seconds) seconds")
            case .signal(SIGKILL):
                throw .overdue(
                    "ffmpeg was killed: it needs more than \(Self.memory) of memory or "
                        + "\(Self.decoder.processorTime.components.seconds) seconds of a processor, or the machine is short of "
                        + "memory")
            case .stopped where isStopped(): throw .stopped
            case .status, .signal, .stopped:
                throw .unreadable(
                    "ffmpeg cannot read the file: \(error); it has no picture, is broken, larger than 100 megapixels, "
                        + "or needs more than \(Self.memory) of memory")
            }
        }
    }
}

extension ThumbnailMaker.Failure {
    /// For people.
    package var text: String {
        switch self {
        case .unavailable(let text), .unreadable(let text), .overdue(let text): text
        case .stopped: "ffmpeg was stopped"
        }
    }
}
