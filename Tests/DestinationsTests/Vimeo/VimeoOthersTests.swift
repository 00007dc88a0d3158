import Core
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing

@testable import Destinations

/// The emulator is correct if the service's own client works with it: PyVimeo, which sends the bytes with tuspy.
@Suite("Vimeo's own client", .needsPackages, .timeLimit(.minutes(Patience.minutes(3))))
struct VimeoOthersTests {
    private static let script = """
        import sys
        import vimeo
        url, path = sys.argv[1], sys.argv[2]
        vimeo.VimeoClient.API_ROOT = url
        client = vimeo.VimeoClient(token="vimeo-token-1", key="k", secret="s")
        uri = client.upload(path, data={"name": "from python", "privacy": {"view": "nobody"}, "chunk_size": 300000})
        print(uri)
        video = client.get(uri + "?fields=uri,status,upload.status").json()
        print(video["status"], video["upload"]["status"])
        client.patch(uri, data={"name": "renamed"})
        client.upload_picture(uri, path, activate=True)
        other = client.upload(path, data={"name": "to go"})
        print(client.delete(other).status_code)
        try:
            vimeo.VimeoClient(token="wrong", key="k", secret="s").upload(path)
        except vimeo.exceptions.UploadAttemptCreationFailure:
            print("refused")
        """

    @Test("the client creates, sends in pieces, queries, renames, sets a thumbnail and deletes at the emulator")
    func client() async throws {
        let server = try VimeoServer()
        defer { server.stop() }
        // The API's description says 201, and this client accepts only 200.
        server.change { $0.behaviour.created = 200 }
        let bin = try await blocking { try Tools.python("vimeo") }
        let temporary = TemporaryFolder()
        let content = noise(1_000_000)
        let source = try temporary.write("source.mp4", content)
        let script = try temporary.write("script.py", Array(Self.script.utf8))
        let child = try Child(
            bin.appending("python3"), [script.display, server.url, source.display],
            output: temporary.path.appending("out"), errors: temporary.path.appending("err"))
        let ending = try await child.end(within: .seconds(60))
        let errors = try child.standardError()
        #expect(ending == .status(0), "\(errors)")
        #expect(try child.standardOutput() == "/videos/1\navailable complete\n204\nrefused\n")
        let isWhole = server.videos.map(\.bytes) == [content]
        #expect(isWhole)
        #expect(server.videos.first?.fields["name"] == "renamed")
        #expect(server.videos.first?.fields["view"] == "nobody")
        #expect(server.requests.filter { $0.hasPrefix("patch") }.count >= 4)
        let isShown = server.pictures.filter(\.isActive).map(\.bytes) == [content]
        #expect(isShown)
    }
}
