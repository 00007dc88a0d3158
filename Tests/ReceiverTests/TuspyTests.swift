import Core
import Linux
import TestKit
import TestTraits
import Testing

/// tuspy, the tus project's own client for Python: an independent implementation of the protocol.
@Suite("tuspy", .needsPackages, .timeLimit(.minutes(Patience.minutes(3))))
struct TuspyTests {
    /// Sends the first chunk in one client process, and the rest from another that knows only the URL.
    private static let script = """
        import sys
        from tusclient import client
        url, path, chunk = sys.argv[1], sys.argv[2], int(sys.argv[3])
        tus = client.TusClient(url, headers={"Authorization": "Bearer s3cret"})
        name = {"filename": "from python ä.bin", "filetype": "application/octet-stream"}
        first = tus.uploader(path, chunk_size=chunk, metadata=name)
        first.upload_chunk()
        second = tus.uploader(path, url=first.url, chunk_size=chunk)
        print("resumes at", second.offset)
        second.upload()
        """

    @Test("tuspy uploads in chunks and resumes")
    func uploads() async throws {
        let bin = try await blocking { try Tools.python("tus") }
        try await ReceiverFixture.open(token: "s3cret") { inbox in
            let content = noise(1_000_000)
            let source = try inbox.temporary.write("source", content)
            let script = try inbox.temporary.write("script.py", Array(Self.script.utf8))
            let child = try Child(
                bin.appending("python3"),
                [script.display, "http://127.0.0.1:\(inbox.port)/files/", source.display, "300000"],
                output: inbox.temporary.path.appending("out"), errors: inbox.temporary.path.appending("err"))
            let ending = try await child.end(within: .seconds(60))
            let errors = try child.standardError()
            #expect(ending == .status(0), "\(errors)")
            #expect(try child.standardOutput() == "resumes at 300000\n")
            #expect(try inbox.content("from python ä.bin") == content)
            #expect(try inbox.unfinished() == 0)
        }
    }
}
