import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Why, in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct WhyTests {
    @Test("of a file on a server that is gone an answer comes all the same", .enabled(if: DeadDisk.isPossible))
    func silent() async throws {
        let folder = TemporaryFolder()
        let dead = try DeadDisk(at: folder.path.appending("nas"))
        let scene = try await AgentScene {
            $0.folders[0].watch.path = folder.path.appending("nas/cam")
            $0.folders[0].watch.exclude = []
        }
        let path = folder.path.appending("nas/cam/a.mp4").display
        let answer = try #require(try await scene.agent.why(path).answers.first)
        #expect(answer.state == "unknown")
        #expect(answer.text == "its disk does not answer")
        dead.release()
        try await scene.stop()
    }
}
