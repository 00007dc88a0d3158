import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// Checkpoints of a `directory` that a disk has damaged: the file arrives complete or is refused with a message, and no
/// other file is overwritten or removed, for any name in the checkpoint.
@Suite("Fuzz: checkpoints of a directory", .timeLimit(.minutes(Fuzz.minutes)))
struct DirectoryFuzzTests {
    private static let precious: [FilePath: [UInt8]] = [
        "front/clip.mp4": noise(3000, seed: 8), "front/other.mp4": noise(10, seed: 9), "top.mp4": noise(3000, seed: 10),
    ]

    @Test("no checkpoint leads to another file, and the upload ends")
    func checkpoints() async throws {
        let end = try DirectoryEnd()
        let staged = try StagedUpload(2500)
        let digest = hexadecimal(staged.order.file.sha256)
        let part = "front/.clip.mp4.sluice-01JQ-1.part"
        let seeds = [
            "part: \(part)\nsha256: \(digest)\noffset: 1000", "part: front/.clip.mp4.sluice-01JP-7.part\noffset: 2000",
            "part: front/clip.mp4\nsha256: \(digest)\noffset: 1000", "part: front/other.mp4\noffset: 10",
        ]
        let mutator = Mutator(
            seeds.map { Array($0.utf8) },
            words: [
                "part: ", "offset: ", "sha256: ", "front/", "front/clip.mp4", "front/other.mp4", "top.mp4", "../", "/",
                "./", "..", ".", "\\x00", "\\xff", "\\", "\0", ".sluice-", ".part", "\n",
                String(repeating: "x", count: 300),
            ], limit: 2000)
        try await Fuzz("directory checkpoints", rounds: 60, share: 20).each(mutator) { round in
            TemporaryFolder.remove(end.folder)
            for (name, content) in Self.precious {
                try Files.makeFolders(end.folder.appending(name).parent)
                try Files.replace(end.folder.appending(name), with: content)
            }
            // Half of them find their earlier bytes, or something else in their place.
            if Bool.random(using: &round.dice) {
                let held = Array((staged.content + noise(900)).prefix(Int.random(in: 0...3000, using: &round.dice)))
                try Files.replace(end.folder.appending(FilePath(part)), with: held)
            }
            var checkpoint = Checkpoint()
            for line in String(decoding: round.input, as: UTF8.self).split(separator: "\n") {
                let parts = line.split(separator: ":", maxSplits: 1)
                guard parts.count == 2 else { continue }
                checkpoint[String(parts[0])] = String(parts[1].drop { $0 == " " })
            }
            var order = staged.order
            order.checkpoint = checkpoint
            var hasArrived = false
            do {
                if Bool.random(using: &round.dice) { _ = try await end.destination.discard(checkpoint) }
                let object = try await end.destination.upload(order, reporter: RecordingReporter())
                hasArrived = true
                try round.expect(object.verifiedBy == "digest", "\(object)")
            } catch let error as UploadError {
                let message = error.failure.message
                try round.expect(message.split(separator: " ").count > 3, "the message is too short: \(error)")
                try round.expect(
                    printable(message) == message, "the message has control characters: \(printable(message))")
            }
            let objects = try end.objects
            for (name, content) in Self.precious {
                try round.expect(objects[name] == content, "\(name) has changed")
            }
            try round.expect(
                objects["front/clip (2).mp4"] == (hasArrived ? staged.content : nil)
                    && objects.count == Self.precious.count + (hasArrived ? 1 : 0),
                "holds \(objects.mapValues(\.count)), and should \(hasArrived ? "" : "not ")have the file")
            try round.expect(try Files.names(in: end.folder.parent) == ["in"], "a file was created outside the folder")
        }
    }
}
