import Core
import Testing

@testable import Destinations

/// The progress of a file whose sections are sent at the same time.
@Suite("Progress of sections")
struct SectionProgressTests {
    private func checkpoint(_ offsets: [Int64?]) -> OffsetCheckpoint {
        var checkpoint = OffsetCheckpoint()
        checkpoint.concatenation.ends = offsets.indices.map { "\(($0 + 1) * 100)" }
        checkpoint.concatenation.partialUploads = offsets.enumerated().map { index, offset in
            var upload = OffsetCheckpoint()
            if let offset {
                upload.url = "http://nas.example/files/\(index)"
                upload.offset = offset
            }
            return upload
        }
        return checkpoint
    }

    @Test("of an upload that continues nothing is reported until each begun section is found, so nothing looks lost")
    func resumed() async throws {
        let reporter = RecordingReporter()
        // The third one was not begun.
        let progress = SectionProgress(checkpoint([10, 20, nil]), reporter)
        try await progress.accepted(60, progress.upload(0).stored, of: 0)
        progress.sending(80, of: 0)
        #expect(reporter.accepted == 0)
        #expect(reporter.sent.isEmpty)
        try await progress.accepted(50, progress.upload(1).stored, of: 1)
        #expect(reporter.accepted == 110)
        progress.sending(80, of: 0)
        #expect(reporter.sent == [130])
    }

    @Test("of a new upload everything is reported at once")
    func fresh() async throws {
        let reporter = RecordingReporter()
        let progress = SectionProgress(checkpoint([nil, nil]), reporter)
        progress.sending(30, of: 1)
        try await progress.accepted(40, progress.upload(0).stored, of: 0)
        #expect(reporter.sent == [30])
        #expect(reporter.accepted == 40)
    }
}
